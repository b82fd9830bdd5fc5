"""What must hold for every text, and for every file that claims to be a tokenizer."""

import json
from functools import cache
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.config import TextSettings
from clearhead.errors import ClearheadError, ModelFileError
from clearhead.text import (
    SegmentationTable,
    Tokenizer,
    join_sentences,
    load_tokenizer,
    normalise,
    split_sentences,
    train_tokenizer,
)
from clearhead.text.segment import MARK
from clearhead.text.splitting import mark, split

CORPUS = [
    "der Hund und die Hunde, das Haus und die Häuser.",
    "12 345 Wörter; ein Wort, zwei Wörter!",
    "a▁b <pad> <0x41> <0x41> \t\t x  x   x \n\n",
    "नमस्ते दुनिया नमस्ते दुनिया 今日は 今日は 👩‍👧 👩‍👧",
] * 3
KINDS = [
    ("sentence", "bpe"),
    ("word", "bpe"),
    ("character", "bpe"),
    ("subword", "bpe"),
    ("subword", "unigram"),
]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0"]
ODD = ["\x00", "▁", "▁▁", "<0x41>", "<pad>", "<unk>", "\u0301", "\u200d", "\ufeff", "\ufffd", "\U0001e900", "İ", "ﬁ"]
ORDINARY = ["Hund", "Häuser", "Wörter", "12", "...", "--", "_", "नमस्ते", "今日は", "。", "z.B.", "ℌ", "👩\u200d👧"]
FRAGMENTS = st.sampled_from([*SPACES, *ODD, *ORDINARY])
TEXTS = st.one_of(st.text(), st.lists(st.one_of(FRAGMENTS, st.text(max_size=3)), max_size=12).map("".join))


@cache
def tokenizer(
    level: str, algorithm: str, form: str = "nfc", lowercase: bool = False, fallback: bool = True
) -> Tokenizer:
    chosen = {"level": level, "algorithm": algorithm, "normalise": form, "lowercase": lowercase}
    return train_tokenizer(CORPUS, TextSettings(**chosen, byte_fallback=fallback, vocab_size=330))


@pytest.mark.parametrize(("level", "algorithm"), KINDS)
@given(text=TEXTS, form=st.sampled_from(["nfc", "nfkc", "none"]), lowercase=st.booleans())
@settings(max_examples=150, deadline=None)
def test_decoding_gives_the_normalised_text_back(level, algorithm, text, form, lowercase):
    used = tokenizer(level, algorithm, form, lowercase)
    ids = used.encode(text)
    assert used.decode(ids) == normalise(text, used.settings)
    assert all(4 < token_id < used.vocab_size for token_id in ids)


@pytest.mark.parametrize(("level", "algorithm"), KINDS)
@given(text=TEXTS)
@settings(deadline=None)
def test_without_bytes_every_text_still_has_ids(level, algorithm, text):
    used = tokenizer(level, algorithm, fallback=False)
    ids = used.encode(text)
    assert all(0 <= token_id < used.vocab_size for token_id in ids)
    if 3 not in ids:
        assert used.decode(ids) == normalise(text, used.settings)


@pytest.mark.parametrize(("level", "algorithm"), KINDS)
@given(ids=st.lists(st.integers(0, 300)))
@settings(deadline=None)
def test_any_ids_are_some_text(level, algorithm, ids):
    used = tokenizer(level, algorithm)
    text = used.decode([token_id % used.vocab_size for token_id in ids])
    assert text.encode().decode() == text


@pytest.mark.parametrize("level", ["sentence", "word", "character", "subword"])
@given(text=TEXTS)
def test_units_are_the_text(level, text):
    units = split(text, level)
    assert "".join(units) == mark(text, level)
    assert all(units)


@given(text=TEXTS, form=st.sampled_from(["nfc", "nfkc", "none"]), lowercase=st.booleans())
def test_normalising_twice_changes_nothing(text, form, lowercase):
    chosen = TextSettings(normalise=form, lowercase=lowercase)
    once = normalise(text, chosen)
    assert normalise(once, chosen) == once


@given(word=TEXTS)
@settings(deadline=None)
def test_merging_here_and_in_the_library_agree(word):
    used = tokenizer("subword", "bpe")
    units = used.words(word)
    table = SegmentationTable.build(used, units, 1, 1e-15, 2)
    assert [list(table.ids(i, 1)) for i in range(len(units))] == [list(used.word_ids(unit)) for unit in units]


SENTENCES = st.one_of(
    TEXTS,
    st.text(alphabet=st.sampled_from(list('aB1 \n\r\t.!?…"»«)(。？」と'))),
    st.from_regex(MARK).map(lambda t: t[:50]),
)


@given(text=SENTENCES, line_breaks=st.booleans(), language=st.sampled_from([None, "de", "en", "zz"]))
@settings(max_examples=250)
def test_sentences_join_to_the_text(text, line_breaks, language):
    sentences = split_sentences(text, language, line_breaks)
    assert join_sentences(sentences) == text
    assert all(not sentence.separator.strip() for sentence in sentences)
    assert all(sentence.text == sentence.text.strip() != "" for sentence in sentences[1:])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)


def load_or_refuse(path, content: bytes) -> None:
    """Our error, or a tokenizer that works."""
    path.write_bytes(content)
    try:
        loaded = load_tokenizer(path)
    except ModelFileError as error:
        assert path.name in str(error)
        return
    for text in CORPUS[:4]:
        loaded.decode(loaded.encode(text))


@pytest.mark.parametrize(("level", "algorithm"), KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_files_are_refused_or_harmless(level, algorithm, data, tmp_path_factory):
    content = bytearray(tokenizer(level, algorithm).to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 20)))
        content[start:end] = data.draw(st.binary(max_size=6))
    load_or_refuse(tmp_path_factory.getbasetemp() / "damaged.json", bytes(content))


@pytest.mark.parametrize(("level", "algorithm"), KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_foreign_values_are_refused_or_harmless(level, algorithm, data, tmp_path_factory):
    fields = json.loads(tokenizer(level, algorithm).to_bytes())
    field = data.draw(st.sampled_from(list(fields)))
    if isinstance(fields[field], list) and fields[field] and data.draw(st.booleans()):
        fields[field][data.draw(st.integers(0, len(fields[field]) - 1))] = data.draw(JSON)
    else:
        fields[field] = data.draw(JSON)
    load_or_refuse(tmp_path_factory.getbasetemp() / "foreign.json", json.dumps(fields).encode())


@given(texts=st.lists(TEXTS, max_size=4), level=st.sampled_from(KINDS), fallback=st.booleans())
@settings(deadline=None, max_examples=60)
def test_any_texts_teach_a_tokenizer_or_are_refused(texts, level, fallback):
    chosen = TextSettings(level=level[0], algorithm=level[1], byte_fallback=fallback, vocab_size=300)
    try:
        learned = train_tokenizer(texts, chosen)
    except ClearheadError as error:
        assert not any(texts), error
        return
    assert learned.vocab_size <= 300
    if fallback:
        assert learned.decode_many(learned.encode_many(texts)) == [normalise(text, chosen) for text in texts]
    else:
        assert max(chain([0], *learned.encode_many(texts))) < learned.vocab_size
