"""Each compiled loop of training against the equation it stands for, in float64, one sequence after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.native import loops, rows
from clearhead.native.loops import Activate, Attend, Drop, Dropped, Heads, Join, Norm, Products
from clearhead.native.rows import Rows, rows_of
from clearhead.nn.dropout import current_draws, draws, dropout, share_dropped
from clearhead.nn.linear import products_in
from clearhead.randomness import Site
from clearhead.train import loss

LENGTHS = [40, 1, 16, 17, 5, 33, 2]
READ = [17, 33, 1, 40, 16, 0, 30]
D, SITE = 32, Site(7, "dropout", 3)
GARBAGE = 13.0
"""What stands in rows that are only room, where a loop must not look."""


@pytest.fixture(autouse=True)
def built(compiled: Path) -> None:
    assert loops.loops() is not None


@pytest.fixture(params=[1, 2, 7])
def threads(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """However few numbers there are."""
    monkeypatch.setattr(loops, "SHARE", 1)
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)


def rows_with(lengths: list[int]) -> Rows:
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.arange(5, 5 + length)
    return rows_of(ids, 0)


ROWS = rows_with(LENGTHS)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers that dtype can hold."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def in_rows(width: int, seed: int = 0, dtype: torch.dtype = torch.float32, of: Rows = ROWS) -> Tensor:
    """A number for each row and channel; garbage where there is only room."""
    made = draw(of.room, width, seed=seed, dtype=dtype)
    made[of.count :] = GARBAGE
    return made.requires_grad_()


def double(x: Tensor, of: Rows = ROWS) -> Tensor:
    """The same leaf for the oracle, without the room."""
    kept = x[: of.count] if len(x) == of.room else x
    return kept.detach().double().requires_grad_()


def near(found: Tensor, exact: Tensor, tolerance: float = 2e-5) -> None:
    """Within a rounding of its type, and float32's own error."""
    unit = 2**-8 if found.dtype == torch.bfloat16 else 0.0
    off = (found.double() - exact).abs()
    assert (off <= unit * exact.abs() + tolerance * max(exact.abs().max().item(), 1.0)).all(), off.max()


def agree(
    ours: Callable[..., Any],
    oracle: Callable[..., Any],
    leaves: list[Tensor | None],
    of: tuple[Rows, ...],
    tolerance: float = 2e-5,
) -> None:
    """Values and gradients by every leaf, which lies in rows of `of` or in none; zeros where there is only room."""
    given = [leaf for leaf in leaves if leaf is not None]
    counts = [next((r.count for r in of if leaf.dim() == 2 and len(leaf) == r.room), len(leaf)) for leaf in given]
    exact = [leaf.detach()[:count].double().requires_grad_() for leaf, count in zip(given, counts, strict=True)]
    place = iter(exact)
    found, expected = ours(*leaves), oracle(*(None if leaf is None else next(place) for leaf in leaves))
    back = [draw(*y.shape, seed=90 + i, dtype=y.dtype) for i, y in enumerate(found)]
    exact_back = [g[: len(y)].double() for g, y in zip(back, expected, strict=True)]
    slopes = torch.autograd.grad(found, given, [g.clone() for g in back])
    for a, b in zip((*found, *slopes), (*expected, *torch.autograd.grad(expected, exact, exact_back)), strict=True):
        near(a[: len(b)], b, tolerance)
        assert not a[len(b) :].any()


def drop_at(rate: float) -> Drop | None:
    """As a training pass draws; its mask, widened, is what `masked` multiplies by."""
    drawn = current_draws()
    return Drop(ROWS, drawn.places, drawn.next_key(), share_dropped(rate)) if drawn and rate else None


def mask(rate: float, width: int, padded: int = max(LENGTHS)) -> Tensor:
    """What the bricks multiply by, in a batch padded to `padded`, at the places of the rows."""
    with draws(SITE, torch.arange(len(LENGTHS))):
        kept = dropout(torch.ones(len(LENGTHS), padded, width), rate)
    return torch.cat([kept[sample, :length] for sample, length in enumerate(LENGTHS)])


# ------------------------------------------------------------------------------------------------ the stream


