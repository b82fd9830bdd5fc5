"""Every kind of model that can be built obeys the protocol: the same promises for the Transformer and its baselines."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from clearhead.config import DecodeSettings, ModelSettings, TrainSettings
from clearhead.decode.decode import decode
from clearhead.decode.rank import Hypothesis
from clearhead.decode.step import BOS, EOS, PAD
from clearhead.models.build import KINDS, Undrawn, build
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.dropout import draws
from clearhead.nn.linear import products_in
from clearhead.nn.tap import listen
from clearhead.randomness import Site
from clearhead.train.loss import smoothed_cross_entropy
from clearhead.train.optim import Optimiser, split_parameters

VOCAB = 29
BASELINES = ("recurrent", "convolutional")


def settings(kind: str, **changes: object) -> ModelSettings:
    table = {"kind": kind, "d_model": 22, "d_ff": 13, "n_heads": 2, "d_head": 3, "encoder_layers": 3}
    return ModelSettings(**{**table, "decoder_layers": 2, "dropout": 0.0, **changes})


def awake(model: EncoderDecoder) -> EncoderDecoder:
    """Biases start at zero, where many mistakes do not show."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return model.eval()


@pytest.fixture(params=sorted(KINDS))
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return awake(build(settings(request.param), VOCAB, VOCAB))


@pytest.fixture(scope="module")
def source() -> Tensor:
    ids = torch.randint(5, VOCAB, (3, 7), generator=torch.Generator().manual_seed(1))
    for row, length in enumerate((7, 2, 5)):
        ids[row, length:] = 0
    return ids


@pytest.fixture(scope="module")
def target() -> Tensor:
    return torch.randint(5, VOCAB, (3, 11), generator=torch.Generator().manual_seed(2))


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def widened(ids: Tensor, by: int) -> Tensor:
    return torch.nn.functional.pad(ids, (0, by))


def test_every_kind_of_the_settings_is_built() -> None:
    assert set(KINDS) == set(ModelSettings.model_fields["kind"].annotation.__args__)
    for kind, cls in KINDS.items():
        assert type(build(settings(kind), VOCAB, VOCAB)) is cls


