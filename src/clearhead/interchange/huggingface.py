"""Writes the Marian layout of Hugging Face: config.json, generation_config.json, model.safetensors, vocab.json.

Marian there is a post-norm Transformer with sinusoidal positions in halves, layer norms, biases, and scores divided by
√d_head: other models are refused. What it does its own way is written down instead: the decoder starts with the token
`decoder_start_token_id` (our <bos>; Helsinki's models take <pad>), a bias is added to the logits (zeros: we have
none), and what is never written — padding, start, mask — is listed in `suppress_tokens`. Sources end with <eos>.

vocab.json maps tokens to ids. The cutting of text stays clearhead's: Marian's own tokenizer wants SentencePiece files.
No pickle is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from clearhead.config import ModelSettings
from clearhead.interchange.limits import PLAIN_SHAPE, refuse_other
from clearhead.interchange.tables import Modules, Weights, in_layers, refuse_left_over, renamed
from clearhead.text.vocabulary import BOS, EOS, MASK, PAD, UNK

PROGRAM = "Hugging Face's Marian"
ALLOWED = PLAIN_SHAPE | {
    "positions": ("sinusoidal-halves",),
    "norm": ("layer",),
    "norm_order": ("post",),
    "activation": ("relu", "gelu", "relu2"),
    "bias": (True,),
}

ENCODER_LAYER: Modules = {
    "self_attn.q_proj": ("self_attention.query",),
    "self_attn.k_proj": ("self_attention.key",),
    "self_attn.v_proj": ("self_attention.value",),
    "self_attn.out_proj": ("self_attention.out",),
    "self_attn_layer_norm": ("attention_residual.norm",),
    "fc1": ("feedforward.up",),
    "fc2": ("feedforward.down",),
    "final_layer_norm": ("feedforward_residual.norm",),
}
DECODER_LAYER: Modules = {
    **ENCODER_LAYER,
    "self_attn_layer_norm": ("self_residual.norm",),
    "encoder_attn.q_proj": ("cross_attention.query",),
    "encoder_attn.k_proj": ("cross_attention.key",),
    "encoder_attn.v_proj": ("cross_attention.value",),
    "encoder_attn.out_proj": ("cross_attention.out",),
    "encoder_attn_layer_norm": ("cross_residual.norm",),
}
EMBEDDINGS: dict[str, Modules] = {
    "all": {"model.shared": ("source_embedding.table",)},
    "target": {
        "model.encoder.embed_tokens": ("source_embedding.table",),
        "model.decoder.embed_tokens": ("target_embedding.table",),
    },
    "none": {
        "model.encoder.embed_tokens": ("source_embedding.table",),
        "model.decoder.embed_tokens": ("target_embedding.table",),
        "lm_head": ("output",),
    },
}
"""By the setting `tie`."""
WORDS = {"weight": "weight", "bias": "bias"}


def files(
    settings: ModelSettings, weights: Weights, source_tokens: list[str], target_tokens: list[str]
) -> dict[str, bytes | Callable[[], bytes]]:
    """File name → content. `weights` are the model's, every tied one once."""
    found = tensors(settings, weights)
    vocabularies = {"vocab.json": source_tokens}
    if source_tokens != target_tokens:
        vocabularies["target_vocab.json"] = target_tokens
    return {
        "config.json": as_json(config(settings, len(source_tokens), len(target_tokens))),
        "generation_config.json": as_json(generation_config(settings)),
        "model.safetensors": lambda: safetensors.torch.save(found, {"format": "pt"}),
        **{name: as_json({t: i for i, t in enumerate(tokens)}) for name, tokens in vocabularies.items()},
    }


def tensors(settings: ModelSettings, weights: Weights) -> dict[str, Tensor]:
    """Every weight under Marian's name."""
    refuse_other(settings, PROGRAM, ALLOWED)
    encoder = in_layers(ENCODER_LAYER, "model.encoder.layers.{n}.", "encoder.layers.{n}.", settings.encoder_layers)
    decoder = in_layers(DECODER_LAYER, "model.decoder.layers.{n}.", "decoder.layers.{n}.", settings.decoder_layers)
    embeddings = EMBEDDINGS[settings.tie]
    refuse_left_over(weights, PROGRAM, embeddings, encoder, decoder)
    found = renamed(weights, {**embeddings, **encoder, **decoder}, WORDS)
    rows = found["model.shared.weight" if settings.tie == "all" else "model.decoder.embed_tokens.weight"].shape[0]
    found["final_logits_bias"] = torch.zeros(1, rows)
    return {name: tensor.detach().float().contiguous() for name, tensor in found.items()}


def config(settings: ModelSettings, source_vocab: int, target_vocab: int) -> dict[str, Any]:
    both_stacks = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("ffn_dim", settings.d_ff), ("attention_heads", settings.n_heads), ("layerdrop", 0.0))
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": source_vocab,
        "decoder_vocab_size": target_vocab,
        "d_model": settings.d_model,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        **both_stacks,
        "max_position_embeddings": settings.max_len,
        "activation_function": settings.activation,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "activation_dropout": settings.activation_dropout,
        "scale_embedding": settings.embedding_scale,
        "share_encoder_decoder_embeddings": settings.tie == "all",
        "tie_word_embeddings": settings.tie != "none",
        "is_encoder_decoder": True,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "unk_token_id": UNK,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "torch_dtype": "float32",
    }


def generation_config(settings: ModelSettings) -> dict[str, Any]:
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "suppress_tokens": [PAD, BOS, MASK],
        "max_length": settings.max_len,
    }


def as_json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
