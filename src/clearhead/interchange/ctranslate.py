"""Writes a CTranslate2 model: model.bin, config.json and vocabularies, through CTranslate2's own converter.

Both norm orders, layer and RMS norms, gated feed-forwards, every absolute position (the table itself is written) and
every way of tying can be expressed; positions inside the scores and unusual heads are refused. CTranslate2 adds <eos>
to a source and starts with <bos>, as we do. What is never written — padding, start, mask — gets a bias of −10⁹.

Needs the package ctranslate2 (`pip install 'clearhead[export]'`); names and tensors are had without it.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.config import ModelSettings
from clearhead.errors import MissingExtra
from clearhead.interchange.limits import PLAIN_SHAPE, refuse_other
from clearhead.interchange.tables import Modules, Weights, in_layers, refuse_left_over, renamed
from clearhead.nn.norm import LayerNorm
from clearhead.nn.positions import AbsolutePositions
from clearhead.text.vocabulary import BOS, EOS, MASK, PAD, SPECIAL, UNK

PROGRAM = "CTranslate2"
ALLOWED = PLAIN_SHAPE | {
    "positions": ("sinusoidal", "sinusoidal-halves", "learned"),
    "norm": ("layer", "rms"),
    "norm_order": ("pre", "post"),
    "bias": (True, False),
    "activation": ("relu", "gelu", "swiglu", "geglu"),
}
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swiglu": "SWISH", "geglu": "GELU"}
NEVER = -1e9
"""The bias of what is never written. Not −∞, which reduced precision may turn into no number at all."""

SELF_ATTENTION: Modules = {
    "self_attention/linear_0": ("self_attention.query", "self_attention.key", "self_attention.value"),
    "self_attention/linear_1": ("self_attention.out",),
}
FEEDFORWARD: Modules = {
    "ffn/linear_0": ("feedforward.up",),
    "ffn/linear_0_noact": ("feedforward.gate",),
    "ffn/linear_1": ("feedforward.down",),
}
CROSS_ATTENTION: Modules = {
    "attention/linear_0": ("cross_attention.query",),
    "attention/linear_1": ("cross_attention.key", "cross_attention.value"),
    "attention/linear_2": ("cross_attention.out",),
}
ENCODER_LAYER: Modules = {**SELF_ATTENTION, **FEEDFORWARD}
DECODER_LAYER: Modules = {**SELF_ATTENTION, **CROSS_ATTENTION, **FEEDFORWARD}
ENCODER_NORMS: Modules = {
    "self_attention/layer_norm": ("attention_residual.norm",),
    "ffn/layer_norm": ("feedforward_residual.norm",),
}
DECODER_NORMS: Modules = {
    "self_attention/layer_norm": ("self_residual.norm",),
    "attention/layer_norm": ("cross_residual.norm",),
    "ffn/layer_norm": ("feedforward_residual.norm",),
}
FINAL_NORMS: Modules = {"encoder/layer_norm": ("encoder.norm",), "decoder/layer_norm": ("decoder.norm",)}
"""Of the pre-norm order."""
EMBEDDINGS: dict[str, Modules] = {
    "all": {
        "encoder/embeddings_0": ("source_embedding.table",),
        "decoder/embeddings": ("source_embedding.table",),
        "decoder/projection": ("source_embedding.table",),
    },
    "target": {
        "encoder/embeddings_0": ("source_embedding.table",),
        "decoder/embeddings": ("target_embedding.table",),
        "decoder/projection": ("target_embedding.table",),
    },
    "none": {
        "encoder/embeddings_0": ("source_embedding.table",),
        "decoder/embeddings": ("target_embedding.table",),
        "decoder/projection": ("output",),
    },
}
"""By the setting `tie`."""
POSITIONS: Modules = {
    "encoder/position_encodings": ("source_embedding.positions",),
    "decoder/position_encodings": ("target_embedding.positions",),
}
LINEAR_WORDS = {"weight": "weight", "bias": "bias"}
NORM_WORDS = {"weight": "gamma", "bias": "beta"}


def files(
    settings: ModelSettings, weights: Weights, source_tokens: list[str], target_tokens: list[str]
) -> dict[str, bytes | Callable[[], bytes]]:
    """File name → content. `weights` are the model's, every tied one once."""
    found = tensors(settings, weights)
    specification = specify(settings, found, source_tokens, target_tokens)
    with tempfile.TemporaryDirectory(prefix="clearhead-export-") as folder:
        specification.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def tensors(settings: ModelSettings, weights: Weights) -> dict[str, Tensor]:
    """Every weight under CTranslate2's name, as "encoder/layer_0/ffn/linear_0/weight"."""
    refuse_other(settings, PROGRAM, ALLOWED)
    encoder, decoder = (
        partial_table(layer, side, count)
        for layer, side, count in (
            (ENCODER_LAYER, "encoder", settings.encoder_layers),
            (DECODER_LAYER, "decoder", settings.decoder_layers),
        )
    )
    norms = {
        **partial_table(ENCODER_NORMS, "encoder", settings.encoder_layers),
        **partial_table(DECODER_NORMS, "decoder", settings.decoder_layers),
        **(FINAL_NORMS if settings.norm_order == "pre" else {}),
    }
    linear = {**EMBEDDINGS[settings.tie], **encoder, **decoder}
    positions = POSITIONS if settings.positions == "learned" else {}
    refuse_left_over(weights, PROGRAM, linear, norms, positions)
    found = renamed(weights, linear, LINEAR_WORDS, "/") | renamed(weights, norms, NORM_WORDS, "/")
    if settings.norm == "layer" and not settings.bias:
        found |= {f"{name}/beta": torch.zeros(settings.d_model) for name in norms}
    found |= position_tables(settings, weights)
    found["decoder/projection/bias"] = output_bias(found["decoder/projection/weight"].shape[0])
    return {name: tensor.detach().float().contiguous() for name, tensor in found.items()}


