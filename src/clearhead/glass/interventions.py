"""Interventions: edits of the running model, as context managers over taps.

    with cut_head(network, "decoder.layers.1.cross_attention", 2):
        ...                                                          everything run here runs without that head

They nest, and every trace and finding made inside says which were on. Nothing is stored on the network: when the
block ends, by its end or by an error, the model is as it was. An edit at one position of the output holds in whole
passes (a trace, a lens, or decoding by `decoded.trace`); a decoder with a cache refuses it, because there a place
along an axis is not a position.

Knows taps, axes and numbers. Refuses to know why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import nn

from clearhead.errors import UsageError, nearest
from clearhead.glass.passes import Change, inside_whole
from clearhead.glass.trace import Trace
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.attention import Attention
from clearhead.nn.embedding import Embedding
from clearhead.nn.shapes import Float, Tensor
from clearhead.nn.tap import listen


class Active(NamedTuple):
    """An edit that is on."""

    said: str
    positional: bool


_active: ContextVar[tuple[Active, ...]] = ContextVar("edits", default=())


def edits() -> tuple[str, ...]:
    """The edits that are on, in words, the outermost first."""
    return tuple(edit.said for edit in _active.get())


def positional() -> bool:
    """Is an edit on that needs whole passes?"""
    return any(edit.positional for edit in _active.get())


@contextmanager
def editing(
    network: EncoderDecoder, changes: Mapping[str, Change], said: str, *, positional: bool = False
) -> Iterator[None]:
    """While the block runs, each named tap's tensor becomes what its change makes of it. `said` is its description."""

    def hear(name: str, tensor: Tensor) -> Tensor:
        if positional and not inside_whole():
            raise UsageError(
                f"“{said}” is an edit at one position of the output, which a decoder with a cache cannot follow",
                hint="decode by trace() inside the block: it goes by whole passes then",
            )
        return changes[name](tensor.clone())

    token = _active.set((*_active.get(), Active(said, positional)))
    try:
        with listen(network, hear, changes.__contains__):
            yield
    finally:
        _active.reset(token)


def attentions(network: nn.Module) -> dict[str, Attention]:
    return {path: module for path, module in network.named_modules() if isinstance(module, Attention)}


def attention_at(network: EncoderDecoder, path: str) -> Attention:
    """The attention with this path, or an error that names the nearest one."""
    found = attentions(network)
    if path not in found:
        close = nearest(path, found) or ", ".join(found)
        raise UsageError(f"the network has no attention called {path!r}", hint=f"did you mean {close}?")
    return found[path]


def check_head(network: EncoderDecoder, attention: str, head: int | None) -> None:
    heads = attention_at(network, attention).n_heads
    if head is not None and not 0 <= head < heads:
        raise UsageError(f"{attention} has heads 0 to {heads - 1}, not {head}")


def there(place: int, size: int, what: str, *, grows: bool) -> bool:
    """Is this place in the sequence? An output that is still being written may not have come to it."""
    if 0 <= place < size:
        return True
    if grows and place >= size:
        return False
    raise UsageError(f"{what} {place} does not exist: there are {size}, counted from 0")


@contextmanager
def cut_head(
    network: EncoderDecoder, attention: str, head: int, instead: Float[Tensor, "U"] | None = None
) -> Iterator[None]:
    """The head mixes zeros, or at every position the vector given instead (its mean elsewhere, for example)."""
    check_head(network, attention, head)

    def change(mixed: Tensor) -> Tensor:
        mixed[:, head] = 0.0 if instead is None else instead.to(mixed.dtype)
        return mixed

    kind = "zero" if instead is None else "given vector"
    with editing(network, {f"{attention}.mixed": change}, f"head {head} of {attention} cut ({kind} ablation)"):
        yield


def late(attention: str, query: int | None) -> bool:
    return query is not None and attention.startswith("decoder")


@contextmanager
def cut_edge(
    network: EncoderDecoder,
    attention: str,
    key: int,
    query: int | None = None,
    head: int | None = None,
    *,
    renormalise: bool = True,
) -> Iterator[None]:
    """The query does not read from the key: in one head or all of them, at one query or all of them.

    Renormalised, the other weights of the row grow so that they sum to 1, as if the score had been −∞; otherwise the
    row sums to less.
    """
    weight = set_weight(network, attention, key, 0.0, query, head, renormalise=renormalise)
    with weight:
        yield


@contextmanager
def set_weight(
    network: EncoderDecoder,
    attention: str,
    key: int,
    weight: float,
    query: int | None = None,
    head: int | None = None,
    *,
    renormalise: bool = True,
) -> Iterator[None]:
    """The pattern has this weight there. Renormalised, the others share the rest as they did before."""
    check_head(network, attention, head)
    change = weight_change(attention, key, weight, query, head, renormalise)
    who = "all heads" if head is None else f"head {head}"
    rest = "the rest renormalised" if renormalise else "the rest as it was"
    said = f"{attention}, {who}: query {'all' if query is None else query} reads key {key} with {weight:g}, {rest}"
    with editing(network, {f"{attention}.pattern": change}, said, positional=late(attention, query)):
        yield


