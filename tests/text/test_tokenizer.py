import threading

import pytest

from clearhead.config import TextSettings
from clearhead.errors import DataError, ModelFileError, UsageError
from clearhead.text import UNK, load_tokenizer, train_tokenizer
from clearhead.text.tokenizer import REMEMBERED_LENGTH, Memory

LEVELS = [
    {"level": "sentence"},
    {"level": "word"},
    {"level": "character"},
    {"level": "subword", "algorithm": "bpe"},
    {"level": "subword", "algorithm": "unigram"},
]


@pytest.fixture(params=LEVELS, ids=lambda settings: "-".join(settings.values()))
def tokenizer(request, trained):
    return trained(**request.param)


def test_texts_come_back(tokenizer, corpus):
    assert tokenizer.decode_many(tokenizer.encode_many(corpus)) == corpus


def test_empty_text_is_no_token(tokenizer):
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""


@pytest.mark.parametrize("text", ["<pad>", "a <bos> b", "</s><eos>", "<0x41>", "▁", "▁a", "<unk> <mask>"])
def test_names_of_tokens_are_ordinary_text(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert min(ids) > 4


def test_encoding_is_the_sum_of_its_words(tokenizer, corpus):
    for text in corpus[:50]:
        ids = [token_id for word in tokenizer.words(text) for token_id in tokenizer.word_ids(word)]
        assert ids == tokenizer.encode(text)


def test_pieces_are_printed_tokens(trained):
    subword = trained(level="subword", algorithm="bpe")
    assert "".join(subword.pieces("Anna sieht das Haus.")) == "▁Anna▁sieht▁das▁Haus."
    assert trained(level="word").pieces("Anna sieht\x00") == ["▁Anna", "▁sieht", "<0x00>"]
    assert trained(level="character").pieces("a b") == ["a", "▁", "b"]


def test_known_sentence_is_one_token(trained, corpus):
    tokenizer = trained(level="sentence", vocab_size=2000)
    assert [len(tokenizer.encode(text)) for text in corpus] == [1] * len(corpus)
    assert len(tokenizer.encode("Anna")) == 4


def test_unknown_word_after_a_space_is_space_and_bytes(trained):
    assert trained(level="word").pieces("Anna xy") == ["▁Anna", "▁", "<0x78>", "<0x79>"]


def test_tokens_never_cross_words(trained):
    for algorithm in ("bpe", "unigram"):
        tokenizer = trained(level="subword", algorithm=algorithm)
        assert all(" " not in piece[1:] or not piece.strip() for piece in tokenizer.parts.pieces)
        assert all(len(piece.strip()) == 1 for piece in tokenizer.parts.pieces if any(map(str.isdigit, piece)))
        assert tokenizer.pieces("1024 Wörter.")[1:5] == ["1", "0", "2", "4"]


def test_without_fallback_the_unknown_token_stands_for_what_is_lacking(trained):
    subword = trained(level="subword", byte_fallback=False)
    assert subword.encode("☃☃") == [*subword.encode(" ")[:1], UNK, UNK]
    assert subword.decode(subword.encode("Anna ☃ sieht")) == "Anna � sieht"
    word = trained(level="word", byte_fallback=False)
    assert word.decode(word.encode("Anna schrieb, sieht")) == "Anna �, sieht"
    assert trained(level="character", byte_fallback=False).encode("☃☃") == [UNK, UNK]
    assert trained(level="sentence", byte_fallback=False).encode("Neu.") == [UNK]


def test_unknown_rate(trained):
    character = trained(level="character")
    assert character.unknown_rate(["Anna"]) == 0.0
    assert character.unknown_rate(["a☃"]) == 3 / 4
    assert character.unknown_rate([]) == 0.0
    assert trained(level="character", byte_fallback=False).unknown_rate(["a☃", "aa"]) == 1 / 4


def test_lone_surrogates_are_refused(tokenizer):
    with pytest.raises(DataError, match="character 2"):
        tokenizer.encode("a\ud800")


def test_normalisation_comes_first(corpus):
    tokenizer = train_tokenizer(corpus, TextSettings(lowercase=True, vocab_size=400))
    assert tokenizer.decode(tokenizer.encode("ANNA e\u0301")) == "anna é"


def test_saved_is_loaded(tokenizer, tmp_path, corpus):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = load_tokenizer(path)
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.settings == tokenizer.settings
    assert loaded.encode_many([*corpus, "☃ neu"]) == tokenizer.encode_many([*corpus, "☃ neu"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["tokenizer.json"]


def test_missing_file_and_folder(tokenizer, tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.json: cannot be read: No such file"):
        load_tokenizer(tmp_path / "none.json")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_tokenizer(tmp_path)
    with pytest.raises(UsageError, match="its folder does not exist"):
        tokenizer.save(tmp_path / "no" / "tokenizer.json")


def test_fingerprint_tells_tokenizers_apart(trained):
    prints = {trained(**settings).fingerprint for settings in LEVELS}
    prints.add(trained(level="word", byte_fallback=False).fingerprint)
    assert len(prints) == len(LEVELS) + 1


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("clearhead.text.tokenizer.REMEMBERED_UNITS", 2)
    memory = Memory(lambda unit: (len(unit),))
    assert [memory[unit] for unit in ("a", "bb", "ccc", "d" * (REMEMBERED_LENGTH + 1))] == [(1,), (2,), (3,), (513,)]
    assert list(memory) == ["ccc"]


def test_threads_may_share_a_tokenizer(corpus):
    tokenizer = train_tokenizer(corpus, TextSettings(vocab_size=400))
    results: list[list[list[int]]] = []
    threads = [threading.Thread(target=lambda: results.append(tokenizer.encode_many(corpus))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [tokenizer.encode_many(corpus)] * 4
