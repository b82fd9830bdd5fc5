"""How good outputs are: scores with the settings that made them, their intervals, and a report."""

from clearhead.evaluate.intervals import Comparison, Interval, compare, interval
from clearhead.evaluate.metrics import Metric, Score, bleu_tokenizer, quick_scores, score, standard_metrics
from clearhead.evaluate.report import Evaluation, evaluate_outputs, lines

__all__ = [
    "Comparison",
    "Evaluation",
    "Interval",
    "Metric",
    "Score",
    "bleu_tokenizer",
    "compare",
    "evaluate_outputs",
    "interval",
    "lines",
    "quick_scores",
    "score",
    "standard_metrics",
]
