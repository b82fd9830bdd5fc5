"""The oracle: every brick once more, as slow and obvious as it can be said, one float64 number at a time.

Nothing here is shared with the code under test: no torch, no matrix products, no broadcasting; only loops, sums
and `math`. Layers and whole models are put together from these with the model's own weights, by name.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Weights = Callable[[str], Array]


def each(f: Callable[..., float], *arrays: Array) -> Array:
    """f at every place."""
    result = np.zeros(arrays[0].shape)
    for at in np.ndindex(result.shape):
        result[at] = f(*(array[at] for array in arrays))
    return result


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    result = np.zeros((*x.shape[:-1], len(weight)))
    for *at, o in np.ndindex(result.shape):
        total = 0.0 if bias is None else float(bias[o])
        for i in range(x.shape[-1]):
            total += float(x[(*at, i)]) * float(weight[o, i])
        result[(*at, o)] = total
    return result


def softmax(scores: list[float]) -> list[float]:
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    return [e / sum(exponentials) for e in exponentials]


def attend(query: Array, key: Array, value: Array, may: Callable, bias: Callable, scale: float) -> Array:
    """`may(b, q, k)` says whether, `bias(b, n, q, k)` what is added. Heads of keys are shared in runs."""
    rows, heads, queries, width = query.shape
    shared = heads // key.shape[1]
    mixed = np.zeros((rows, heads, queries, value.shape[3]))
    for b, n, q in np.ndindex(rows, heads, queries):
        allowed = [k for k in range(key.shape[2]) if may(b, q, k)]
        if not allowed:
            continue
        scores = []
        for k in allowed:
            product = sum(query[b, n, q, h] * key[b, n // shared, k, h] for h in range(width))
            scores.append(product * scale + bias(b, n, q, k))
        for k, weight in zip(allowed, softmax(scores), strict=True):
            for u in range(value.shape[3]):
                mixed[b, n, q, u] += weight * value[b, n // shared, k, u]
    return mixed


def split(x: Array, heads: int) -> Array:
    """(B, L, N·H) → (B, N, L, H), head by head."""
    rows, length, width = x.shape
    size = width // heads
    result = np.zeros((rows, heads, length, size))
    for b, n, at, h in np.ndindex(result.shape):
        result[b, n, at, h] = x[b, at, n * size + h]
    return result


def joined(x: Array) -> Array:
    """(B, N, L, U) → (B, L, N·U)."""
    rows, heads, length, size = x.shape
    result = np.zeros((rows, length, heads * size))
    for b, n, at, u in np.ndindex(x.shape):
        result[b, at, n * size + u] = x[b, n, at, u]
    return result


def sinusoidal(length: int, width: int, halves: bool) -> Array:
    """The two formulas, channel by channel."""
    table = np.zeros((length, width))
    for pos, i in np.ndindex(length, width):
        if halves:
            h = width // 2
            table[pos, i] = math.sin(pos / 10000 ** (i / h)) if i < h else math.cos(pos / 10000 ** ((i - h) / h))
        else:
            wave = math.cos if i % 2 else math.sin
            table[pos, i] = wave(pos / 10000 ** (2 * (i // 2) / width))
    return table


def rotate(x: Array, offset: int = 0) -> Array:
    """Channels (2i, 2i+1) as one complex number, turned by its angle."""
    result = np.zeros(x.shape)
    width = x.shape[3]
    for b, n, at, i in np.ndindex(*x.shape[:3], width // 2):
        turned = complex(x[b, n, at, 2 * i], x[b, n, at, 2 * i + 1])
        turned *= cmath.exp(1j * (offset + at) / 10000 ** (2 * i / width))
        result[b, n, at, 2 * i], result[b, n, at, 2 * i + 1] = turned.real, turned.imag
    return result


def t5_bucket(away: int, buckets: int = 32, reach: int = 128, causal: bool = False) -> int:
    """In whole numbers: far bucket j begins where (away / exact)^n ≥ (reach / exact)^j, n far buckets in all."""
    first = 0
    if causal:
        away = max(-away, 0)
    else:
        buckets //= 2
        first = buckets if away > 0 else 0
        away = abs(away)
    exact = buckets // 2
    if away < exact:
        return first + away
    n = buckets - exact
    j = max(j for j in range(n + 1) if away**n * exact**j >= reach**j * exact**n)
    return first + min(exact + j, buckets - 1)


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float = 1e-5) -> Array:
    result = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        channels = [float(c) for c in x[at]]
        mean = sum(channels) / len(channels)
        variance = sum((c - mean) ** 2 for c in channels) / len(channels)
        for d, c in enumerate(channels):
            shift = 0.0 if bias is None else float(bias[d])
            result[(*at, d)] = (c - mean) / math.sqrt(variance + eps) * weight[d] + shift
    return result


def rms_norm(x: Array, weight: Array, eps: float = 1e-5) -> Array:
    result = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        mean_square = sum(float(c) ** 2 for c in x[at]) / x.shape[-1]
        for d, c in enumerate(x[at]):
            result[(*at, d)] = c / math.sqrt(mean_square + eps) * weight[d]
    return result


def gelu(u: float) -> float:
    return u * 0.5 * (1 + math.erf(u / math.sqrt(2)))


def silu(u: float) -> float:
    return u / (1 + math.exp(-u))


def relu(u: float) -> float:
    return max(u, 0.0)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "relu2": lambda u: relu(u) ** 2, "swiglu": silu, "geglu": gelu}


def feedforward(x: Array, w: Weights, activation: str) -> Array:
    hidden = each(ACTIVATIONS[activation], linear(x, w("up.weight"), w("up.bias")))
    if activation.endswith("glu"):
        hidden = each(lambda a, b: a * b, hidden, linear(x, w("gate.weight")))
    return linear(hidden, w("down.weight"), w("down.bias"))


def below(w: Weights, prefix: str) -> Weights:
    return lambda name: w(f"{prefix}.{name}")


def norm(x: Array, w: Weights, s: Any) -> Array:
    return layer_norm(x, w("weight"), w("bias")) if s.norm == "layer" else rms_norm(x, w("weight"))


def residual(x: Array, w: Weights, s: Any, part: Callable[[Array], Array]) -> Array:
    if s.norm_order == "pre":
        return each(lambda a, b: a + b, x, part(norm(x, below(w, "norm"), s)))
    return norm(each(lambda a, b: a + b, x, part(x)), below(w, "norm"), s)


def score_bias(query: Array, w: Weights, s: Any, positions: str, causal: bool, scale: float) -> Callable:
    """What the kind of positions adds to the score of query q and key k."""
    if positions == "alibi":
        return lambda b, n, q, k: -(2.0 ** (-8 * (n + 1) / s.n_heads)) * abs(k - q)
    if positions == "relative-t5":
        return lambda b, n, q, k: w("table")[t5_bucket(k - q, causal=causal), n]
    if positions == "relative-shaw":

        def shaw(b: int, n: int, q: int, k: int) -> float:
            r = w("table")[max(-16, min(16, k - q)) + 16]
            return sum(query[b, n, q, h] * r[h] for h in range(len(r))) * scale

        return shaw
    return lambda b, n, q, k: 0.0


def multi_head(x: Array, read: Array, w: Weights, s: Any, may: Callable, positions: str, causal: bool) -> Array:
    query = split(linear(x, w("query.weight"), w("query.bias")), s.n_heads)
    key = split(linear(read, w("key.weight"), w("key.bias")), s.kv_heads)
    value = split(linear(read, w("value.weight"), w("value.bias")), s.kv_heads)
    if positions == "rotary":
        query, key = rotate(query), rotate(key)
    scale = 1 / math.sqrt(s.head_width) if s.scale_scores else 1.0
    bias = score_bias(query, below(w, "positions"), s, positions, causal, scale)
    return linear(joined(attend(query, key, value, may, bias, scale)), w("out.weight"), w("out.bias"))


def near(s: Any, q: int, k: int) -> bool:
    """The sparse patterns of self-attention."""
    if s.attention_window is None or abs(q - k) <= s.attention_window:
        return True
    return s.attention_stride is not None and (q - k) % s.attention_stride == 0


def encoder_layer(x: Array, w: Weights, s: Any, may: Callable) -> Array:
    attention = below(w, "self_attention")
    x = residual(
        x, below(w, "attention_residual"), s, lambda h: multi_head(h, h, attention, s, may, s.positions, False)
    )
    return residual(
        x, below(w, "feedforward_residual"), s, lambda h: feedforward(h, below(w, "feedforward"), s.activation)
    )


def decoder_layer(x: Array, memory: Array, w: Weights, s: Any, may: Callable, may_read: Callable) -> Array:
    own, cross = below(w, "self_attention"), below(w, "cross_attention")
    x = residual(x, below(w, "self_residual"), s, lambda h: multi_head(h, h, own, s, may, s.positions, True))
    x = residual(x, below(w, "cross_residual"), s, lambda h: multi_head(h, memory, cross, s, may_read, "none", False))
    return residual(
        x, below(w, "feedforward_residual"), s, lambda h: feedforward(h, below(w, "feedforward"), s.activation)
    )


def embedding(ids: Array, w: Weights, s: Any) -> Array:
    table = w("table.weight")
    x = np.zeros((*ids.shape, s.d_model))
    for b, at, d in np.ndindex(x.shape):
        x[b, at, d] = table[ids[b, at], d] * (math.sqrt(s.d_model) if s.embedding_scale else 1.0)
        if s.positions.startswith("sinusoidal"):
            x[b, at, d] += sinusoidal(ids.shape[1], s.d_model, s.positions.endswith("halves"))[at, d]
        if s.positions == "learned":
            x[b, at, d] += w("positions.table")[at, d]
    return x


def seq2seq(source: Array, target: Array, w: Weights, s: Any) -> Array:
    """Logits (B, T, V) of a whole encoder-decoder; id 0 is padding."""
    x = embedding(source, below(w, "source_embedding"), s)
    for i in range(s.encoder_layers):
        x = encoder_layer(x, below(w, f"encoder.layers.{i}"), s, lambda b, q, k: source[b, k] != 0 and near(s, q, k))
    memory = norm(x, below(w, "encoder.norm"), s) if s.norm_order == "pre" else x
    x = embedding(target, below(w, "target_embedding"), s)
    for i in range(s.decoder_layers):
        x = decoder_layer(
            x,
            memory,
            below(w, f"decoder.layers.{i}"),
            s,
            lambda b, q, k: k <= q and near(s, q, k),
            lambda b, q, k: source[b, k] != 0,
        )
    hidden = norm(x, below(w, "decoder.norm"), s) if s.norm_order == "pre" else x
    return linear(hidden, w("output.weight"))