JOINS = [
    (wanted, part, bias)
    for wanted in ("sh", "yh", "y", "h")
    for part, bias in ((True, True), (True, False), (False, False))
    if part or "s" not in wanted  # a stream that nobody changed is not asked for
]


@pytest.mark.parametrize("rate", [0.0, 0.2])
@pytest.mark.parametrize("norm", ["layer", "bare", "rms", "none"])
@pytest.mark.parametrize(("wanted", "part", "bias"), JOINS)
def test_join(wanted: str, part: bool, bias: bool, norm: str, rate: float, threads: int) -> None:
    about = None if norm == "none" else Norm(1e-5, norm == "rms")
    leaves = [
        in_rows(D, 1),
        in_rows(D, 2, torch.bfloat16) if part else None,
        draw(D, seed=3).requires_grad_() if bias else None,
        draw(D, seed=4).requires_grad_() if about else None,
        draw(D, seed=5).requires_grad_() if norm == "layer" else None,
    ]

    def ours(*given: Tensor) -> list[Tensor]:
        with draws(SITE, torch.arange(len(LENGTHS))):
            found = Join.apply(*given, ROWS, about, drop_at(rate) if part else None, wanted)
        return [y for y in found if y is not None]

    def oracle(x: Tensor, part: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor) -> list[Tensor]:
        s = x if part is None else x + (part if bias is None else part + bias) * (mask(rate, D).double() if rate else 1)
        y = s
        if norm in ("layer", "bare"):
            y = F.layer_norm(s, (D,), gamma, beta, 1e-5)
        if norm == "rms":
            y = s / (s.square().mean(-1, keepdim=True) + 1e-5).sqrt() * gamma
        return [{"s": s, "y": y, "h": y}[name] for name in wanted]

    agree(ours, oracle, leaves, (ROWS,))


def test_what_nobody_asks_for_has_no_gradient(threads: int) -> None:
    """s, y or h alone may be what the rest of the pass follows from."""
    gamma = draw(D, seed=4)
    for used in range(2):
        x, part = in_rows(D, 1), in_rows(D, 2, torch.bfloat16)
        found = [y for y in Join.apply(x, part, None, gamma, None, ROWS, Norm(1e-5, True), None, "sh") if y is not None]
        back = draw(*found[used].shape, seed=6, dtype=found[used].dtype)
        (ours,) = torch.autograd.grad(found[used], [x], back)
        exact, fixed = double(x), double(part)
        s = exact + fixed
        y = s if used == 0 else s / (s.square().mean(-1, keepdim=True) + 1e-5).sqrt() * gamma.double()
        near(ours[: ROWS.count], torch.autograd.grad(y, [exact], back[: ROWS.count].double())[0])


@pytest.mark.parametrize("padded", [max(LENGTHS), 61])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.999])
def test_masks_are_those_of_the_bricks_to_the_bit(rate: float, padded: int, threads: int) -> None:
    """In both loops that drop, forward and back, however far the bricks' batch is padded."""
    expected = mask(rate, D, padded)
    ones = torch.ones(ROWS.room, D)
    with draws(SITE, torch.arange(len(LENGTHS))):
        drop = drop_at(rate)
    x, part = ones.clone().requires_grad_(), ones.bfloat16().requires_grad_()
    alone = Dropped.apply(x, drop)
    joined, _, _ = Join.apply(torch.zeros_like(ones), part, None, None, None, ROWS, None, drop, "s")
    found = [alone, joined, *torch.autograd.grad([alone, joined], [x, part], [ones, ones])]
    for y in found[:3]:
        assert torch.equal(y[: ROWS.count], expected)
    assert torch.equal(found[3][: ROWS.count], expected.bfloat16())
    assert not any(y[ROWS.count :].any() for y in found)


@pytest.mark.parametrize("bits", [0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, -1])
def test_what_is_not_finite_is_neither_dropped_nor_rounded_away(bits: int) -> None:
    """Infinity, and what is not a number, whatever else its bits say."""
    x = torch.full((ROWS.room, D), bits, dtype=torch.int32).view(torch.float32)
    with draws(SITE, torch.arange(len(LENGTHS))):
        drop = drop_at(0.9)
    assert not Dropped.apply(x, drop)[: ROWS.count].isfinite().any()
    h = Join.apply(x, None, None, None, None, ROWS, None, None, "h")[2]
    assert not h[: ROWS.count].isfinite().any() and not h[ROWS.count :].any()


