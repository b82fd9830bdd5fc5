"""The recurrent baseline: its encoder against torch's own packed LSTM, and what its state carries."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.models.protocol import Memory
from clearhead.models.recurrent import BothWays, Recurrent, ends, lstm, turned
from clearhead.nn import masks

LENGTHS = (7, 1, 5)


@pytest.fixture()
def real() -> Tensor:
    return masks.from_lengths(torch.tensor(LENGTHS), 7)


def recurrent(**changes: object) -> Recurrent:
    shape = {"kind": "recurrent", "d_model": 11, "n_heads": 1, "positions": "none", "dropout": 0.0}
    model = build(ModelSettings(**{**shape, "encoder_layers": 2, "decoder_layers": 3, **changes}), 29, 29)
    assert isinstance(model, Recurrent)
    return model.eval()


def test_turning_reverses_each_row_within_its_length(real: Tensor) -> None:
    assert turned(real)[:, :, 0].tolist() == [
        [6, 5, 4, 3, 2, 1, 0],
        [0, 1, 2, 3, 4, 5, 6],
        [4, 3, 2, 1, 0, 5, 6],
    ]


def test_both_ways_is_torchs_packed_bidirectional_lstm(real: Tensor) -> None:
    both, oracle = BothWays(10), nn.LSTM(10, 5, batch_first=True, bidirectional=True)
    names = [name for name, _ in both.ahead.named_parameters()]
    for name in names:
        getattr(oracle, name).data.copy_(getattr(both.ahead, name))
        getattr(oracle, name + "_reverse").data.copy_(getattr(both.back, name))
    x = torch.randn(3, 7, 10, generator=torch.Generator().manual_seed(3))
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(oracle(packed)[0], batch_first=True)
    places = real[:, 0, 0, :]
    torch.testing.assert_close(both(x, turned(real))[places], expected[places], atol=1e-6, rtol=0)


def test_an_odd_width_is_shared_out() -> None:
    both = BothWays(11)
    assert (both.ahead.hidden_size, both.back.hidden_size) == (6, 5)
    assert recurrent()(torch.full((2, 3), 7), torch.full((2, 5), 8)).shape == (2, 5, 11)


def test_the_ends_are_the_last_steps_of_both_directions(real: Tensor) -> None:
    states = torch.arange(3 * 7 * 3.0).view(3, 7, 3)
    found = ends(Memory(states, real))
    for row, length in enumerate(LENGTHS):
        assert found[row].tolist() == [*states[row, length - 1, :2].tolist(), states[row, 0, 2].item()]


def test_the_forget_gate_starts_open() -> None:
    layer = lstm(3, 5)
    assert (layer.bias_ih_l0 + layer.bias_hh_l0).tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 10


def test_the_first_state_comes_from_the_source() -> None:
    model = recurrent()
    first, other = (model.start(model.encode(torch.tensor([ids]))) for ids in ([7, 8, 9], [7, 8, 10]))
    assert len(first.carried) == 3
    for (h, c), (other_h, other_c) in zip(first.carried, other.carried, strict=True):
        assert h.shape == c.shape == (1, 1, 11)
        assert not torch.allclose(h, other_h) and not torch.allclose(c, other_c)


def test_decode_leaves_the_memory_as_it_was() -> None:
    model = recurrent()
    memory = model.encode(torch.tensor([[7, 8, 9], [7, 8, 0]]))
    before = memory.states.clone()
    target = torch.tensor([[1, 5, 6], [1, 6, 5]])
    assert torch.equal(model.decode(target, memory), model.decode(target, memory))
    assert torch.equal(memory.states, before)


def test_the_state_follows_its_hypotheses() -> None:
    """Three hypotheses of each of two sources are reordered, then one source leaves."""
    model = recurrent()
    source = torch.tensor([[7, 8, 9, 10], [11, 12, 0, 0]])
    state = model.start(model.encode(source))
    model.step(torch.tensor([[1], [1]]), state)
    state.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    model.step(torch.tensor([[13], [14], [15], [16], [17], [18]]), state)
    state.reorder(torch.tensor([2, 0, 0, 5, 4, 4]))
    state.keep(torch.tensor([1]), torch.tensor([3, 4, 5]))
    found = model.step(torch.tensor([[19], [20], [21]]), state)[:, 0]
    written = torch.tensor([[1, 18, 19], [1, 17, 20], [1, 17, 21]])
    expected = model(source[1:].expand(3, 4), written)[:, -1]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
