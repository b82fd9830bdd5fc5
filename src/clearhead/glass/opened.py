"""One number taken apart: the terms it is the sum of, recomputed in float64 from the trace alone.

    products   Σ_c q_c k_c                                 out        Σ_heads + bias
    scores     scale · Σ_c q_c k_c + bias, or −∞           sum, after, in   what is added
    pattern    exp(score) over the sum of its row          norm.out   (x − mean) / √(variance + ε) · γ + β
    mixed      Σ_keys weight · value                       logits     Σ_c hidden_c E_c + bias

Numbers made by a large weight matrix (queries, hidden units, heads) are not opened here: their record's
`computed_from` says what came in. A logit's parts by embedding, head and layer: direct.py.

Knows a trace. Refuses to know torch and networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from clearhead.errors import UsageError
from clearhead.glass.layout import Array
from clearhead.glass.trace import Trace

Opener = Callable[..., "Opened"]


@dataclass(frozen=True)
class Term:
    """One of the numbers added up: the address it stands at, or the token it belongs to."""

    what: str
    value: float


@dataclass(frozen=True)
class Opened:
    """A number, and what it is made of."""

    address: str
    value: float
    """As recorded."""
    how: str
    terms: tuple[Term, ...]
    total: float
    """Recomputed from the terms, in float64."""
    parts: dict[str, float] = field(default_factory=dict)
    """Other numbers of the formula: scale, bias, mean, variance."""

    @property
    def gap(self) -> float:
        """Recorded minus recomputed."""
        return 0.0 if self.value == self.total else self.value - self.total


def open_number(trace: Trace, name: str, *index: int) -> Opened:
    """The number at this place of this record."""
    values = trace[name]
    if len(index) != values.ndim or not all(0 <= i < n for i, n in zip(index, values.shape, strict=True)):
        raise UsageError(f"{name} has {' × '.join(map(str, values.shape))} numbers; there is none at {list(index)}")
    opener = opener_of(trace, name)
    if opener is None:
        made_of = ", ".join(trace.record(name).computed_from) or "the network's weights alone"
        hint = f"computed from {made_of}"
        raise UsageError(f"{name} is made by weights that a trace does not hold", hint=hint)
    return opener(trace, name, *index)


def opener_of(trace: Trace, name: str) -> Opener | None:
    """How numbers of this record are taken apart, if the trace suffices."""
    last = name.rsplit(".", 1)[-1]
    if name.endswith("norm.out"):
        return opened_norm
    if name == "hidden":
        return opened_sum
    if last == "out" and f"{name.removesuffix('.out')}.heads" not in trace:
        return None
    return OPENERS.get(last)


def check(trace: Trace, most: int = 50) -> dict[str, float]:
    """For every record that can be opened, the largest gap of `most` numbers, over the record's largest number."""
    names = [name for name in trace if trace[name].size and opener_of(trace, name) is not None]
    return {name: largest_gap(trace, name, most) for name in names}


def largest_gap(trace: Trace, name: str, most: int) -> float:
    values = trace[name]
    places = np.linspace(0, values.size - 1, min(most, values.size)).astype(int)
    found = []
    for at in places:
        index = [int(i) for i in np.unravel_index(at, values.shape)]
        if name == "logits":
            index[1] = trace.ids("written")[index[0]]
        found.append(abs(open_number(trace, name, *index).gap))
    finite = np.abs(values[np.isfinite(values)])
    return max(found) / max(float(finite.max(initial=0.0)), 1e-30)


def address(name: str, *index: int) -> str:
    return f"{name}[{','.join(map(str, index))}]"


def number(trace: Trace, name: str, *index: int) -> float:
    return float(trace[name][index])


def summed(trace: Trace, name: str, index: tuple[int, ...], how: str, terms: list[Term]) -> Opened:
    total = math.fsum(term.value for term in terms)
    return Opened(address(name, *index), number(trace, name, *index), how, tuple(terms), total)