def test_memory_that_is_not_there_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "loops", lambda: SimpleNamespace(clearhead_surprise=lambda *given: False))
    with pytest.raises(MemoryError):
        loops.surprise(draw(3, 7, dtype=torch.bfloat16), torch.tensor([1, 2, 3]), torch.zeros(3), 0.9)


# ------------------------------------------------------------------------------------------------ between products


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("squared", [False, True])
def test_activate(squared: bool, bias: bool, threads: int) -> None:
    def oracle(u: Tensor, beta: Tensor | None) -> list[Tensor]:
        h = (u if beta is None else u + beta).clamp(min=0)
        return [h * h if squared else h]

    leaves = [in_rows(48, 1, torch.bfloat16), draw(48, seed=2).requires_grad_() if bias else None]
    tolerance = 2e-3 if squared else 2e-5  # on the way back u is the root of what was rounded
    agree(lambda u, beta: [Activate.apply(u.clone(), beta, ROWS, squared)], oracle, leaves, (ROWS,), tolerance)


def test_products() -> None:
    """Several maps of the same rows, side by side; numbers of rows and outputs that are no multiples of anything."""
    h = draw(61, D, seed=1, dtype=torch.bfloat16).requires_grad_()
    weights = [draw(n, D, seed=2 + n).bfloat16().float().requires_grad_() for n in (7, 48, 1)]
    y = Products.apply(h, *weights)
    exact = [leaf.detach().double().requires_grad_() for leaf in (h, *weights)]
    expected = exact[0] @ torch.cat(exact[1:]).T
    near(y, expected)
    back = draw(*y.shape, seed=9, dtype=torch.bfloat16)
    theirs = torch.autograd.grad(expected, exact, back.double())
    for a, b in zip(torch.autograd.grad(y, [h, *weights], back), theirs, strict=True):
        near(a.bfloat16(), b)


# ------------------------------------------------------------------------------------------------ attention


def turned(x: Tensor) -> Tensor:
    """Each pair of channels as one complex number, turned by its position's angle."""
    length, width = x.shape
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (
        torch.arange(0, width, 2, dtype=torch.float64) / width
    )
    pairs = torch.view_as_complex(x.reshape(length, -1, 2).contiguous()) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(pairs).flatten(1)


def attention(heads: Heads, query: Tensor, key: Tensor, value: Tensor, of: Rows, read: Rows) -> Tensor:
    """Sequence by sequence, head by head."""
    each, mixed = heads.heads // heads.groups, []
    for s in range(of.sequences):
        own, others = slice(of.start[s], of.start[s + 1]), slice(read.start[s], read.start[s + 1])
        columns = []
        for head in range(heads.heads):
            group = head // each
            q = query[own, head * heads.h : (head + 1) * heads.h]
            k = key[others, group * heads.h : (group + 1) * heads.h]
            v = value[others, group * heads.u : (group + 1) * heads.u]
            if heads.turning:
                q, k = turned(q), turned(k)
            scores = q @ k.T * heads.scale
            if heads.causal:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
            columns.append(scores.softmax(-1) @ v if len(k) else 0 * q.sum() + v.new_zeros(len(q), heads.u))
        mixed.append(torch.cat(columns, 1))
    return torch.cat(mixed)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("h", "u", "heads", "groups"), [(16, 16, 2, 2), (10, 7, 4, 2), (40, 37, 3, 1), (2, 1, 1, 1), (24, 33, 2, 1)]
)
@pytest.mark.parametrize("kind", ["self", "causal", "turning", "causal turning", "cross"])
def test_attend(kind: str, h: int, u: int, heads: int, groups: int, bias: bool, threads: int) -> None:
    about = Heads(heads, groups, h, u, h**-0.5, "causal" in kind, "turning" in kind)
    wide, keys = heads * h, groups * h
    read = rows_with(READ) if kind == "cross" else ROWS
    own, read_width = (wide, keys + groups * u) if kind == "cross" else (wide + keys + groups * u, 0)
    leaves = [
        in_rows(own, 1, torch.bfloat16),
        in_rows(read_width, 2, torch.bfloat16, read) if kind == "cross" else None,
        *(draw(n, seed=3 + n).requires_grad_() if bias else None for n in (wide, keys, groups * u)),
    ]

    def ours(asking: Tensor, asked: Tensor | None, *biases: Tensor | None) -> list[Tensor]:
        return [Attend.apply(asking, asked, about, ROWS, read, *biases)]

    def oracle(asking: Tensor, asked: Tensor | None, *biases: Tensor | None) -> list[Tensor]:
        query = asking[:, :wide]
        key, value = (asking[:, wide:] if asked is None else asked).split([keys, groups * u], 1)
        parts = [x if b is None else x + b for x, b in zip((query, key, value), biases, strict=True)]
        return [attention(about, *parts, ROWS, read)]

    agree(ours, oracle, leaves, (ROWS, read))


