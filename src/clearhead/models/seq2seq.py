"""The Transformer: an encoder and a decoder, chained (Vaswani et al. 2017, figure 1).

    memory = encoder(embed(source))
    hidden = decoder(embed(target so far), memory)
    logits = hidden Eᵀ                                   next word: softmax(logits)

Read `forward` in models/protocol.py: encode, then decode. Knows ids and weights. Refuses to know text, loss, search.
"""

from __future__ import annotations

import torch

from clearhead.config import ModelSettings
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.protocol import EncoderDecoder, Memory
from clearhead.nn import masks
from clearhead.nn.cache import DecoderCache
from clearhead.nn.embedding import Embedding, TokenTable
from clearhead.nn.linear import linear
from clearhead.nn.positions import build_absolute
from clearhead.nn.shapes import Bool, Float, Int, Tensor
from clearhead.nn.tap import tap


class Seq2Seq(EncoderDecoder):
    def __init__(self, settings: ModelSettings, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.settings = settings
        target_table = TokenTable(target_vocab, settings.d_model)
        source_table = target_table if settings.tie == "all" else TokenTable(source_vocab, settings.d_model)
        self.source_embedding = self._embedding(source_table)
        self.target_embedding = self._embedding(target_table)
        self.encoder = Encoder(settings)
        self.decoder = Decoder(settings)
        self.output = TokenTable(target_vocab, settings.d_model) if settings.tie == "none" else target_table

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        real = masks.padding(source, self.pad)
        allowed = masks.both(real, self._pattern(source.shape[1], source.shape[1]))
        return Memory(tap(self, "memory", self.encoder(self.source_embedding(source), allowed)), real)

    def decode(self, target: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        length = target.shape[1]
        allowed = masks.both(masks.causal(length, length, device=target.device), self._pattern(length, length))
        return self.decoder(self.target_embedding(target), allowed, memory.states, memory.allowed)

    def start(self, memory: Memory) -> DecoderCache:
        every = bool(memory.allowed.all())
        return DecoderCache(self.decoder.read(memory.states), None if every else memory.allowed)

    def step(self, tokens: Int[Tensor, "R L"], state: DecoderCache) -> Float[Tensor, "R L D"]:  # type: ignore[override]
        new, past = tokens.shape[1], state.length
        allowed = masks.causal(new, past + new, past, tokens.device) if new > 1 else None
        allowed = masks.both(allowed, self._pattern(new, past + new, past))
        return self.decoder.step(self.target_embedding(tokens, past), allowed, state)

    def logits(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        return tap(self, "logits", linear(tap(self, "hidden", hidden), self.output_weight))

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        return self.output.weight

    @property
    def output_bias(self) -> Float[Tensor, "V"] | None:
        return None

    def _embedding(self, table: TokenTable) -> Embedding:
        s = self.settings
        positions = build_absolute(s.positions, s.max_len, s.d_model)
        return Embedding(table, positions, scale=s.embedding_scale, dropout=s.dropout, word_dropout=s.word_dropout)

    def _pattern(self, queries: int, keys: int, offset: int = 0) -> Bool[Tensor, "1 1 Q K"] | None:
        """The sparse pattern of self-attention, when one is set."""
        reach, stride = self.settings.attention_window, self.settings.attention_stride
        return masks.sparse(queries, keys, reach, stride, offset, self.output_weight.device)


def parameter_count(model: torch.nn.Module) -> int:
    """Learned numbers; tied ones count once."""
    return sum(p.numel() for p in model.parameters())
