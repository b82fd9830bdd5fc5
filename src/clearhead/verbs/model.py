"""The Model: a trained model, ready to use. Raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from clearhead.config import DecodeSettings
from clearhead.config.load import explain
from clearhead.decode.decode import decode
from clearhead.decode.rank import Hypothesis
from clearhead.decode.score import score
from clearhead.errors import DataError, UsageError
from clearhead.glass.decoded import trace
from clearhead.glass.trace import Trace
from clearhead.glass.tracer import trace_pass
from clearhead.models.seq2seq import parameter_count
from clearhead.text.normalise import normalise
from clearhead.text.tokenizer import Tokenizer
from clearhead.verbs.device import device as choose
from clearhead.verbs.folder import Opened, open_folder
from clearhead.verbs.pieces import Pieces, cut

PACKAGED = Path(__file__).parent.parent / "packaged" / "phrasebook-en-de"
MOST_PIECES = 1 << 24
"""Of a text, for the counting of draws."""
MOST_TEXTS = 1 << 33


@dataclass(frozen=True)
class Output:
    """One way to translate a text."""

    text: str
    log_probability: float
    """Natural logarithm of the model's probability of this output."""
    tokens: int
    finish_reason: str
    """"stop": it ended by itself; "length": it was cut off at the limit; "copied": nothing to translate."""


@dataclass(frozen=True)
class Translation:
    """What became of one text; `outputs` are best first, or, where they were drawn, in the order of the draws."""

    source: str
    outputs: tuple[Output, ...]
    pieces: int
    """Into how many pieces a long text was cut; 1 as a rule."""

    @property
    def text(self) -> str:
        return self.outputs[0].text