@pytest.mark.parametrize("length", range(1, 41))
def test_attend_any_length(length: int) -> None:
    """A single sequence, its numbers so far apart that a key too many or too few would be seen."""
    of, about = rows_with([length]), Heads(1, 1, 4, 3, 3.0, True, False)
    leaves = [in_rows(11, length, torch.bfloat16, of)]

    def oracle(x: Tensor) -> list[Tensor]:
        return [attention(about, *x.split([4, 4, 3], 1), of, of)]

    agree(lambda x: [Attend.apply(x, None, about, of, of, None, None, None)], oracle, leaves, (of,))


def test_a_source_without_a_token_reads_zeros() -> None:
    """And gives no gradient; the biases of its keys and values are not read either."""
    read, about = rows_with(READ), Heads(2, 1, 10, 7, 0.3, False, False)
    empty = slice(ROWS.start[READ.index(0)], ROWS.start[READ.index(0) + 1])
    asking, asked = in_rows(20, 1, torch.bfloat16), in_rows(17, 2, torch.bfloat16, read)
    mixed = Attend.apply(asking, asked, about, ROWS, read, None, draw(10), draw(7))
    assert not mixed[empty].any() and mixed[: ROWS.count].any(1).sum() == ROWS.count - LENGTHS[READ.index(0)]
    (back,) = torch.autograd.grad(mixed, [asking], torch.ones_like(mixed))
    assert not back[empty].any()


# ------------------------------------------------------------------------------------------------ the loss


def known(logits: Tensor, targets: Tensor) -> Tensor:
    return logits.gather(1, targets[:, None])[:, 0].float()


@pytest.mark.parametrize("vocab", [1, 5, 16, 17, 61, 128])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_surprise(vocab: int, size: float, threads: int) -> None:
    logits, kept = (size * draw(13, vocab, seed=1)).bfloat16(), 0.9
    targets = torch.arange(13) * 7 % vocab
    exact = logits.double()
    normalisers = loops.surprise(logits, targets, known(logits, targets), kept)
    near(normalisers, exact.logsumexp(1))
    near(logits, exact.softmax(1) - kept * F.one_hot(targets, vocab))


@pytest.mark.parametrize("vocab", [1, 5, 16, 17, 61, 128])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_disagree(vocab: int, size: float, threads: int) -> None:
    logits, kept, weight = (size * draw(26, vocab, seed=1)).bfloat16(), 0.9, 0.7
    targets = torch.arange(13) * 7 % vocab
    exact = logits.double().requires_grad_()
    log_p, log_q = exact.log_softmax(1).chunk(2)
    expected = (log_p.exp() * (log_p - log_q)).sum(1) + (log_q.exp() * (log_q - log_p)).sum(1)
    both = torch.cat((targets, targets))
    surprise = 0.5 * (exact.logsumexp(1) - kept * exact[torch.arange(26), both])
    (slopes,) = torch.autograd.grad(surprise.sum() + weight * expected.sum(), [exact])
    normalisers, divergences = loops.disagree(logits, targets, known(logits, both), kept, weight)
    near(normalisers, exact.detach().logsumexp(1))
    near(divergences, expected.detach())
    near(logits, slopes)


