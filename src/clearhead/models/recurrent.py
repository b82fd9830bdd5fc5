"""The recurrent baseline: what the Transformer replaced.

    encoder      →h_s = LSTM(→h_{s−1}, x_s)     ←h_s = LSTM(←h_{s+1}, x_s)     memory_s = [→h_s, ←h_s]
    decoder      h_t = LSTM(h_{t−1}, E[y_t])    started from the last →h and the first ←h
    attention    context_t = Attention(h_t, memory)                                 one head
    hidden_t     = tanh(W h_t + context_t)                                          logits = hidden Eᵀ

LSTM: Hochreiter & Schmidhuber 1997. Encoder: Bahdanau et al. 2015. Attention after the recurrence, multiplicative,
and the tanh: Luong et al. 2015, §3.1 (their h̃ is `hidden`). Layers above the first are added to what they read, as
in Wu et al. 2016; without that a stack deeper than two hardly trains.

One state is dragged along step by step: no position can be computed before its neighbour, and what stood at the far
end has to survive every step between. Attention over the memory was the first remedy. The attention here is the
Transformer's own brick with one head, so that the recurrence is what differs.

Attention comes after the decoder's recurrence and nothing of it is fed back (no "input feeding"), so that over a
given target each layer runs in one call, and `decode` is `step` taken over the whole target at once. With feeding,
position t+1 would wait for the attention of position t.

Knows ids and weights. Refuses to know text, loss, search.
"""

from __future__ import annotations

import torch
from torch import nn

from clearhead.config import ModelSettings
from clearhead.models.protocol import EncoderDecoder, Memory
from clearhead.nn import masks
from clearhead.nn.attention import Attention, KeyValue
from clearhead.nn.dropout import Dropout
from clearhead.nn.embedding import Embedding, TokenTable
from clearhead.nn.linear import Linear, linear
from clearhead.nn.positions import ScorePositions
from clearhead.nn.shapes import Bool, Float, Int, Tensor
from clearhead.nn.tap import tap

Carried = tuple[Tensor, Tensor]
"""What an LSTM layer carries from one step to the next: its output h and its cell c, each (1, R, D)."""


def lstm(d_in: int, d_out: int) -> nn.LSTM:
    """One layer, one direction: dropout between layers is then ours, counted. The forget gate starts open."""
    layer = nn.LSTM(d_in, d_out, batch_first=True)
    from_below, from_before, bias, second_bias = layer.parameters()
    nn.init.xavier_uniform_(from_below)
    nn.init.orthogonal_(from_before)
    nn.init.zeros_(second_bias)
    gates = torch.tensor([0.0, 1.0, 0.0, 0.0])  # input, forget, cell, output
    with torch.no_grad():
        bias.copy_(gates.repeat_interleave(d_out))
    return layer


def turned(real: Bool[Tensor, "B 1 1 S"]) -> Int[Tensor, "B S 1"]:
    """For every place the one to read from so that each row runs backwards; padding stays where it is."""
    lengths = real.sum(-1).view(-1, 1)
    at = torch.arange(real.shape[3], device=real.device)
    return torch.where(at < lengths, lengths - 1 - at, at)[:, :, None]


class BothWays(nn.Module):
    """Two recurrences over the same rows, one from each end, d_model channels together.

    Padding stands at the end of a row. The one comes to it last; for the other the row is turned around within its
    own length. So padding changes nothing before it, and needs no packed sequences (half as fast on a CPU).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.ahead = lstm(d_model, d_model - d_model // 2)
        self.back = lstm(d_model, d_model // 2)

    def forward(self, x: Float[Tensor, "B S D"], turn: Int[Tensor, "B S 1"]) -> Float[Tensor, "B S D"]:
        ahead, _ = self.ahead(x)
        back, _ = self.back(x.take_along_dim(turn, 1))
        return tap(self, "out", torch.cat((ahead, back.take_along_dim(turn, 1)), -1))


class RecurrentEncoder(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.layers = nn.ModuleList(BothWays(settings.d_model) for _ in range(settings.encoder_layers))
        self.dropout = Dropout(settings.dropout)

    def forward(self, x: Float[Tensor, "B S D"], real: Bool[Tensor, "B 1 1 S"]) -> Float[Tensor, "B S D"]:
        turn = turned(real)
        first, *others = self.layers
        x = self.dropout(first(x, turn))
        for layer in others:
            x = x + self.dropout(layer(x, turn))
        return x


class RecurrentState:
    """Where the decoder stands: what each layer carries, one row per hypothesis, and the memory, one per source."""

    def __init__(self, carried: list[Carried], memory: KeyValue, allowed: Bool[Tensor, "B 1 1 S"] | None) -> None:
        self.carried = carried
        self.memory = memory
        self.allowed = allowed

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row i continues what was row rows[i], of the same source."""
        self.carried = [(h.index_select(1, rows), c.index_select(1, rows)) for h, c in self.carried]

    def keep(self, sources: Int[Tensor, "B"], rows: Int[Tensor, "R"]) -> None:
        """Only these sources go on, and these rows."""
        self.reorder(rows)
        self.memory = KeyValue(*(heads.index_select(0, sources) for heads in self.memory))
        self.allowed = None if self.allowed is None else self.allowed.index_select(0, sources)


