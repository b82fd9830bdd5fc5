import json

import pytest

from clearhead.config import TextSettings
from clearhead.errors import ModelFileError
from clearhead.text import load_tokenizer
from clearhead.text.parts import Parts, meant_settings, read_parts


@pytest.fixture
def refused(tmp_path):
    """refused(bytes or changes): the message of the error that these give."""
    path = tmp_path / "tokenizer.json"

    def message(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(ModelFileError) as caught:
            load_tokenizer(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return message


def changed(tokenizer, **changes: object) -> bytes:
    return json.dumps({**json.loads(tokenizer.to_bytes()), **changes}).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON in UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "format"),
        (b'{"format": NaN}', "NaN is not a number"),
        (b'{"version": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_file_of_ours(refused, content, words):
    assert words in refused(content)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"version": 2}, "version"),
        ({"version": True}, "format"),
        ({"extra": 1}, "extra"),
        ({"special": ["<pad>"]}, "special"),
        ({"settings": {}}, "settings"),
        ({"pieces": {}}, "pieces"),
        ({"pieces": ["a", "a"]}, "pieces"),
        ({"pieces": ["a", 1]}, "pieces[1]"),
        ({"pieces": ["a", ""]}, "pieces[1]"),
        ({"pieces": ["\ud800"]}, "pieces[0]"),
        ({"pieces": ["ä" * 513]}, "pieces[0]"),
        ({"merges": [[0, 1]]}, "merges[0]"),
        ({"merges": [[261, 10**30]]}, "merges[0]"),
        ({"merges": [[261]]}, "merges[0]"),
        ({"merges": [[261.0, 262]]}, "merges[0]"),
        ({"merges": [["a", "b"]]}, "merges[0]"),
        ({"merges": 5}, "merges"),
        ({"scores": [0.0]}, "scores"),
        ({"scores": None}, "scores"),
    ],
)
def test_the_field_is_named(refused, trained, changes, field):
    assert f"{field}: " in refused(changed(trained(level="subword"), **changes)) or field == "extra"


@pytest.mark.parametrize("value", ["high", 0.5, None, True, 1e300, -1e300, -(10**400), [1]])
def test_scores_are_log_probabilities(refused, trained, value):
    tokenizer = trained(level="subword", algorithm="unigram")
    scores = [*tokenizer.parts.scores[:-1], value]
    assert f"scores[{len(scores) - 1}]" in refused(changed(tokenizer, scores=scores))


def test_merges_make_known_pieces_once(refused, trained):
    tokenizer = trained(level="subword")
    first = json.loads(tokenizer.to_bytes())["merges"][0]
    assert "twice" in refused(changed(tokenizer, merges=[first, first]))
    assert "which is no piece" in refused(changed(tokenizer, merges=[[tokenizer.vocab_size - 1] * 2]))


def test_merges_belong_to_bpe(refused, trained):
    assert "BPE only" in refused(changed(trained(level="word"), merges=[[261, 262]]))


def test_characters_are_single(refused, trained):
    assert "not one character" in refused(changed(trained(level="character"), pieces=["ab"]))


@pytest.mark.parametrize("wrong", [{"level": "byte"}, {"byte_fallback": 1}, {"lowercase": "no"}, {"normalise": None}])
def test_settings_are_checked(refused, trained, wrong):
    settings = {**json.loads(trained(level="word").to_bytes())["settings"], **wrong}
    assert f"settings.{next(iter(wrong))}" in refused(changed(trained(level="word"), settings=settings))


def test_large_files_are_not_read(refused, monkeypatch):
    monkeypatch.setattr("clearhead.text.parts.LARGEST_FILE", 1 << 20)
    assert "larger than 1 MiB" in refused(b" " * ((1 << 20) + 1))


def test_too_many_pieces(refused, trained, monkeypatch):
    monkeypatch.setattr("clearhead.text.parts.MOST_PIECES", 10)
    assert "at most 10 pieces" in refused(trained(level="word").to_bytes())


def test_the_message_shows_the_way_out(refused):
    assert "damaged" in refused(b"{")


def test_equal_parts_are_equal_files(tmp_path, trained):
    parts = trained(level="subword", algorithm="unigram").parts
    path = tmp_path / "t.json"
    path.write_bytes(parts.to_bytes())
    assert read_parts(path) == parts
    assert read_parts(path).to_bytes() == parts.to_bytes()


def test_settings_that_do_not_change_ids_do_not_change_the_file():
    one = TextSettings(bpe_dropout=0.1, vocab_size=300, shared=False, level="word", algorithm="unigram")
    assert meant_settings(one) == meant_settings(TextSettings(level="word"))
    assert Parts(meant_settings(one), ("a",)).fingerprint != Parts(meant_settings(one), ("b",)).fingerprint
