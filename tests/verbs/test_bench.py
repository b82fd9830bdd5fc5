"""The bench without peers: what it counts is right, and it leaves a model as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.train.weights import copy_weights
from clearhead.verbs import bench, limits

SETTINGS = ModelSettings(d_model=16, d_ff=24, n_heads=2, encoder_layers=2, decoder_layers=1, dropout=0.0)
VOCAB = 37


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (limits, "SQUARE", 16),
        (limits, "MOVED", 1 << 12),
        (limits, "SECONDS", 1e-4),
        (bench, "STEP_SECONDS", 0.0),
        (bench, "SENTENCES", 3),
        (bench, "TRAIN_SENTENCES", 5),
        (bench, "SINGLES", 2),
        (bench, "LENGTH", 4),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def subject() -> bench.Subject:
    network = build(SETTINGS, VOCAB, VOCAB, seed=1).eval()
    with torch.no_grad():
        network.output_weight[2] = 0.0
    return bench.Subject("small", SETTINGS, network, VOCAB, VOCAB)


@pytest.mark.parametrize("given", [{}, {"activation": "swiglu"}, {"n_kv_heads": 1}, {"d_head": 5, "d_value": 3}])
def test_products_are_those_of_the_weights(given: dict[str, object]) -> None:
    """Per token, a linear map costs two operations a weight; the encoder's maps meet source tokens, the decoder's
    target tokens, but for the keys and values it makes of the memory."""
    settings = SETTINGS.model_copy(update=given)
    source, target = 7, 11
    model = build(settings, VOCAB, VOCAB)
    wanted = 0
    for name, parameter in model.named_parameters():
        of_memory = "cross_attention.key" in name or "cross_attention.value" in name
        if parameter.ndim == 2:
            rows = source if name.startswith("encoder.") or of_memory else target
            wanted += 2 * rows * parameter.numel()
    found = sum(2 * a * b * c for a, b, c in limits.forward_products(settings, VOCAB, source, target))
    assert found == wanted
    assert sum(2 * a * b * c for a, b, c in limits.step_products(settings, VOCAB, source, target)) == 3 * wanted


def test_attention_is_counted_by_pairs_of_tokens() -> None:
    both = torch.tensor([4, 6]), torch.tensor([3, 5])
    linear = sum(2 * a * b * c for a, b, c in limits.step_products(SETTINGS, VOCAB, 10, 8))
    pairs = 2 * (16 + 36) + (9 + 25) / 2 + (12 + 30)
    assert limits.step_operations(SETTINGS, VOCAB, *both) == linear + 3 * 2 * 2 * 16 * pairs


def test_a_rate_is_all_operations_over_all_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {(10, 10, 10): 1e-6, (20, 10, 10): 3e-6}
    monkeypatch.setattr(limits, "product_seconds", lambda shape, dtype: seconds[shape])
    found = limits.rate([(10, 10, 10), (20, 10, 10), (10, 10, 10)], torch.float32)
    assert found == pytest.approx((2000 + 4000 + 2000) / 5e-6 / 1e9)


def test_measured_rates_are_numbers(subject: bench.Subject) -> None:
    machine = limits.measure()
    assert machine.float32 > 0 and machine.bf16 > 0 and machine.bandwidth > 0
    for precision in bench.PRECISIONS:
        found = bench.decoding(subject, precision)
        assert set(found) == {"greedy", "beam 5", "single", "milliseconds"} and min(found.values()) > 0


def test_training_is_measured_and_undone(subject: bench.Subject) -> None:
    before = copy_weights(subject.network)
    found = bench.training(subject)
    after = copy_weights(subject.network)
    assert all(torch.equal(before[name], after[name]) for name in before) and not subject.network.training
    assert found["tokens_per_s"] > 0 and found["fraction"] == pytest.approx(
        found["gflops"] / found["own_shapes_gflops"]
    )


def test_what_is_told(subject: bench.Subject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "subject_of", lambda run: subject)
    monkeypatch.setattr(bench, "process_seconds", lambda *arguments: 0.25)
    said: list[str] = []
    found = bench.bench(None, 1, said.append)
    assert found.as_table()["limits"]["threads"] == 1 and found.start_up == {"help": 0.25, "import torch": 0.25}
    text = "\n".join(bench.lines(found))
    assert "model: small" in text and "float32" in text and "help 0.25 s" in text
    assert said[0] == "this machine's limits …"