@pytest.mark.parametrize("rdrop", [0.0, 2.0])
@pytest.mark.parametrize(("count", "vocab"), [(13, 31), (1, 7), (0, 31), (700, 61)])
def test_losses_are_those_of_the_same_logits_in_float64(rdrop: float, count: int, vocab: int) -> None:
    """Hidden states and weights that bfloat16 can hold, so that the logits alone are rounded."""
    passes = 2 if rdrop else 1
    leaves = [draw(passes * count, D, seed=1, dtype=torch.bfloat16), draw(vocab, D, seed=2, dtype=torch.bfloat16)]
    targets = torch.arange(count) % vocab

    def value(hidden: Tensor, weight: Tensor) -> Tensor:
        if rdrop:
            return loss.rdrop_cross_entropy(hidden, weight, targets, 0.1, rdrop)
        return loss.smoothed_cross_entropy(hidden, weight, targets, 0.1)

    exact, ours = ([leaf.to(dtype).requires_grad_() for leaf in leaves] for dtype in (torch.float64, torch.float32))
    expected = value(*exact)
    with products_in(torch.bfloat16):
        found = value(*ours)
    assert found.item() == pytest.approx(expected.item(), rel=3e-3, abs=1e-6)
    theirs = torch.autograd.grad(expected, exact)
    for a, b in zip(torch.autograd.grad(found, ours), theirs, strict=True):
        assert (a.double() - b).norm() <= 0.01 * b.norm()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_loss_of_a_sure_model_is_not_negative(alpha: float) -> None:
    """However its logits are rounded."""
    weight, targets = draw(61, D), torch.arange(200) % 61
    hidden = (4 * weight[targets] + 0.3 * draw(200, D, seed=1)).repeat(2 if alpha else 1, 1)
    with products_in(torch.bfloat16):
        if alpha:
            found = loss.rdrop_cross_entropy(hidden, weight, targets, 0.0, alpha).item()
        else:
            found = loss.smoothed_cross_entropy(hidden, weight, targets, 0.0).item()
    assert -1e-3 < found / 200 < 1e-3


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_told(value: float) -> None:
    """Wherever they stand in the row."""
    for place in range(19):
        logits = draw(2, 19, dtype=torch.bfloat16)
        logits[0, place] = value
        first, zeros, some = logits.clone(), torch.zeros(2, dtype=torch.long), torch.zeros(2)
        assert not loops.surprise(first, zeros, some, 0.9)[0].isfinite() and first[0].isnan().any()
        assert not loops.disagree(logits, zeros[:1], some, 0.9, 1.0)[1].isfinite().any()


@pytest.mark.parametrize("target", [-1, 31])
def test_nothing_is_written_beyond_a_row(target: int) -> None:
    logits, targets = draw(6, 31, dtype=torch.bfloat16), torch.tensor([5, target, 6])
    with pytest.raises(IndexError, match="vocabulary of 31"):
        loops.surprise(logits[:3], targets, torch.zeros(3), 0.9)
    with pytest.raises(IndexError, match="vocabulary of 31"):
        loops.disagree(logits, targets, torch.zeros(6), 0.9, 1.0)


# ------------------------------------------------------------------------------------------------ rows


def test_rows_are_the_tokens_one_sequence_after_the_other() -> None:
    ids = torch.tensor([[7, 8, 9, 0], [0, 0, 0, 0], [5, 0, 0, 0]])
    found = rows_of(ids, 0)
    assert (found.count, found.room, found.sequences, found.longest) == (4, rows.ROOM, 3, 3)
    assert found.ids[:5].tolist() == [7, 8, 9, 5, 0] and found.at[:5].tolist() == [0, 1, 2, 0, 0]
    assert found.sample.tolist() == [0, 0, 0, 2] and found.start.tolist() == [0, 3, 3, 4]
    with pytest.raises(ValueError, match="padding stands before a token"):
        rows_of(torch.tensor([[7, 0, 9]]), 0)
    assert rows_of(torch.zeros(2, 3, dtype=torch.long), 0).room == 0