class Model:
    """A model folder, opened. Safe to use from several threads at once: nothing in it changes."""

    def __init__(self, opened: Opened) -> None:
        self.path = opened.path
        self.experiment = opened.experiment
        self.tokenizers = opened.tokenizers
        self.network = opened.model
        self.about = opened.about

    def __repr__(self) -> str:
        languages = f"{self.source_language or 'source'} → {self.target_language or 'target'}"
        return f"<clearhead model {languages}, {self.parameters:,} parameters, {self.path}>"

    @property
    def source_language(self) -> str | None:
        """The code of the language it reads, if it was named when the model was trained."""
        return self._language("source")

    @property
    def target_language(self) -> str | None:
        return self._language("target")

    def _language(self, side: str) -> str | None:
        return str(self.about[side]) if side in self.about else None

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.network.output_weight.device

    @property
    def parameters(self) -> int:
        return parameter_count(self.network)

    def settings(self, **changes: Any) -> DecodeSettings:
        """The model's decoding settings with these changes. A beam by itself says the method too: one is greedy."""
        if "beam" in changes and "method" not in changes:
            changes["method"] = "greedy" if changes["beam"] == 1 else "beam"
        try:
            settings = DecodeSettings.model_validate(self.experiment.decode.model_dump() | changes)
        except ValidationError as error:
            raise explain(error) from None
        if settings.method == "greedy" and settings.n_best > 1 and "n_best" in changes:
            hint = f"a beam of {settings.n_best} or more, or draw them: method sample"
            raise UsageError("the likeliest word each time gives one output", field="n_best", hint=hint)
        return settings

    def translate(self, text: str | Sequence[str], **changes: Any) -> str | list[str]:
        """One text, or a list of them; `changes` are decoding settings, for example beam=1."""
        if isinstance(text, str):
            return self.translations([text], self.settings(**changes))[0].text
        return [found.text for found in self.translations(list(text), self.settings(**changes))]

    def translations(
        self,
        texts: Sequence[str],
        settings: DecodeSettings,
        progress: Callable[[int], None] | None = None,
        first: int = 0,
    ) -> list[Translation]:
        """For each text its outputs. No text depends on the others; `first` is how many came before, for draws are
        counted by a text's place."""
        if others := [type(text).__name__ for text in texts if not isinstance(text, str)]:
            raise UsageError(f"a text is wanted, not {others[0]}", hint="one text, or a list of texts")
        prepared = [self._cut(text, place) for place, text in enumerate(texts, first)]
        sources = [ids for pieces in prepared for ids in pieces.ids]
        places = [
            text * MOST_PIECES + piece for text, cut in enumerate(prepared, first) for piece in range(len(cut.ids))
        ]
        if settings.precision == "int8" and self.device.type != "cpu":
            raise UsageError(f"int8 is for the processor, not for {self.device.type}", field="decode.precision")
        prefix = self.prefix(settings)
        begun = [[] if piece else prefix for cut in prepared for piece in range(len(cut.ids))] if prefix else []
        longest = self.experiment.model.max_len
        draws = settings.n_best if settings.method == "sample" else 1
        drawn_at = [place + draw * MOST_TEXTS * MOST_PIECES for draw in range(draws) for place in places]
        drawn = decode(self.network, sources * draws, settings, progress, longest, drawn_at, begun * draws)
        found = [[h for draw in drawn[at :: len(sources)] for h in draw] for at in range(len(sources))]
        results, at = [], 0
        for text, pieces in zip(texts, prepared, strict=True):
            results.append(self._join(text, pieces, found[at : at + len(pieces.ids)]))
            at += len(pieces.ids)
        return results

    def prefix(self, settings: DecodeSettings) -> list[int]:
        """The ids that every output begins with."""
        ids = self.tokenizers.target.encode(normalise(settings.prefix, self.experiment.text))
        longest = self.experiment.model.max_len - 2
        if len(ids) > longest:
            raise UsageError(f"has {len(ids):,} tokens, the model writes {longest:,}", field="decode.prefix")
        return ids

    def _cut(self, text: str, place: int) -> Pieces:
        try:
            normal = normalise(text, self.experiment.text)
        except DataError as error:
            error.line = place + 1
            raise
        return cut(normal, self.tokenizers.source, self.experiment.longest)

    def _join(self, text: str, pieces: Pieces, found: list[list[Hypothesis]]) -> Translation:
        """The n-th best of every piece, joined, is the n-th output."""
        if not found:
            return Translation(text, (Output(text, 0.0, 0, "copied"),), 0)
        outputs = []
        for rank in range(min(len(hypotheses) for hypotheses in found)):
            chosen = [hypotheses[rank] for hypotheses in found]
            reason = "stop" if all(h.ended for h in chosen) else "length"
            texts = self.tokenizers.target.decode_many([h.tokens for h in chosen])
            total = sum(h.log_probability for h in chosen)
            outputs.append(Output(pieces.join(texts), total, sum(len(h.tokens) for h in chosen), reason))
        return Translation(text, tuple(outputs), len(found))

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, int]]:
        """For each pair, the log-probability of its target and how many tokens that is, EOS included."""
        ids, longest = self._pair_ids(pairs), self.experiment.model.max_len - 1
        for place, pair in enumerate(ids, start=1):
            if max(map(len, pair)) > longest:
                raise DataError(f"has {max(map(len, pair)):,} tokens, the model reads {longest:,}", line=place)
        values = score(self.network, [source for source, _ in ids], [target for _, target in ids])
        return [(value, len(target) + 1) for value, (_, target) in zip(values, ids, strict=True)]

    def fitting(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those pairs whose both sides the model can read at once, so that they can be scored."""
        longest = self.experiment.model.max_len - 1
        return [pair for pair, ids in zip(pairs, self._pair_ids(pairs), strict=True) if max(map(len, ids)) <= longest]

    def _pair_ids(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        def encode(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
            return tokenizer.encode_many([normalise(text, self.experiment.text) for text in texts])

        sources = encode(self.tokenizers.source, [source for source, _ in pairs])
        return list(zip(sources, encode(self.tokenizers.target, [target for _, target in pairs]), strict=True))

    def trace(self, text: str, target: str | None = None, **changes: Any) -> Trace:
        """Every number of one sentence: translated first, or read with the target given. `changes`: as in translate."""
        tokenizers, longest = self.tokenizers, self.experiment.model.max_len
        source, texts = self.sentence(text, tokenizers.source), (tokenizers.source.token, tokenizers.target.token)
        if target is None:
            settings = self.settings(**changes)
            return trace(self.network, source, settings, longest, *texts, self.prefix(settings))
        return trace_pass(self.network, source, self.sentence(target, tokenizers.target), *texts)

    def sentence(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """One sentence's ids, at most as many as the model reads at once."""
        if not isinstance(text, str):
            raise UsageError(f"a trace is of one text, not of a {type(text).__name__}", hint="one call for each text")
        ids = tokenizer.encode(normalise(text, self.experiment.text).strip())
        longest = self.experiment.longest
        if not ids:
            raise DataError("there is no text to look into")
        if len(ids) > longest:
            hint = "give one sentence; translate cuts long texts"
            raise DataError(f"has {len(ids):,} tokens, the model reads {longest:,} at once", hint=hint)
        return ids


def load(path: str | Path | None = None, device: str = "cpu") -> Model:
    """Open a model folder; without a path, the model in the package. `device`: cpu, cuda, mps, or auto."""
    chosen = choose(device)
    opened = open_folder(PACKAGED if path is None else Path(path))
    opened.model.to(chosen)
    return Model(opened)