def shared_head(trace: Trace, path: str, head: int, of: str = "key") -> int:
    """Which head of keys and values this head of queries reads."""
    return head // (trace[f"{path}.pattern"].shape[0] // trace[f"{path}.{of}"].shape[0])


def channel_products(trace: Trace, path: str, head: int, query: int, key: int) -> list[Term]:
    held = shared_head(trace, path, head)
    q = trace[f"{path}.query"][head, query].astype(np.float64)
    k = trace[f"{path}.key"][held, key].astype(np.float64)
    return [Term(f"query[{c}] · key[{c}]", float(value)) for c, value in enumerate(q * k)]


def opened_products(trace: Trace, name: str, head: int, query: int, key: int) -> Opened:
    terms = channel_products(trace, name.removesuffix(".products"), head, query, key)
    return summed(trace, name, (head, query, key), "Σ over channels: query · key", terms)


def opened_score(trace: Trace, name: str, head: int, query: int, key: int) -> Opened:
    path = name.removesuffix(".scores")
    terms = channel_products(trace, path, head, query, key)
    value = number(trace, name, head, query, key)
    scale = number(trace, f"{path}.scale")
    bias = number(trace, f"{path}.bias", head, query, key) if f"{path}.bias" in trace else 0.0
    allowed = value != -math.inf
    total = scale * math.fsum(t.value for t in terms) + bias if allowed else -math.inf
    parts = {"scale": scale, "bias": bias, "allowed": float(allowed)}
    how = "scale · Σ over channels: query · key, + bias; −∞ where the query may not read"
    return Opened(address(name, head, query, key), value, how, tuple(terms), total, parts)


def softmax_of(trace: Trace, name: str, row: Array, index: tuple[int, ...], labels: list[str]) -> Opened:
    largest = row.max()
    powers = np.exp(row - largest) if largest > -math.inf else np.zeros(len(row))
    whole = math.fsum(powers)
    terms = tuple(Term(label, float(power)) for label, power in zip(labels, powers, strict=True))
    total = float(powers[index[-1]]) / whole if whole else 0.0
    how = "exp(score − the row's largest), over the sum of the row"
    return Opened(address(name, *index), number(trace, name, *index), how, terms, total, {"sum": whole})


def opened_pattern(trace: Trace, name: str, head: int, query: int, key: int) -> Opened:
    row = trace[f"{name.removesuffix('.pattern')}.scores"][head, query].astype(np.float64)
    return softmax_of(trace, name, row, (head, query, key), list(trace.labels(name)[2] or ()))


def opened_probability(trace: Trace, name: str, position: int, token: int) -> Opened:
    """Two terms: this token, and the rest of the vocabulary."""
    row = trace["logits"][position].astype(np.float64)
    powers = np.exp(row - row.max())
    own, rest = float(powers[token]), math.fsum(np.delete(powers, token))
    terms = (Term(f"token {token}", own), Term("the rest", rest))
    how = "exp(logit − the row's largest), over the sum of the row"
    value = number(trace, name, position, token)
    return Opened(address(name, position, token), value, how, terms, own / (own + rest))


def opened_mixed(trace: Trace, name: str, head: int, query: int, channel: int) -> Opened:
    path = name.removesuffix(".mixed")
    weights = trace[f"{path}.pattern"][head, query].astype(np.float64)
    values = trace[f"{path}.value"][shared_head(trace, path, head, "value"), :, channel].astype(np.float64)
    tokens = trace.labels(f"{path}.pattern")[2] or ()
    terms = [Term(f"weight · value of {token}", float(x)) for token, x in zip(tokens, weights * values, strict=True)]
    return summed(trace, name, (head, query, channel), "Σ over keys: weight · value", terms)