def partial_table(layer: Modules, side: str, n_layers: int) -> dict[str, tuple[str, ...]]:
    return in_layers(layer, f"{side}/layer_{{n}}/", f"{side}.layers.{{n}}.", n_layers)


def position_tables(settings: ModelSettings, weights: Weights) -> dict[str, Tensor]:
    """The rows that are added to the embeddings: learned, or made."""
    if settings.positions == "learned":
        return renamed(weights, POSITIONS, {"table": "encodings"}, "/")
    table = AbsolutePositions(settings.positions, settings.max_len, settings.d_model).table
    return {f"{name}/encodings": table for name in POSITIONS}


def output_bias(vocab: int) -> Tensor:
    bias = torch.zeros(vocab)
    bias[[PAD, BOS, MASK]] = NEVER
    return bias


def specify(
    settings: ModelSettings, found: dict[str, Tensor], source_tokens: list[str], target_tokens: list[str]
) -> Any:
    """CTranslate2's own description of the model, filled and checked by it."""
    specs = library("ctranslate2.specs")
    common = library("ctranslate2.specs.common_spec")
    index = library("ctranslate2.specs.model_spec").index_spec
    specification = specs.TransformerSpec.from_config(
        (settings.encoder_layers, settings.decoder_layers),
        settings.n_heads,
        pre_norm=settings.norm_order == "pre",
        activation=getattr(common.Activation, ACTIVATIONS[settings.activation]),
        ffn_glu=settings.activation.endswith("glu"),
        rms_norm=settings.norm == "rms",
    )
    for name, tensor in found.items():
        scope, _, part = name.rpartition("/")
        setattr(index(specification, scope), part, tensor.numpy())
    for stack in (specification.encoder, specification.decoder):
        stack.scale_embeddings = settings.embedding_scale
    specification.register_source_vocabulary(source_tokens)
    specification.register_target_vocabulary(target_tokens)
    describe(specification.config)
    specification.validate()
    specification.optimize()
    return specification


def describe(config: Any) -> None:
    config.unk_token, config.bos_token, config.eos_token = SPECIAL[UNK], SPECIAL[BOS], SPECIAL[EOS]
    config.decoder_start_token = SPECIAL[BOS]
    config.add_source_bos, config.add_source_eos = False, True
    config.layer_norm_epsilon = LayerNorm(1).eps


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("the package ctranslate2 is not installed", hint="pip install 'clearhead[export]'") from None
