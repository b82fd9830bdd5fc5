"""Scores of outputs against references: BLEU, chrF and TER by sacrebleu, exact match, length ratio.

Every score is a function of sums over the sentences, so a metric has two parts: `statistics`, one row of numbers per
sentence, and `value`, the score of summed rows. That is all that intervals and tests need (intervals.py).

A score travels with its signature: two scores may be compared when their signatures are equal. Outputs and
references are plain text; with tokenize="none" they are taken as already tokenised, as some published protocols want.

Knows texts. Refuses to know models, tokens of ours and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from clearhead.errors import DataError, MissingExtra, UsageError, nearest

TOKENIZERS = ("13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab")
WITHOUT_SPACES = ("ja", "ko", "th", "lo", "km", "my", "bo", "dz")


@dataclass(frozen=True)
class Score:
    """A number with its name and the settings that made it."""

    name: str
    value: float
    signature: str


class Metric(Protocol):
    """What can be scored, resampled and compared."""

    name: str
    signature: str

    def statistics(self, outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """One row per sentence, float64."""
        ...

    def value(self, total: np.ndarray) -> float:
        """The score of summed rows."""
        ...


class Sacrebleu:
    """One of sacrebleu's corpus metrics, against one reference per sentence."""

    def __init__(self, name: str, metric: BLEU | CHRF | TER) -> None:
        self.name = name
        metric.num_refs = 1
        self.metric = cast(Any, metric)  # the rows below are sacrebleu's own, of its base class
        self.signature = str(metric.get_signature())

    def statistics(self, outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
        return np.array(self.metric._extract_corpus_statistics(outputs, [references]), dtype=np.float64)

    def value(self, total: np.ndarray) -> float:
        return float(self.metric._compute_score_from_stats(total.tolist()).score)


class ExactMatch:
    """Per cent of outputs that are their reference, white space at the ends aside."""

    name = "exact match"
    signature = "case:mixed|strip:yes"

    def statistics(self, outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
        same = [output.strip() == reference.strip() for output, reference in zip(outputs, references, strict=True)]
        return np.array([[equal, 1] for equal in same], dtype=np.float64)

    def value(self, total: np.ndarray) -> float:
        return float(100 * total[0] / total[1])


class LengthRatio:
    """Words of the outputs per word of the references, counted by BLEU's tokeniser."""

    name = "length ratio"

    def __init__(self, bleu: Sacrebleu) -> None:
        self.bleu = bleu
        self.signature = f"tok:{bleu.metric.tokenizer_signature}"

    def statistics(self, outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
        return self.bleu.statistics(outputs, references)[:, :2]

    def value(self, total: np.ndarray) -> float:
        words, wanted = total
        return 1.0 if words == wanted else float(words / max(wanted, 1.0))


def bleu(tokenize: str = "13a") -> Sacrebleu:
    """Corpus BLEU (Papineni et al. 2002; Post 2018)."""
    if tokenize not in TOKENIZERS:
        close = nearest(tokenize, TOKENIZERS)
        raise UsageError(
            f"{tokenize!r} is not a BLEU tokeniser",
            hint=f"did you mean {close!r}?" if close else f"choose one of {', '.join(TOKENIZERS)}",
        )
    try:
        return Sacrebleu("BLEU", BLEU(tokenize=tokenize, force=True))
    except (RuntimeError, ImportError):
        language = tokenize.split("-")[0]
        raise MissingExtra(f"BLEU's {tokenize} is not installed", hint=f'pip install "sacrebleu[{language}]"') from None


def bleu_tokenizer(language: str | None) -> str:
    """The tokeniser that suits a target language and needs nothing installed."""
    code = (language or "").casefold().replace("_", "-").split("-")[0]
    return "zh" if code == "zh" else "char" if code in WITHOUT_SPACES else "13a"


def chrf() -> Sacrebleu:
    """chrF2 (Popović 2015)."""
    return Sacrebleu("chrF2", CHRF())


def ter() -> Sacrebleu:
    """Translation edit rate (Snover et al. 2006): lower is better."""
    return Sacrebleu("TER", TER())


def standard_metrics(tokenize: str = "13a") -> tuple[Metric, ...]:
    """BLEU, chrF, TER, exact match, length ratio."""
    first = bleu(tokenize)
    return first, chrf(), ter(), ExactMatch(), LengthRatio(first)


def score(metric: Metric, outputs: Sequence[str], references: Sequence[str]) -> Score:
    """The corpus score."""
    check_sides(outputs, references)
    return Score(metric.name, metric.value(metric.statistics(outputs, references).sum(axis=0)), metric.signature)


def quick_scores(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """What a run in progress is judged by: bleu, chrf and exact, without interval."""
    chosen: dict[str, Metric] = {"bleu": bleu(), "chrf": chrf(), "exact": ExactMatch()}
    return {name: score(metric, outputs, references).value for name, metric in chosen.items()}


def check_sides(outputs: Sequence[str], references: Sequence[str], names: str = "outputs and {} references") -> None:
    """As many outputs as references, and at least one."""
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs)} {names.format(len(references))}", hint="one line of one belongs to one line of the other"
        )
    if not outputs:
        raise DataError("there is nothing to score: 0 sentences")
