"""The trained model some truths look at: the person's own, or the one in the package.

Knows model folders and traces. Refuses to know what is looked for.
"""

from __future__ import annotations

from clearhead.errors import MissingExtra, UsageError
from clearhead.glass import decoded
from clearhead.glass.trace import Trace
from clearhead.models.seq2seq import Seq2Seq
from clearhead.truths.truth import Given
from clearhead.verbs import model as models
from clearhead.verbs.model import Model

SENTENCE = "Thursday, March 3, 2022"
SENTENCES = (
    SENTENCE,
    "10 hours, 5 minutes, and 5 seconds",
    "2 weeks ago or 7 months ago",
    "Luxembourg and Hungary",
    "450 kilometers",
    "August 2027",
)
"""What the model in the package was made for; another model reads them as it can."""


def translator(given: Given) -> Model:
    if given.model is None and not models.PACKAGED.is_dir():
        raise MissingExtra(
            "a trained translator is needed, and this installation has none",
            hint="name one: clearhead show NAME --model RUN (`clearhead demo` trains one in two minutes)",
        )
    model = models.load(given.model)
    if not isinstance(model.network, Seq2Seq):
        raise UsageError(f"{model.path} holds no Transformer but a {model.experiment.model.kind} model")
    return model


def traced(model: Model, text: str, beam: int = 1) -> Trace:
    """The model translates the text; then one pass with every tap heard."""
    settings = model.settings(method="beam" if beam > 1 else "greedy", beam=beam)
    return decoded.trace(
        model.network,
        model.tokenizers.source.encode(text),
        settings,
        max_len=model.experiment.model.max_len,
        source_text=model.tokenizers.source.token,
        target_text=model.tokenizers.target.token,
    )
