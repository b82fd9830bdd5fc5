"""The recurrence as the notes have it: one state, dragged along step by step, and nothing else handed on.

The toolkit's own LSTM baseline reads from both ends and looks back by attention: those were the first remedies. Here
both are taken away again. Knows the baseline. Refuses to know tasks.
"""

from __future__ import annotations

import torch

from clearhead.config import ModelSettings
from clearhead.models.protocol import EncoderDecoder, Memory
from clearhead.models.recurrent import Recurrent, RecurrentState
from clearhead.models.seq2seq import Seq2Seq
from clearhead.nn.attention import KeyValue
from clearhead.nn.shapes import Int, Tensor
from clearhead.truths.truth import Given

KINDS = ("Transformer", "LSTM, its state alone", "LSTM, both ways, with attention")


class StateAlone(Recurrent):
    """What the decoder gets is where the forward LSTM ended."""

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        states, allowed = super().encode(source)
        ahead = states.shape[2] - states.shape[2] // 2
        return Memory(torch.cat((states[:, :, :ahead], torch.zeros_like(states[:, :, ahead:])), -1), allowed)

    def start(self, memory: Memory) -> RecurrentState:
        state = super().start(memory)
        state.memory = KeyValue(state.memory.key, torch.zeros_like(state.memory.value))
        return state


def network(kind: str, vocabulary: int, given: Given, **shape: object) -> EncoderDecoder:
    """Of about equal size, the same width and depth."""
    table = {"d_model": 64, "d_ff": 128, "n_heads": 4, "dropout": 0.0, "encoder_layers": 2, "decoder_layers": 1} | shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(given.seed)
        if kind == KINDS[0]:
            return Seq2Seq(ModelSettings.model_validate(table), vocabulary, vocabulary)
        made = StateAlone if kind == KINDS[1] else Recurrent
        # One layer: in a second one the two directions would have met.
        return made(ModelSettings.model_validate(table | {"encoder_layers": 1}), vocabulary, vocabulary)
