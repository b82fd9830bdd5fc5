"""What is written can be told without the other program: every tensor goes somewhere, once, whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
import safetensors.torch
import torch

from clearhead.config import ModelSettings, TextSettings
from clearhead.errors import MissingExtra, UsageError
from clearhead.interchange import ctranslate, huggingface
from clearhead.interchange.limits import FREE, usual_heads
from clearhead.interchange.tables import left_over, renamed
from clearhead.interchange.vocabularies import token_names
from clearhead.nn.positions import sinusoidal
from clearhead.text.tokenizer import train_tokenizer
from clearhead.train.weights import named_weights

FORMATS = {"hf": huggingface, "ctranslate2": ctranslate}


@pytest.mark.parametrize("tie", ["all", "target", "none"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_number_is_written(name: str, tie: str, exportable: Any) -> None:
    settings, model = exportable(31, 31 if tie == "all" else 37, tie=tie)
    weights = named_weights(model)
    found = FORMATS[name].tensors(settings, weights)
    written = {value for tensor in found.values() for value in tensor.flatten().tolist()}
    assert all(value in written for tensor in weights.values() for value in tensor.flatten().tolist())
    assert all(tensor.dtype == torch.float32 and tensor.is_contiguous() for tensor in found.values())


def test_marian_names_and_shapes(exportable: Any) -> None:
    settings, model = exportable()
    found = huggingface.tensors(settings, named_weights(model))
    assert torch.equal(found["model.shared.weight"], model.output_weight)
    layer = model.decoder.layers[2]
    assert torch.equal(found["model.decoder.layers.2.encoder_attn.v_proj.weight"], layer.cross_attention.value.weight)
    assert torch.equal(found["model.decoder.layers.2.final_layer_norm.bias"], layer.feedforward_residual.norm.bias)
    assert found["final_logits_bias"].tolist() == [[0.0] * 31]
    assert len(found) == 2 + 2 * 16 + 3 * 26


def test_marian_files(exportable: Any) -> None:
    settings, model = exportable(31, 37, tie="target", embedding_scale=False)
    tokens = [f"s{i}" for i in range(31)], [f"t{i}" for i in range(37)]
    files = huggingface.files(settings, named_weights(model), *tokens)
    assert sorted(files) == [
        *("config.json", "generation_config.json", "model.safetensors", "target_vocab.json", "vocab.json")
    ]
    config = json.loads(files["config.json"])
    assert (config["vocab_size"], config["decoder_vocab_size"], config["decoder_start_token_id"]) == (31, 37, 1)
    assert config["scale_embedding"] is False and config["share_encoder_decoder_embeddings"] is False
    assert json.loads(files["generation_config.json"])["suppress_tokens"] == [0, 1, 4]
    assert json.loads(files["target_vocab.json"])["t36"] == 36
    assert (
        safetensors.torch.load(files["model.safetensors"]()).keys()
        == huggingface.tensors(settings, named_weights(model)).keys()
    )


def test_ctranslate2_names_and_shapes(exportable: Any) -> None:
    settings, model = exportable()
    found = ctranslate.tensors(settings, named_weights(model))
    attention = model.encoder.layers[1].self_attention
    assert torch.equal(
        found["encoder/layer_1/self_attention/linear_0/weight"],
        torch.cat([attention.query.weight, attention.key.weight, attention.value.weight]),
    )
    assert found["decoder/layer_0/attention/linear_1/bias"].shape == (44,)
    assert torch.equal(found["encoder/position_encodings/encodings"], sinusoidal(61, 22, halves=True))
    never = (found["decoder/projection/bias"] < -1e8).nonzero().flatten().tolist()
    assert never == [0, 1, 4]
    assert "encoder/layer_norm/gamma" not in found


def test_ctranslate2_pre_norm_ends_with_a_norm(exportable: Any) -> None:
    settings, model = exportable(norm_order="pre", bias=False)
    found = ctranslate.tensors(settings, named_weights(model))
    assert torch.equal(found["decoder/layer_norm/gamma"], model.decoder.norm.weight)
    assert found["encoder/layer_0/ffn/layer_norm/beta"].tolist() == [0.0] * 22


REFUSED = [
    ("hf", {"norm_order": "pre"}, "model.norm_order = pre"),
    ("hf", {"positions": "sinusoidal"}, "model.positions = sinusoidal"),
    ("hf", {"bias": False}, "model.bias = false"),
    ("hf", {"activation": "swiglu"}, "model.activation = swiglu"),
    ("hf", {"norm": "rms", "n_kv_heads": 1}, "model.norm = rms; model.n_kv_heads = 1"),
    ("ctranslate2", {"positions": "rotary", "d_head": 10}, "model.positions = rotary; model.d_head = 10"),
    ("ctranslate2", {"attention_window": 3}, "model.attention_window = 3"),
    ("ctranslate2", {"scale_scores": False}, "model.scale_scores = false"),
    ("ctranslate2", {"kind": "recurrent"}, "model.kind = recurrent"),
    ("ctranslate2", {"d_value": 5}, "model.d_value = 5"),
    ("ctranslate2", {"norm": "batch"}, "model.norm = batch"),
]


@pytest.mark.parametrize(("name", "given", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_what_cannot_be_expressed_is_refused_by_name(
    name: str, given: dict[str, Any], said: str, exportable: Any
) -> None:
    settings, model = exportable(**given)
    with pytest.raises(UsageError) as refused:
        FORMATS[name].tensors(settings, named_weights(model))
    assert said in str(refused.value) and refused.value.exit_code == 2


@pytest.mark.parametrize("name", FORMATS)
def test_every_setting_is_judged(name: str) -> None:
    """A setting that is added later must be called free, or be given the values the program can express."""
    judged = {*FORMATS[name].ALLOWED, *FREE, *usual_heads(ModelSettings())}
    assert judged == set(ModelSettings.model_fields)


def test_a_tensor_without_a_place_is_not_forgotten(exportable: Any) -> None:
    settings, model = exportable()
    weights = named_weights(model) | {"encoder.layers.0.adapter.weight": torch.zeros(2)}
    with pytest.raises(UsageError, match=r"no place for encoder\.layers\.0\.adapter\.weight"):
        huggingface.tensors(settings, weights)
    assert left_over({"a.weight": torch.zeros(1), "b.c.bias": torch.zeros(1)}, {"x": ("a",)}) == ["b.c.bias"]


def test_joined_modules_have_the_same_parts() -> None:
    weights = {"q.weight": torch.ones(2, 3), "k.weight": torch.zeros(4, 3), "q.bias": torch.ones(2)}
    with pytest.raises(ValueError, match="only some"):
        renamed(weights, {"qk": ("q", "k")}, {"weight": "weight", "bias": "bias"})
    assert renamed(weights, {"qk": ("q", "k")}, {"weight": "w"}, "/")["qk/w"].shape == (6, 3)


def test_token_names_are_different() -> None:
    """A space prints as ▁, and so does the character ▁."""
    tokenizer = train_tokenizer(["a ▁b ▁"] * 50, TextSettings(vocab_size=300))
    names = token_names(tokenizer)
    assert len(set(names)) == tokenizer.vocab_size
    assert names[:3] == ["<pad>", "<bos>", "<eos>"] and names[5 + 0x41] == "<0x41>"
    clashing = [i for i, name in enumerate(names) if name == f"<id {i}>"]
    assert clashing and all(tokenizer.token(i) in names[:i] for i in clashing)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'clearhead\[export\]'"):
        ctranslate.library("ctranslate2_that_is_nowhere")
