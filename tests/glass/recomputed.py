"""The whole pass once more, in plain NumPy float64, from the raw weights by their names: every number a trace shows.

Nothing of the package is used. `change(name, numbers)` is called on every number where it arises and returns what goes
on: so the same path also recomputes what an intervention should give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Change = Callable[[str, Array], Array]


def softmax(scores: Array) -> Array:
    largest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0.0))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total, total, 1.0)


def erf(x: Array) -> Array:
    return np.vectorize(math.erf)(x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


CURVES = {
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "gelu": gelu,
    "geglu": gelu,
    "swiglu": lambda x: x * sigmoid(x),
}


def waves(length: int, width: int, halves: bool) -> Array:
    table = np.zeros((length, width))
    for pos in range(length):
        for i in range(width // 2):
            angle = pos / 10000 ** (2 * i / width)
            table[pos, i if halves else 2 * i] = math.sin(angle)
            table[pos, width // 2 + i if halves else 2 * i + 1] = math.cos(angle)
    return table


def bucket(away: int, causal: bool, buckets: int = 32, reach: int = 128) -> int:
    first = 0
    if causal:
        away = max(-away, 0)
    else:
        buckets //= 2
        first, away = (buckets if away > 0 else 0), abs(away)
    exact = buckets // 2
    if away < exact:
        return first + away
    far = exact + int(math.log(away / exact) / math.log(reach / exact) * (buckets - exact))
    return first + min(far, buckets - 1)


class Recomputed:
    """One pass. Every number lands in `found`, under the name a trace gives it."""

    def __init__(self, model: Any, change: Change | None = None) -> None:
        self.s = model.settings
        self.w = {name: t.detach().double().numpy() for name, t in model.state_dict().items()}
        self.change = change or (lambda name, numbers: numbers)
        self.found: dict[str, Array] = {}

    def say(self, name: str, numbers: Array) -> Array:
        self.found[name] = self.change(name, numbers)
        return self.found[name]

    def linear(self, path: str, x: Array) -> Array:
        bias = self.w.get(f"{path}.bias")
        return x @ self.w[f"{path}.weight"].T + (0 if bias is None else bias)

    def run(self, source: list[int], target: list[int], written: list[int]) -> dict[str, Array]:
        memory = self.say("memory", self.encoder(self.embed("source", source)))
        x = self.embed("target", target)
        hidden = self.recurrent_decoder(x, memory) if self.s.kind == "recurrent" else self.decoder(x, memory)
        table = self.w["output.weight"]
        logits = self.say("logits", self.say("hidden", hidden) @ table.T)
        self.say("probabilities", softmax(logits))
        log_p = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
        log_p = log_p - logits.max(1, keepdims=True)
        self.say("written_log_probabilities", log_p[np.arange(len(written)), written])
        return self.found

    def embed(self, side: str, ids: list[int]) -> Array:
        table = self.w[f"{side}_embedding.table.weight"]
        path, scale = f"{side}_embedding", math.sqrt(self.s.d_model) if self.s.embedding_scale else 1.0
        x = self.say(f"{path}.tokens", table[ids] * scale)
        if self.s.kind != "recurrent" and self.s.positions in ("sinusoidal", "sinusoidal-halves", "learned"):
            if self.s.positions == "learned":
                positions = self.w[f"{path}.positions.table"][: len(ids)]
            else:
                positions = waves(len(ids), self.s.d_model, self.s.positions.endswith("halves"))
            x = x + self.say(f"{path}.positions", positions)
        return self.say(f"{path}.sum", x)

    def norm(self, path: str, x: Array) -> Array:
        x = self.say(f"{path}.in", x)
        weight, bias = self.w[f"{path}.weight"], self.w.get(f"{path}.bias", 0)
        if self.s.norm == "batch":
            mean, variance = self.w[f"{path}.running_mean"], self.w[f"{path}.running_variance"]
        else:
            mean = x.mean(1, keepdims=True) if self.s.norm == "layer" else 0.0
            variance = ((x - mean) ** 2).mean(1, keepdims=True)
        return self.say(f"{path}.out", (x - mean) / np.sqrt(variance + 1e-5) * weight + bias)

    def residual(self, path: str, x: Array, part: Callable[[Array], Array]) -> Array:
        pre = self.s.norm_order == "pre"
        x = self.say(f"{path}.before", x)
        added = self.say(f"{path}.added", part(self.norm(f"{path}.norm", x) if pre else x))
        return self.say(f"{path}.after", x + added if pre else self.norm(f"{path}.norm", x + added))

    def feedforward(self, path: str, x: Array) -> Array:
        hidden = CURVES[self.s.activation](self.linear(f"{path}.up", x))
        if self.s.activation.endswith("glu"):
            hidden = hidden * self.linear(f"{path}.gate", x)
        return self.say(f"{path}.out", self.linear(f"{path}.down", self.say(f"{path}.hidden", hidden)))

    def encoder(self, x: Array) -> Array:
        if self.s.kind == "recurrent":
            return self.recurrent_encoder(x)
        for i in range(self.s.encoder_layers):
            path = f"encoder.layers.{i}"
            if self.s.kind == "convolutional":
                x = self.residual(f"{path}.residual", x, lambda h, p=path: self.convolution(f"{p}.convolution", h))
                continue
            x = self.residual(f"{path}.attention_residual", x, lambda h, p=path: self.attend(f"{p}.self_attention", h))
            x = self.residual(
                f"{path}.feedforward_residual", x, lambda h, p=path: self.feedforward(f"{p}.feedforward", h)
            )
        return self.norm("encoder.norm", x) if self.s.norm_order == "pre" else x

    def decoder(self, x: Array, memory: Array) -> Array:
        for i in range(self.s.decoder_layers):
            path = f"decoder.layers.{i}"
            own, other = f"{path}.self_attention", f"{path}.cross_attention"
            x = self.residual(f"{path}.self_residual", x, lambda h, a=own: self.attend(a, h))
            x = self.residual(f"{path}.cross_residual", x, lambda h, a=other: self.attend(a, h, memory))
            x = self.residual(
                f"{path}.feedforward_residual", x, lambda h, p=path: self.feedforward(f"{p}.feedforward", h)
            )
        return self.norm("decoder.norm", x) if self.s.norm_order == "pre" else x

    def attend(self, path: str, x: Array, memory: Array | None = None, heads: int | None = None) -> Array:
        read = x if memory is None else memory
        n, g = (heads, heads) if heads else (self.s.n_heads, self.s.kv_heads)
        query, key, value = (
            self.linear(f"{path}.{part}", rows).reshape(len(rows), count, -1).transpose(1, 0, 2)
            for part, rows, count in (("query", x, n), ("key", read, g), ("value", read, g))
        )
        if memory is None and self.s.positions == "rotary":
            query, key = self.turned(query), self.turned(key)
        query, key, value = (
            self.say(f"{path}.{part}", numbers) for part, numbers in (("query", query), ("key", key), ("value", value))
        )
        key, value = np.repeat(key, n // g, 0), np.repeat(value, n // g, 0)
        scale = query.shape[2] ** -0.5 if self.s.scale_scores else 1.0
        scores = self.say(f"{path}.products", query @ key.transpose(0, 2, 1)) * scale
        bias = self.bias(path, query, len(read), scale) if memory is None else None
        if bias is not None:
            scores = scores + self.say(f"{path}.bias", bias)
        scores = np.where(self.allowed(path, len(x), len(read), memory is None), scores, -np.inf)
        pattern = self.say(f"{path}.pattern", softmax(self.say(f"{path}.scores", scores)))
        mixed = self.say(f"{path}.mixed", pattern @ value)
        weight = self.w[f"{path}.out.weight"].reshape(self.s.d_model, n, -1)
        each = self.say(f"{path}.heads", np.einsum("nqu,dnu->nqd", mixed, weight))
        return self.say(f"{path}.out", each.sum(0) + self.w.get(f"{path}.out.bias", 0))

    def turned(self, x: Array) -> Array:
        """Each pair of channels as a complex number, turned."""
        pairs = x[..., 0::2] + 1j * x[..., 1::2]
        angle = np.arange(x.shape[1])[:, None] / 10000 ** (2 * np.arange(x.shape[2] // 2) / x.shape[2])
        pairs = pairs * np.exp(1j * angle)
        return np.stack((pairs.real, pairs.imag), -1).reshape(x.shape)

    def bias(self, path: str, query: Array, keys: int, scale: float) -> Array | None:
        away = np.arange(keys)[None, :] - np.arange(query.shape[1])[:, None]
        if self.s.positions == "alibi":
            slopes = 2.0 ** (-8.0 * np.arange(1, len(query) + 1) / len(query))
            return -slopes[:, None, None] * np.abs(away)
        if self.s.positions == "relative-t5":
            places = np.vectorize(lambda d: bucket(int(d), path.startswith("decoder")))(away)
            return self.w[f"{path}.positions.table"][places].transpose(2, 0, 1)
        if self.s.positions == "relative-shaw":
            rows = self.w[f"{path}.positions.table"][np.clip(away, -16, 16) + 16]
            return np.einsum("nqh,qkh->nqk", query, rows) * scale
        return None

    def allowed(self, path: str, queries: int, keys: int, own: bool) -> Array:
        away = np.arange(keys)[None, :] - np.arange(queries)[:, None]
        may = np.ones((queries, keys), bool)
        if own and path.startswith("decoder"):
            may &= away <= 0
        reach = self.s.attention_window
        if own and reach is not None and self.s.kind == "seq2seq":
            near = np.abs(away) <= reach
            may &= near | (away % self.s.attention_stride == 0) if self.s.attention_stride else near
        return may

    def convolution(self, path: str, x: Array) -> Array:
        reach = self.s.attention_window or 1
        edge = np.zeros((reach, x.shape[1]))
        held = np.concatenate((edge, x, edge))
        windows = np.stack([held[i : i + 2 * reach + 1].reshape(-1) for i in range(len(x))])
        both = self.linear(f"{path}.filter", windows)
        value, gate = both[:, : x.shape[1]], both[:, x.shape[1] :]
        return self.say(f"{path}.out", value * self.say(f"{path}.gate", sigmoid(gate)))

    def lstm(self, path: str, x: Array, h: Array, c: Array) -> Array:
        w = {kind: self.w[f"{path}.{kind}_l0"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        outputs = []
        for row in x:
            i, f, g, o = np.split(w["weight_ih"] @ row + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"], 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outputs.append(h)
        return np.stack(outputs)

    def recurrent_encoder(self, x: Array) -> Array:
        d = self.s.d_model
        for i in range(self.s.encoder_layers):
            path = f"encoder.layers.{i}"
            ahead = self.lstm(f"{path}.ahead", x, np.zeros(d - d // 2), np.zeros(d - d // 2))
            back = self.lstm(f"{path}.back", x[::-1], np.zeros(d // 2), np.zeros(d // 2))[::-1]
            out = self.say(f"{path}.out", np.concatenate((ahead, back), 1))
            x = out if i == 0 else x + out
        return x

    def recurrent_decoder(self, x: Array, memory: Array) -> Array:
        d, half = self.s.d_model, self.s.d_model - self.s.d_model // 2
        end = np.concatenate((memory[-1, :half], memory[0, half:]))
        start = np.tanh(self.linear("decoder.bridge", end)).reshape(-1, d)
        for i in range(self.s.decoder_layers):
            out = self.say(
                f"decoder.layers.{i}.out", self.lstm(f"decoder.layers.{i}", x, start[2 * i], start[2 * i + 1])
            )
            x = out if i == 0 else x + out
        own = self.linear("decoder.own", x)
        return self.say("decoder.hidden", np.tanh(own + self.attend("decoder.attention", x, memory, heads=1)))