class RecurrentDecoder(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        d_model, depth = settings.d_model, settings.decoder_layers
        self.bridge = Linear(d_model, 2 * depth * d_model, bias=settings.bias)
        self.layers = nn.ModuleList(lstm(d_model, d_model) for _ in range(depth))
        self.attention = self._one_head(settings)
        self.own = Linear(d_model, d_model, bias=settings.bias)
        self.dropout = Dropout(settings.dropout)

    def start(self, memory: Memory) -> RecurrentState:
        every = bool(memory.allowed.all())
        carried = self._carried(ends(memory))
        return RecurrentState(carried, self.attention.read(memory.states), None if every else memory.allowed)

    def forward(self, x: Float[Tensor, "R L D"], state: RecurrentState) -> Float[Tensor, "R L D"]:
        """The hidden states of the next tokens; the state moves on."""
        for depth, layer in enumerate(self.layers):
            out, state.carried[depth] = layer(x, state.carried[depth])
            out = self.dropout(tap(self, f"layers.{depth}.out", out))
            x = out if depth == 0 else x + out
        hidden = torch.tanh(self.own(x) + self._context(x, state))
        return self.dropout(tap(self, "hidden", hidden))

    def _context(self, x: Float[Tensor, "R L D"], state: RecurrentState) -> Float[Tensor, "R L D"]:
        """Several hypotheses of one source read its memory as if they were several tokens: it is held once."""
        sources = state.memory.key.shape[0]
        return self.attention(x.reshape(sources, -1, x.shape[2]), state.memory, state.allowed).view_as(x)

    def _carried(self, end: Float[Tensor, "B D"]) -> list[Carried]:
        first = torch.tanh(self.bridge(end)).view(len(end), -1, end.shape[1]).transpose(0, 1).contiguous()
        layers = first.split(1)
        return list(zip(layers[0::2], layers[1::2], strict=True))

    def _one_head(self, settings: ModelSettings) -> Attention:
        d_model = settings.d_model
        scale = d_model**-0.5 if settings.scale_scores else 1.0
        heads = (1, d_model, d_model, 1)
        rate = settings.attention_dropout
        return Attention(d_model, *heads, ScorePositions(), bias=settings.bias, scale=scale, dropout=rate)


def ends(memory: Memory) -> Float[Tensor, "B D"]:
    """What each direction knows after its last step: the one at the last real token, the other at the first."""
    states, allowed = memory
    ahead = states.shape[2] - states.shape[2] // 2
    last = (allowed.sum(-1) - 1).clamp(min=0)  # B 1 1
    return torch.cat((states.take_along_dim(last, 1)[:, 0, :ahead], states[:, 0, ahead:]), -1)


class Recurrent(EncoderDecoder):
    def __init__(self, settings: ModelSettings, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.settings = settings
        target_table = TokenTable(target_vocab, settings.d_model)
        source_table = target_table if settings.tie == "all" else TokenTable(source_vocab, settings.d_model)
        self.source_embedding = self._embedding(source_table)
        self.target_embedding = self._embedding(target_table)
        self.encoder = RecurrentEncoder(settings)
        self.decoder = RecurrentDecoder(settings)
        self.output = TokenTable(target_vocab, settings.d_model) if settings.tie == "none" else target_table

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        real = masks.padding(source, self.pad)
        return Memory(tap(self, "memory", self.encoder(self.source_embedding(source), real)), real)

    def decode(self, target: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        return self.step(target, self.start(memory))

    def start(self, memory: Memory) -> RecurrentState:
        return self.decoder.start(memory)

    def step(self, tokens: Int[Tensor, "R L"], state: RecurrentState) -> Float[Tensor, "R L D"]:  # type: ignore[override]
        return self.decoder(self.target_embedding(tokens), state)

    def logits(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        return tap(self, "logits", linear(tap(self, "hidden", hidden), self.output_weight))

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        return self.output.weight

    @property
    def output_bias(self) -> Float[Tensor, "V"] | None:
        return None

    def _embedding(self, table: TokenTable) -> Embedding:
        """No positions: the recurrence knows the order by going through it."""
        s = self.settings
        return Embedding(table, None, scale=s.embedding_scale, dropout=s.dropout, word_dropout=s.word_dropout)