def weight_change(
    attention: str, key: int, weight: float, query: int | None = None, head: int | None = None, renormalise: bool = True
) -> Change:
    """Of a pattern (…, N, Q, K)."""
    if not 0.0 <= weight <= 1.0:
        raise UsageError(f"a weight of the pattern lies between 0 and 1, not at {weight:g}")

    def change(pattern: Tensor) -> Tensor:
        pattern = pattern.clone()
        if not there(key, pattern.shape[-1], "key", grows=attention.startswith("decoder") and not across(attention)):
            return pattern
        if not there(query or 0, pattern.shape[-2], "query", grows=attention.startswith("decoder")):
            return pattern
        heads = slice(None) if head is None else slice(head, head + 1)
        queries = slice(None) if query is None else slice(query, query + 1)
        rows = pattern[..., heads, queries, :].clone()
        read = rows.sum(-1) > 0  # a row that may read nothing stays zeros
        rows[..., key] = 0.0
        if renormalise:
            others = rows.sum(-1, keepdim=True)
            rows *= (1.0 - weight) / others.where(others > 0, 1.0)
        rows[..., key] = weight * read.to(rows.dtype)
        pattern[..., heads, queries, :] = rows
        return pattern

    return change


@contextmanager
def patch(
    network: EncoderDecoder, name: str, donor: Trace, places: Mapping[int, int] | None = None, head: int | None = None
) -> Iterator[None]:
    """The activation `name` is taken from another sentence's trace: everywhere, or place by place (ours → theirs).

    A clean run patched from a corrupted one is noising (was this necessary?), the other way denoising (is it
    sufficient?); the two may differ.
    """
    change = patch_change(donor, name, places, head)
    where = "" if places is None else f" at {', '.join(f'{a} from {b}' for a, b in places.items())}"
    said = f"{name}{'' if head is None else f', head {head}'} patched from another sentence{where}"
    with editing(network, {name: change}, said, positional=not of_source(name)):
        yield


def patch_change(donor: Trace, name: str, places: Mapping[int, int] | None = None, head: int | None = None) -> Change:
    """Of a tensor with or without a batch; its place axis is the last but one."""
    theirs, grows = torch.tensor(donor[name]), not of_source(name)

    def change(ours: Tensor) -> Tensor:
        ours = ours.clone()
        part, given = ours, theirs.to(ours.device, ours.dtype)
        if head is not None:
            part, given = ours[..., head, :, :], given[head]
        size, other_size = part.shape[-2], given.shape[-2]
        if places is None and size != other_size and not grows:
            raise UsageError(
                f"{name} has {size} places here and {other_size} in the other sentence",
                hint="say which place takes which: places={3: 2}",
            )
        for mine, other in (places or {i: i for i in range(min(size, other_size))}).items():
            there(other, other_size, "the other sentence's place", grows=False)
            if there(mine, size, "place", grows=grows):
                part[..., mine, :] = given[..., other, :]
        return ours

    return change


def of_source(name: str) -> bool:
    return name.startswith(("encoder", "source", "memory"))


@contextmanager
def swap_token(network: EncoderDecoder, side: str, place: int, token: int) -> Iterator[None]:
    """Another token's vector stands at this place of the "source" or of the "target" the decoder reads."""
    embedding = embedding_of(network, side)
    there(token, len(embedding.table.weight), "token", grows=False)

    def change(tokens: Tensor) -> Tensor:
        if there(place, tokens.shape[1], "place", grows=side == "target"):
            tokens[:, place] = embedding.table.weight[token] * embedding.scale
        return tokens

    said = f"{side}[{place}] swapped for token {token}"
    with editing(network, {f"{side}_embedding.tokens": change}, said, positional=side == "target"):
        yield


@contextmanager
def drop_token(network: EncoderDecoder, side: str, place: int) -> Iterator[None]:
    """The token is not there: its vector is zeros, and no attention reads from it. Its neighbours keep their places.

    (`lenses.erasure` deletes tokens for good, which moves those behind them.)
    """
    embedding_of(network, side)

    def silence(vectors: Tensor) -> Tensor:
        if there(place, vectors.shape[1], "place", grows=side == "target"):
            vectors[:, place] = 0.0
        return vectors

    changes: dict[str, Change] = {f"{side}_embedding.sum": silence}
    changes |= {f"{path}.pattern": weight_change(path, place, 0.0) for path in readers(network, side)}
    with editing(network, changes, f"{side}[{place}] dropped (zeroed and hidden)", positional=side == "target"):
        yield


def readers(network: EncoderDecoder, side: str) -> Sequence[str]:
    """The attentions that read from this side."""
    if side == "target":
        return [path for path in attentions(network) if path.startswith("decoder") and not across(path)]
    return [path for path in attentions(network) if path.startswith("encoder") or across(path)]


def across(attention: str) -> bool:
    """From the decoder to the source?"""
    return attention.startswith("decoder") and not attention.endswith("self_attention")


def embedding_of(network: EncoderDecoder, side: str) -> Embedding:
    found = dict(network.named_modules()).get(f"{side}_embedding")
    if not isinstance(found, Embedding):
        raise UsageError(f"a side is source or target, not {side!r}")
    return found