@pytest.mark.parametrize("kind", KINDS)
def test_weights_follow_from_the_seed_alone(kind: str) -> None:
    before = torch.random.get_rng_state()
    first, again, other = (build(settings(kind), VOCAB, VOCAB, seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = zip(first.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(first.output_weight, other.output_weight)


@pytest.mark.parametrize("cuts", [[1] * 11, [3, 1, 5, 2]])
def test_stepping_is_the_whole_target_at_once(
    model: EncoderDecoder, source: Tensor, target: Tensor, cuts: list[int]
) -> None:
    memory = model.encode(source)
    state = model.start(memory)
    steps = [model.step(tokens, state) for tokens in target.split(cuts, 1)]
    close(torch.cat(steps, 1), model.decode(target, memory))


def test_a_sentence_alone_and_in_a_batch(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    together = model(source, target)
    for row, length in enumerate((7, 2, 5)):
        close(model(source[row : row + 1, :length], target[row : row + 1]), together[row : row + 1])


def test_padding_changes_nothing(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    close(model(widened(source, 6), widened(target, 4))[:, :11], model(source, target))


def test_what_stands_at_padding_cannot_leak(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    before = model(source, target)
    with torch.no_grad():
        model.source_embedding.table.weight[0] += 100.0  # of padding; targets have none
    close(model(source, target), before)


def test_the_future_never_changes_the_past(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    changed = target.clone()
    changed[:, 6:] = 5 + (changed[:, 6:] - 4) % (VOCAB - 5)
    before, after = model(source, target), model(source, changed)
    assert torch.equal(before[:, :6], after[:, :6])
    assert (before[:, 6:] != after[:, 6:]).any(-1).all()


def test_every_source_word_is_heard(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    before = model(source, target)
    for at in range(7):
        changed = source.clone()
        changed[0, at] = 5 + (changed[0, at] - 4) % (VOCAB - 5)
        after = model(changed, target)
        assert (after[0] - before[0]).abs().max() > 1e-4
        close(after[1:], before[1:])


@pytest.mark.parametrize("tie", ["all", "target", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_gets_a_gradient(kind: str, tie: str, source: Tensor, target: Tensor) -> None:
    model = awake(build(settings(kind, tie=tie), VOCAB, VOCAB))
    smoothed_cross_entropy(model(source, target).flatten(0, 1), model.output_weight, target.flatten(), 0.1).backward()
    # a bias of keys adds the same to all scores of a query: softmax does not see it
    silent = [
        name
        for name, parameter in model.named_parameters()
        if not name.endswith("key.bias") and (parameter.grad is None or not parameter.grad.abs().max() > 0)
    ]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS)
def test_tying_shares_the_tables(kind: str) -> None:
    def tables(tie: str, source_vocab: int = VOCAB) -> list[tuple[int, ...]]:
        model = build(settings(kind, tie=tie), source_vocab, VOCAB)
        assert model.output_weight.shape == (VOCAB, 22)
        return sorted(tuple(table.shape) for table in split_parameters(model)[1])

    assert tables("all") == [(VOCAB, 22)]
    assert tables("target", 31) == [(VOCAB, 22), (31, 22)]
    assert tables("none", 31) == [(VOCAB, 22), (VOCAB, 22), (31, 22)]


@pytest.mark.parametrize("kind", BASELINES)
def test_no_matrix_of_a_baseline_counts_as_a_vector(kind: str) -> None:
    """What is not two-dimensional is neither decayed nor given to Muon."""
    model = build(settings(kind), VOCAB, VOCAB)
    assert all(vector.ndim == 1 for vector in split_parameters(model)[2])


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_optimiser_moves_every_parameter(kind: str, optimiser: str, source: Tensor, target: Tensor) -> None:
    model = awake(build(settings(kind), VOCAB, VOCAB))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    step = Optimiser(model, TrainSettings(optimiser=optimiser)).step
    smoothed_cross_entropy(model(source, target).flatten(0, 1), model.output_weight, target.flatten(), 0.1).backward()
    step(1.0)
    still = [n for n, p in model.named_parameters() if torch.equal(p, before[n]) and not n.endswith("key.bias")]
    assert still == []


def test_bf16_products_are_near(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    exact = model(source, target)
    with products_in(torch.bfloat16):
        rounded = model(source, target)
    assert rounded.dtype == torch.float32
    assert 0 < (rounded - exact).abs().max() < 0.2


@pytest.mark.parametrize("search", [{"method": "greedy"}, {"beam": 4, "n_best": 4}])
def test_search_runs_and_its_scores_hold(model: EncoderDecoder, search: dict[str, object]) -> None:
    """The score a search gives is that of one pass over its output: true only if the state follows its hypotheses."""
    sources = [[7, 8, 9, 10, 11], [12], [13, 14, 15], [16, 17]]
    chosen = DecodeSettings(**search, max_extra=4, length_penalty=0.0)
    found = decode(model, sources, chosen)
    for source, hypotheses in zip(sources, found, strict=True):
        assert len(hypotheses) == chosen.n_best
        for h in hypotheses:
            assert h.log_probability == pytest.approx(log_probability(model, source, h), abs=1e-4)
        assert [h.tokens for h in decode(model, [source], chosen)[0]] == [h.tokens for h in hypotheses]


def log_probability(model: EncoderDecoder, source: list[int], h: Hypothesis) -> float:
    written = [*h.tokens, EOS] if h.ended else [*h.tokens]
    hidden = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *written[:-1]]]))
    log_p = model.logits(hidden)[0].log_softmax(-1)
    return log_p[range(len(written)), written].sum().item()


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_counted(kind: str, source: Tensor, target: Tensor) -> None:
    """A function of step and place: again the same, in pieces the same, padded the same, at the next step another."""
    model = awake(build(settings(kind, dropout=0.2, word_dropout=0.1), VOCAB, VOCAB))

    def hidden(step: int, rows: slice = slice(None), pad: int = 0) -> Tensor:
        with draws(Site(1, "dropout", step), torch.arange(3)[rows]):
            return model(widened(source[rows], pad), target[rows])

    first = hidden(5)
    assert torch.equal(first, hidden(5))
    close(torch.cat((hidden(5, slice(0, 1)), hidden(5, slice(1, 3)))), first)
    close(hidden(5, pad=3), first)
    assert (first - hidden(6)).abs().max() > 0.1
    assert (first - model(source, target)).abs().max() > 0.1


def test_listening_changes_nothing(model: EncoderDecoder, source: Tensor, target: Tensor) -> None:
    heard: dict[str, Tensor] = {}
    expected = model(source, target)
    with listen(model, lambda name, tensor: heard.setdefault(name, tensor)):
        close(model(source, target), expected)
    patterns = [tensor for name, tensor in heard.items() if name.startswith("decoder") and name.endswith("pattern")]
    assert patterns and all(pattern.sum(-1).allclose(torch.ones(())) for pattern in patterns)


COPY_VOCAB, LONGEST = 16, 6


def copies(n: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LONGEST + 1, (n,), generator=generator).tolist()
    return [torch.randint(5, COPY_VOCAB, (length,), generator=generator).tolist() for length in lengths]


def copy_batch(rows: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Source, what the decoder reads, what it should write."""

    def laid_out(before: list[int], after: list[int]) -> Tensor:
        wide = [before + row + after + [PAD] * (LONGEST - len(row)) for row in rows]
        return torch.tensor(wide)

    return laid_out([], [EOS]), laid_out([BOS], []), laid_out([], [EOS])


@pytest.mark.parametrize("kind", BASELINES)
def test_copying_is_learned_in_seconds(kind: str) -> None:
    shape = ModelSettings(kind=kind, d_model=64, d_ff=128, n_heads=2, encoder_layers=1, decoder_layers=1)
    model = build(shape, COPY_VOCAB, COPY_VOCAB)
    train = TrainSettings(lr=5e-3)
    optimiser = Optimiser(model, train)
    for step in range(150):
        source, read, wanted = copy_batch(copies(128, step))
        with draws(Site(1, "dropout", step), torch.arange(128)):
            hidden = model(source, read)[wanted != PAD]
        targets = wanted[wanted != PAD]
        model.zero_grad()
        (smoothed_cross_entropy(hidden, model.output_weight, targets, 0.1) / len(targets)).backward()
        optimiser.step(min(1.0, (step + 1) / 30, (150 - step) / 60))
    fresh = copies(200, seed=10_000)
    written = decode(model.eval(), fresh, DecodeSettings(method="greedy"))
    exact = sum(list(w[0].tokens) == row for w, row in zip(written, fresh, strict=True)) / len(fresh)
    assert exact >= 0.9


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_undrawn_models_have_every_weight_and_drew_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their shapes are those of a drawn one; nothing was drawn, also not without memory; afterwards all draw again."""
    drawn = build(settings(kind), VOCAB, VOCAB).state_dict()
    with Undrawn():
        undrawn = build(settings(kind), VOCAB, VOCAB).state_dict()
    with torch.device("meta"), Undrawn():
        outline = build(settings(kind), VOCAB, VOCAB).state_dict()
    assert {n: t.shape for n, t in undrawn.items()} == {n: t.shape for n, t in drawn.items()}
    assert {n: t.shape for n, t in outline.items()} == {n: t.shape for n, t in drawn.items()}
    with Undrawn():
        kept = torch.nn.init.normal_(torch.full((5,), 3.0)), torch.nn.init.uniform_(torch.full((5,), 4.0))
    assert kept[0].tolist() == [3.0] * 5 and kept[1].tolist() == [4.0] * 5
    again = build(settings(kind), VOCAB, VOCAB).state_dict()
    assert all(torch.equal(again[name], drawn[name]) for name in drawn)


def test_the_shapes_of_a_model_are_had_without_the_compiler() -> None:
    """torch's compiler takes longer to load than torch itself, and any opened model would pay for it."""
    program = """
import sys, torch
from clearhead.config import ModelSettings
from clearhead.models.build import Undrawn, build
kinds = [{"positions": p} for p in ("sinusoidal", "learned", "rotary", "alibi", "relative-t5", "relative-shaw")]
for given in [*kinds, {"kind": "recurrent"}, {"kind": "convolutional"}, {"norm": "rms"}, {"norm": "batch"}]:
    with torch.device("meta"), Undrawn():
        build(ModelSettings(**given), 300, 300)
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
