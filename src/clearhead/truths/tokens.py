"""A network needs numbers, so text is cut into tokens: sentence, word, sub-word or character (row T1).

Four tokenizers learn from the same sentences, and then meet sentences with words they never saw. Whole sentences and
whole words are unknown then; sub-words spell them from parts they know, in far fewer pieces than characters.
"""

from __future__ import annotations

from itertools import product

from clearhead.config import TextSettings
from clearhead.text.tokenizer import Tokenizer, train_tokenizer
from clearhead.truths.figure import Bars, Table
from clearhead.truths.truth import Given, Result, Truth

STEMS = ["play", "paint", "read", "work", "teach", "climb", "sing", "help", "sail", "farm"]
FORMS = ("the {0}er is {1}ing", "the {0}ers {1}", "the {0}er {1}s", "it is un{1}able for a {0}er", "it is {1}able")
UNSEEN = ("unreadable", "climbers", "singing", "helpable")
LEVELS = ("sentence", "word", "subword", "character")
SHOWN = "it is unreadable for a climber"


def sentences() -> tuple[list[str], list[str]]:
    """(those to learn from, those with a word that never occurs in them)."""
    made = sorted({form.format(a, b) for form, a, b in product(FORMS, STEMS, STEMS)})
    new = [text for text in made if any(word in text.split() for word in UNSEEN)]
    return [text for text in made if text not in new], new


def learned(level: str, texts: list[str], given: Given) -> Tokenizer:
    """Without bytes to fall back on, so that what is unknown shows. The control leaves sub-words only letters."""
    cut = "character" if level == "subword" and given.control else level
    return train_tokenizer(texts, TextSettings.model_validate({"level": cut, "byte_fallback": False}))


def experiment(given: Given) -> Result:
    seen, new = sentences()
    tokenizers = {level: learned(level, seen, given) for level in LEVELS}
    length = {level: sum(map(len, t.encode_many(new))) / len(new) for level, t in tokenizers.items()}
    unknown = {level: t.unknown_rate(new) for level, t in tokenizers.items()}
    sizes = {level: t.vocab_size for level, t in tokenizers.items()}
    exact = all(t.decode(t.encode(text)) == text for t in map(tokenizers.get, LEVELS) for text in seen[:50] if t)
    rows = [
        [level, f"{sizes[level]}", f"{length[level]:.1f}", f"{unknown[level]:.0%}", " ".join(t.pieces(SHOWN))]
        for level, t in tokenizers.items()
    ]
    return Result(
        {f"{level}: vocabulary": sizes[level] for level in LEVELS}
        | {f"{level}: tokens per sentence": length[level] for level in LEVELS}
        | {f"{level}: unknown": unknown[level] for level in LEVELS},
        {
            "what was learned comes back letter by letter at every level": exact,
            "new sentences and words are unknown as wholes": unknown["sentence"] == 1.0 and unknown["word"] > 0,
            "sub-words and characters spell them": unknown["subword"] == unknown["character"] == 0.0,
            "sub-words are far fewer than characters": length["subword"] < 0.6 * length["character"],
        },
        [
            Table(
                f"{len(new)} sentences with words never seen in {len(seen)} others",
                ["level", "vocabulary", "tokens per sentence", "unknown", SHOWN],
                rows,
            ),
            Bars("tokens per sentence", length),
        ],
    )


TRUTH = Truth(
    name="tokens",
    row="T1",
    claim="A network needs numbers: text is cut into tokens, by sentence, word, sub-word or character.",
    refuted_by="a new word that sub-words cannot spell, or need as many tokens for as it has letters",
    control="the sub-words: letters stand in their place",
    experiment=experiment,
)