def opened_out(trace: Trace, name: str, position: int, channel: int) -> Opened:
    path = name.removesuffix(".out")
    heads = trace[f"{path}.heads"]
    at = [(h, position, channel) for h in range(len(heads))]
    terms = [Term(address(f"{path}.heads", *index), float(heads[index])) for index in at]
    if f"{path}.out_bias" in trace:
        terms.append(Term(address(f"{path}.out_bias", channel), number(trace, f"{path}.out_bias", channel)))
    return summed(trace, name, (position, channel), "Σ over heads, + bias", terms)


def opened_sum(trace: Trace, name: str, *index: int) -> Opened:
    """What is added at this very place; a single term when it is only handed on."""
    made_of = trace.record(name).computed_from
    terms = [Term(address(part, *index), number(trace, part, *index)) for part in made_of]
    return summed(trace, name, index, "the sum of what comes in", terms)


def opened_norm(trace: Trace, name: str, position: int, channel: int) -> Opened:
    path = name.removesuffix(".out")
    parts = norm_parts(trace, path, position, channel)
    normal = (parts["in"] - parts["mean"]) / math.sqrt(parts["variance"] + parts["eps"])
    terms = [Term("(in − mean) / √(variance + ε) · γ", normal * parts["weight"]), Term("β", parts["bias"])]
    opened = summed(trace, name, (position, channel), "(in − mean) / √(variance + ε) · γ + β", terms)
    return Opened(opened.address, opened.value, opened.how, opened.terms, opened.total, parts)


def norm_parts(trace: Trace, path: str, position: int, channel: int) -> dict[str, float]:
    """Mean and variance as this kind of norm takes them; an RMS norm's mean is 0, its variance the mean square."""
    parts = {name: number(trace, f"{path}.{name}", channel) for name in ("weight",)}
    parts["bias"] = number(trace, f"{path}.bias", channel) if f"{path}.bias" in trace else 0.0
    mean, variance = (float(s[position, 0 if s.shape[1] == 1 else channel]) for s in statistics(trace, path))
    eps = number(trace, f"{path}.eps")
    return parts | {
        "in": number(trace, f"{path}.in", position, channel),
        "mean": mean,
        "variance": variance,
        "eps": eps,
    }


def statistics(trace: Trace, path: str) -> tuple[Array, Array]:
    """Mean and variance of a norm for every position: (position, 1), or (1 → position, channel) for batch norm."""
    x = trace[f"{path}.in"].astype(np.float64)
    if f"{path}.running_mean" in trace:
        held = (trace[f"{path}.running_{what}"].astype(np.float64) for what in ("mean", "variance"))
        mean, variance = (np.broadcast_to(one, x.shape) for one in held)
        return mean, variance
    mean = x.mean(1, keepdims=True) * number(trace, f"{path}.centred")
    return mean, ((x - mean) ** 2).mean(1, keepdims=True)


def opened_logit(trace: Trace, name: str, position: int, token: int) -> Opened:
    """For the word written there: its row of the output table is in the trace."""
    if token != trace.ids("written")[position]:
        raise UsageError(
            f"token {token} is not what was written at position {position}",
            hint="its row of the output table is not in the trace; direct.direct_logits takes rows of the network",
        )
    products = trace["hidden"][position].astype(np.float64) * trace["written_rows"][position].astype(np.float64)
    terms = [Term(f"hidden[{c}] · row[{c}]", float(x)) for c, x in enumerate(products)]
    if "written_bias" in trace:
        terms.append(Term(address("written_bias", position), number(trace, "written_bias", position)))
    return summed(trace, name, (position, token), "Σ over channels: hidden · the token's row, + its bias", terms)


OPENERS: dict[str, Opener] = {
    "products": opened_products,
    "scores": opened_score,
    "pattern": opened_pattern,
    "mixed": opened_mixed,
    "out": opened_out,
    "logits": opened_logit,
    "probabilities": opened_probability,
    "sum": opened_sum,
    "before": opened_sum,
    "added": opened_sum,
    "after": opened_sum,
    "in": opened_sum,
    "memory": opened_sum,
}
