"""A model's weights in the compiled engine, and a batch of sources being decoded there.

Knows a Seq2Seq and pointers. Refuses to know how the next word is chosen.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import Structure, c_float, c_int32, c_int64, c_void_p
from typing import Any, cast
from weakref import WeakKeyDictionary, finalize

import torch
import torch.nn.functional as F
from torch import nn

from clearhead.config import ModelSettings
from clearhead.models.decoder import DecoderLayer
from clearhead.models.encoder import EncoderLayer
from clearhead.models.fused import Made, remembered
from clearhead.models.seq2seq import Seq2Seq
from clearhead.native.build import library
from clearhead.native.memory import keep_freed_memory
from clearhead.nn.attention import Attention
from clearhead.nn.feedforward import FeedForward, relu2
from clearhead.nn.linear import Linear
from clearhead.nn.norm import LayerNorm, RMSNorm
from clearhead.nn.packed import whole_numbers
from clearhead.nn.shapes import Float, Int, Tensor

ACTIVATIONS = {F.relu: 1, F.gelu: 2, relu2: 3}
POSITIONS = ("sinusoidal", "sinusoidal-halves", "learned", "rotary", "none")
OWN, OWN_OUT, QUERY, READ, ACROSS_OUT, UP, DOWN = range(7)
"""The maps of a layer, as engine.cpp counts them."""
ENCODER, DECODER, AFTER_ALL = 0, 1, -1
STEPS_AT_ONCE = 64


class Sizes(Structure):
    """As in engine.cpp."""

    _fields_ = (
        *((name, c_int32) for name in ("d", "heads", "groups", "h", "u", "ff", "vocab", "max_len")),
        *((name, c_int32) for name in ("encoder_layers", "decoder_layers", "pre", "whole", "rotary", "f")),
        *((name, c_float) for name in ("scale", "embedding_scale")),
    )


class Choice(Structure):
    """As in engine.cpp."""

    _fields_ = (
        ("limits", c_void_p), ("never", c_void_p), ("n_never", c_int32), ("most", c_int32), ("eos", c_int64),
        *((name, c_void_p) for name in ("written", "lengths", "sums", "ended")),
    )  # fmt: skip


def knows(settings: ModelSettings) -> bool:
    """Does the engine have everything this model is made of?"""
    return (
        settings.kind == "seq2seq"
        and settings.positions in POSITIONS
        and settings.norm in ("layer", "rms")
        and settings.activation in ("relu", "gelu", "relu2")
        and settings.attention_window is None
    )


def pointer(tensor: Tensor | None) -> c_void_p:
    return c_void_p(None if tensor is None else tensor.data_ptr())


def had(answer: Any) -> Any:
    """What the engine gave; nothing, when there was no memory for it."""
    if not answer:
        raise MemoryError("no memory for decoding; a smaller decode.batch_tokens needs less")
    return answer


class Engine:
    """The weights of a model, packed. They are copies: a changed model needs a new engine."""

    def __init__(self, model: Seq2Seq, products: torch.dtype, found: ctypes.CDLL) -> None:
        keep_freed_memory()
        self.found, self.whole = found, products == torch.int8
        s = model.settings
        embeddings = model.source_embedding, model.target_embedding
        self.held = [
            None if t is None else t.detach()
            for e in embeddings
            for t in (e.table.weight, None if e.positions is None else e.positions.table)
        ]
        """Words and places of either side: read where they are, as long as the engine lives."""
        self.source_vocab, self.target_vocab = (len(e.table.weight) for e in embeddings)
        self.longest = None if s.positions == "none" else s.max_len
        first = next(iter(model.decoder.stack))
        sizes = Sizes(
            s.d_model, s.n_heads, s.kv_heads, s.head_width, s.value_width, s.d_ff, self.target_vocab, s.max_len,
            s.encoder_layers, s.decoder_layers, s.norm_order == "pre", self.whole, s.positions == "rotary",
            ACTIVATIONS[first.feedforward.activation], first.self_attention.scale, model.source_embedding.scale,
        )  # fmt: skip
        self.handle = c_void_p(had(found.clearhead_model(ctypes.byref(sizes), *map(pointer, self.held))))
        finalize(self, found.clearhead_forget_model, self.handle)
        for side, half in ((ENCODER, model.encoder), (DECODER, model.decoder)):
            layers = cast(Iterable[EncoderLayer | DecoderLayer], half.layers)
            for place, layer in enumerate(layers):
                self.take_layer(side, place, layer)
            self.take_norm(side, AFTER_ALL, 0, half.norm)
        self.take_map(DECODER, AFTER_ALL, 0, model.output_weight, model.output_bias)

    def take_layer(self, side: int, place: int, layer: EncoderLayer | DecoderLayer) -> None:
        own: Attention = layer.self_attention
        feed: FeedForward = layer.feedforward
        maps: dict[int, tuple[Linear, ...]] = {OWN: (own.query, own.key, own.value), OWN_OUT: (own.out,)}
        maps |= {UP: (feed.up,), DOWN: (feed.down,)}
        if isinstance(layer, DecoderLayer):
            across = layer.cross_attention
            maps |= {QUERY: (across.query,), READ: (across.key, across.value), ACROSS_OUT: (across.out,)}
            residuals = {0: layer.self_residual, 1: layer.cross_residual, 2: layer.feedforward_residual}
        else:
            residuals = {0: layer.attention_residual, 2: layer.feedforward_residual}
        for which, joined in maps.items():
            biases: list[Tensor] = [m.bias for m in joined if m.bias is not None]
            weight = torch.cat([m.weight for m in joined])
            self.take_map(side, place, which, weight, torch.cat(biases) if biases else None)
        for which, residual in residuals.items():
            self.take_norm(side, place, which, residual.norm)

    def take_map(self, side: int, place: int, which: int, weight: Tensor, bias: Tensor | None) -> None:
        weight = weight.detach().contiguous()
        numbers, scale = whole_numbers(weight) if self.whole else (None, None)
        given = map(pointer, (weight, numbers, scale, bias))
        had(self.found.clearhead_map(self.handle, side, place, which, *given, weight.shape[1], weight.shape[0]))

    def take_norm(self, side: int, place: int, which: int, norm: nn.Module) -> None:
        if isinstance(norm, LayerNorm | RMSNorm):  # after the last layer of a post-norm model there is none
            rms = isinstance(norm, RMSNorm)
            given = pointer(norm.weight), pointer(norm.bias if isinstance(norm, LayerNorm) else None), c_float(norm.eps)
            had(self.found.clearhead_norm(self.handle, side, place, which, *given, rms))

    def start(self, sources: Int[Tensor, "B S"], pad: int) -> Walk:
        return Walk(self, sources, pad)


class Walk:
    """Where a batch of sources stands, between two steps."""

    def __init__(self, engine: Engine, sources: Int[Tensor, "B S"], pad: int) -> None:
        self.engine = engine
        self.written = 0
        real = sources != pad
        ids, lengths = sources[real].contiguous(), real.sum(1).int()
        self.require(ids, engine.source_vocab)
        self.require_place(int(lengths.max()))
        found = engine.found.clearhead_start(
            engine.handle, pointer(ids), pointer(lengths), len(sources), torch.get_num_threads()
        )
        self.handle = c_void_p(had(found))
        finalize(self, engine.found.clearhead_forget_state, self.handle)
        self.sources = torch.arange(len(sources))
        """Of each row."""
        self.parents = torch.arange(len(sources))
        """Which row of the last step each row continues."""

    def require(self, ids: Int[Tensor, "_"], vocab: int) -> None:
        """The engine reads where it is told to: ids are looked at here."""
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocab:
            raise IndexError(f"an id is not in the vocabulary of {vocab}")

    def require_place(self, length: int) -> None:
        if self.engine.longest is not None and length > self.engine.longest:
            raise ValueError(f"position {length} is beyond max_len {self.engine.longest}")

    def step(self, tokens: Int[Tensor, "R"]) -> None:
        self.require(tokens, self.engine.target_vocab)
        self.require_place(self.written + 1)
        rows = [t.contiguous() for t in (tokens, self.sources, self.parents)]
        had(self.engine.found.clearhead_step(self.handle, *map(pointer, rows), len(tokens)))
        self.parents = torch.arange(len(tokens))
        self.written += 1

    def greedy(
        self, limits: Sequence[int], bos: int, eos: int, never: Int[Tensor, "_"]
    ) -> tuple[list[list[int]], list[float], list[bool]]:
        """The likeliest word each time, to the end: of each source what was written, its log-probability, and whether
        it ended by itself."""
        self.require_place(max(limits))
        n, most = len(limits), max(1, *limits)
        live, last, allowed = torch.arange(n), torch.full((n,), bos), torch.tensor(limits, dtype=torch.int32)
        written, lengths = torch.empty(n, most, dtype=torch.long), torch.zeros(n, dtype=torch.int32)
        sums, ended = torch.zeros(n, dtype=torch.double), torch.zeros(n, dtype=torch.bool)
        found = (pointer(t) for t in (written, lengths, sums, ended))
        choice, left = Choice(pointer(allowed), pointer(never), len(never), most, eos, *found), n
        while left:  # now and then Python gets a turn: somebody may have pressed Ctrl-C
            left = self.engine.found.clearhead_greedy(
                self.handle, left, pointer(live), pointer(last), ctypes.byref(choice), STEPS_AT_ONCE
            )
            had(left >= 0)
        texts = [row[:length] for row, length in zip(written.tolist(), lengths.tolist(), strict=True)]
        return texts, sums.tolist(), ended.tolist()

    def best(self, k: int, never: Int[Tensor, "_"]) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
        """Of each row the k likeliest next words that may be written, likeliest first: log-probabilities and ids."""
        rows = len(self.parents)
        values, ids = torch.empty(rows, k), torch.empty(rows, k, dtype=torch.long)
        normalisers = torch.empty(rows, 1)
        found = (pointer(values), pointer(ids), pointer(normalisers))
        self.engine.found.clearhead_best(self.handle, rows, k, pointer(never), len(never), *found)
        return values.sub_(normalisers), ids

    def logits(self) -> Float[Tensor, "R V"]:
        out = torch.empty(len(self.parents), self.engine.target_vocab)
        self.engine.found.clearhead_logits(self.handle, pointer(out))
        return out

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        self.parents, self.sources = self.parents[rows], self.sources[rows]

    def keep(self, sources: Int[Tensor, "B"], rows: Int[Tensor, "R"]) -> None:
        self.reorder(rows)


_made: Made = WeakKeyDictionary()


def engine(model: Seq2Seq, products: torch.dtype) -> Engine | None:
    """The model in the engine, if that is built, knows such models and has this precision."""
    found = library()
    weight = model.output_weight
    if found is None or not knows(model.settings) or weight.dtype != torch.float32 or weight.device.type != "cpu":
        return None
    if products not in (torch.float32, torch.int8) or (products == torch.int8 and not found.clearhead_fast_whole()):
        return None
    made: Engine = remembered(_made, model, products, lambda: Engine(model, products, found))
    return made
