import json
import os
import subprocess
import sys

import pytest

from clearhead.config import TextSettings
from clearhead.errors import DataError, UsageError
from clearhead.text import train_tokenizer

LEARN = """
import json, sys
from clearhead.config import TextSettings
from clearhead.text import train_tokenizer
texts = json.load(sys.stdin)
for algorithm in ("bpe", "unigram"):
    print(train_tokenizer(texts, TextSettings(algorithm=algorithm, vocab_size=600)).fingerprint)
"""


def learn_elsewhere(texts: list[str], hash_seed: int, threads: int) -> list[str]:
    """Fingerprints from another process, with its own hash seeds and number of threads."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "RAYON_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", LEARN],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return done.stdout.split()


def test_equal_texts_give_equal_files_in_any_process_and_order(corpus):
    here = [train_tokenizer(corpus, TextSettings(algorithm=a, vocab_size=600)).fingerprint for a in ("bpe", "unigram")]
    assert learn_elsewhere(corpus, 1, 1) == here
    assert learn_elsewhere(corpus[::-1], 2, 4) == here


@pytest.mark.parametrize("level", ["subword", "word", "character", "sentence"])
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("size", [270, 300, 500])
def test_the_bound_is_kept(corpus, level, algorithm, size):
    settings = TextSettings(level=level, algorithm=algorithm, vocab_size=size)
    assert train_tokenizer(corpus, settings).vocab_size <= size


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_room_is_used(corpus, algorithm):
    assert train_tokenizer(corpus, TextSettings(algorithm=algorithm, vocab_size=400)).vocab_size == 400


def test_larger_vocabularies_make_shorter_texts(corpus):
    lengths = []
    for size in (300, 330, 360):
        for algorithm in ("bpe", "unigram"):
            tokenizer = train_tokenizer(corpus, TextSettings(algorithm=algorithm, vocab_size=size))
            lengths.append(sum(map(len, tokenizer.encode_many(corpus))))
    assert lengths[0] > lengths[2] > lengths[4]
    assert lengths[1] > lengths[3] > lengths[5]


def test_what_is_seen_once_is_left_to_bytes():
    texts = ["aa aa ☃ neu", "aa"]
    assert "<0xE2>" in train_tokenizer(texts, TextSettings()).pieces("☃")
    assert train_tokenizer(texts, TextSettings(level="character", byte_fallback=False)).pieces("☃") == ["☃"]
    assert train_tokenizer(texts, TextSettings(level="word")).pieces("aa neu")[:3] == ["▁aa", "▁", "<0x6E>"]


def test_frequent_words_come_first():
    tokenizer = train_tokenizer(["c b b a a a"], TextSettings(level="word", byte_fallback=False))
    assert tokenizer.parts.pieces == (" ", " a", " b", " c")


def test_bpe_merges_the_most_frequent_pair_first():
    parts = train_tokenizer(["ab ab ab abc abc"], TextSettings(byte_fallback=False)).parts
    assert parts.pieces == (" ", "a", "b", "c", " a", " ab", " abc")


def test_one_shot_iterables_are_enough(corpus):
    settings = TextSettings(vocab_size=400)
    assert train_tokenizer(iter(corpus), settings).fingerprint == train_tokenizer(corpus, settings).fingerprint


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_refused(texts):
    with pytest.raises(DataError, match="no text"):
        train_tokenizer(texts, TextSettings())


def test_a_single_string_is_refused():
    with pytest.raises(UsageError, match="list"):
        train_tokenizer("Hallo", TextSettings())


def test_bad_text_is_named_by_its_number():
    with pytest.raises(DataError, match="text 2: character 1"):
        train_tokenizer(["gut", "\ud800"], TextSettings())


@pytest.mark.parametrize("level", ["subword", "word", "character", "sentence"])
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("texts", [[" "], ["☃"], ["a"], ["\n"], ["\x00\x00"], ["ab\n\nab"]])
def test_next_to_nothing_is_enough(level, algorithm, texts):
    tokenizer = train_tokenizer(texts, TextSettings(level=level, algorithm=algorithm, vocab_size=270))
    assert tokenizer.decode(tokenizer.encode("a☃ \n\x00")) == "a☃ \n\x00"
