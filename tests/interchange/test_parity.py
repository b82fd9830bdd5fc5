"""Exported = ours: the other program, given the folder, computes the same numbers and writes the same words."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.files import publish
from clearhead.interchange import ctranslate, huggingface
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.weights import named_weights

SOURCES = [[7, 9, 11, 8, 30], [5], [12, 13, 12, 13, 12, 13, 12]]
TARGETS = [[6, 5], [20, 21, 22, 23, 29], [8]]
NEVER = [0, 1, 4]
TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>", "<mask>", *(f"t{i}" for i in range(5, 31))]
KINDS = {
    "hf": [{}, {"tie": "none"}, {"tie": "target", "embedding_scale": False}, {"activation": "gelu"}],
    "ctranslate2": [
        {},
        {"norm_order": "pre", "positions": "sinusoidal"},
        {"norm_order": "pre", "norm": "rms", "activation": "swiglu", "bias": False, "tie": "target"},
        {"positions": "learned", "activation": "geglu", "embedding_scale": False, "tie": "none"},
        {"activation": "gelu"},
    ],
}


def exported(make: Any, to: str, given: dict[str, Any], folder: Path) -> EncoderDecoder:
    settings, model = make(d_model=32, n_heads=4, **given)
    writer = {"hf": huggingface, "ctranslate2": ctranslate}[to]
    publish(folder, writer.files(settings, named_weights(model), TOKENS, TOKENS), {})
    return model


def our_logits(model: EncoderDecoder, source: list[int], target: list[int]) -> torch.Tensor:
    """At every place of the target, the place after its last token included."""
    with torch.no_grad():
        return model.logits(model(torch.tensor([[*source, 2]]), torch.tensor([[1, *target]])))[0]


@pytest.mark.parametrize("given", KINDS["ctranslate2"], ids=str)
def test_ctranslate2(given: dict[str, Any], exportable: Any, tmp_path: Path) -> None:
    library = pytest.importorskip("ctranslate2", reason="pip install 'clearhead[export]'")
    model = exported(exportable, "ctranslate2", given, tmp_path / "out")
    translator = library.Translator(str(tmp_path / "out"), compute_type="float32", intra_threads=1)
    sources, targets = ([[TOKENS[i] for i in ids] for ids in side] for side in (SOURCES, TARGETS))
    for scored, source, target in zip(translator.score_batch(sources, targets), SOURCES, TARGETS, strict=True):
        logits = our_logits(model, source, target)
        logits[:, NEVER] = -torch.inf
        ours = torch.log_softmax(logits, -1).gather(1, torch.tensor([[*target, 2]]).T)[:, 0]
        torch.testing.assert_close(torch.tensor(scored.log_probs), ours, atol=2e-5, rtol=1e-5)
    written = translator.translate_batch(sources, beam_size=1, min_decoding_length=0, max_decoding_length=12)
    ours = decode(model, SOURCES, DecodeSettings(method="greedy", max_ratio=1e-9, max_extra=12))
    assert [found.hypotheses[0] for found in written] == [[TOKENS[i] for i in best.tokens] for (best,) in ours]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", KINDS["hf"], ids=str)
def test_hugging_face(given: dict[str, Any], exportable: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="pip install transformers")
    model = exported(exportable, "hf", given, tmp_path / "out")
    theirs, said = transformers.MarianMTModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not said["unexpected_keys"] and not said["mismatched_keys"]
    theirs.eval()
    for source, target in zip(SOURCES, TARGETS, strict=True):
        with torch.inference_mode():
            logits = theirs(
                input_ids=torch.tensor([[*source, 2]]), decoder_input_ids=torch.tensor([[1, *target]])
            ).logits[0]
        torch.testing.assert_close(logits, our_logits(model, source, target), atol=2e-5, rtol=1e-5)
    width = max(map(len, SOURCES)) + 1
    ids = torch.tensor([[*source, 2, *[0] * (width - 1 - len(source))] for source in SOURCES])
    found = theirs.generate(
        input_ids=ids,
        attention_mask=(ids != 0).long(),
        num_beams=1,
        do_sample=False,
        max_new_tokens=12,
        max_length=None,
    )
    ours = decode(model, SOURCES, DecodeSettings(method="greedy", max_ratio=1e-9, max_extra=12))
    for row, (best,) in zip(found.tolist(), ours, strict=True):
        assert list(itertools.takewhile(lambda token: token not in (0, 2), row[1:])) == list(best.tokens)
