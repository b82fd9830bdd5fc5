"""How a run is judged on the way: loss on the held-out pairs, and scores of decoded ones."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.config import DecodeSettings, Experiment
from clearhead.decode.decode import decode
from clearhead.decode.score import score
from clearhead.errors import DataError
from clearhead.evaluate.metrics import quick_scores
from clearhead.models.protocol import EncoderDecoder
from clearhead.text.normalise import normalise
from clearhead.train.state import Validation
from clearhead.verbs.tokenizers import Tokenizers

MOST_FOR_LOSS = 2_000


class Validator:
    """Judges weights on fixed pairs, encoded once; float32, greedy."""

    def __init__(self, pairs: Sequence[tuple[str, str]], tokenizers: Tokenizers, experiment: Experiment) -> None:
        sources = tokenizers.source.encode_many([source for source, _ in pairs])
        targets = tokenizers.target.encode_many([target for _, target in pairs])
        fitting = [i for i in range(len(pairs)) if max(len(sources[i]), len(targets[i])) <= experiment.longest]
        if not fitting:
            raise DataError(
                f"every held-out pair has more than {experiment.longest:,} tokens on a side",
                field="data.max_tokens",
                hint="hold out shorter pairs with data.valid, or raise data.max_tokens and model.max_len",
            )
        most = max(MOST_FOR_LOSS, experiment.validation.decode_pairs)
        self.sources = [sources[i] for i in fitting[:most]]
        self.targets = [targets[i] for i in fitting[:most]]
        self.tokenizers = tokenizers
        decoded = fitting[: experiment.validation.decode_pairs]
        self.texts = [pairs[i] for i in decoded]
        self.references = [normalise(pairs[i][1], experiment.text) for i in decoded]
        self.max_len = experiment.model.max_len
        # not the compiled engine: it may come to be in the middle of a run, and a run must not depend on that
        self.settings = DecodeSettings(method="greedy", max_ratio=1.5, max_extra=10, compiled=False)

    def __call__(self, model: EncoderDecoder, step: int) -> Validation:
        tokens = sum(len(target) + 1 for target in self.targets)
        loss = -sum(score(model, self.sources, self.targets)) / tokens
        if not self.texts:
            return Validation(step=step, loss=loss)
        outputs = decode(model, self.sources[: len(self.texts)], self.settings, max_len=self.max_len)
        texts = self.tokenizers.target.decode_many([hypotheses[0].tokens for hypotheses in outputs])
        shown = step % len(self.texts)
        sample = (*self.texts[shown], texts[shown])
        return Validation(step=step, loss=loss, scores=quick_scores(texts, self.references), sample=sample)
