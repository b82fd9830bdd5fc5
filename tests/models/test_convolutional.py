"""The convolutional baseline: how far it sees, by gradients, and its filter against torch's own convolution."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.models.convolutional import Convolutional, ConvolutionalEncoder, GatedConvolution
from clearhead.models.seq2seq import parameter_count


def settings(**changes: object) -> ModelSettings:
    shape = {"kind": "convolutional", "d_model": 14, "d_ff": 13, "n_heads": 2, "d_head": 3, "dropout": 0.0}
    return ModelSettings(**{**shape, "encoder_layers": 3, "decoder_layers": 1, **changes})


def built(**changes: object) -> Convolutional:
    model = build(settings(**changes), 29, 29)
    assert isinstance(model, Convolutional)
    return model.eval()


@pytest.mark.parametrize("window", [1, 2])
def test_the_window_is_torchs_convolution_gated(window: int) -> None:
    generator = torch.Generator().manual_seed(5)
    conv = GatedConvolution(5, window)
    x = torch.randn(3, 11, 5, generator=generator)
    with torch.no_grad():
        conv.filter.bias.copy_(torch.randn(10, generator=generator))
    kernel = conv.filter.weight.view(10, 2 * window + 1, 5).transpose(1, 2)
    expected = F.glu(F.conv1d(x.transpose(1, 2), kernel, conv.filter.bias, padding=window), 1).transpose(1, 2)
    everywhere = torch.ones(3, 11, 1, dtype=torch.bool)
    torch.testing.assert_close(conv(x, everywhere), expected, atol=1e-6, rtol=0)


def test_padding_is_silenced_before_the_filter() -> None:
    conv = GatedConvolution(5, 2)
    x = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(6))
    real = torch.ones(2, 7, 1, dtype=torch.bool)
    real[:, 4:] = False
    changed = x.clone()
    changed[:, 4:] = 1e6
    assert torch.equal(conv(changed, real)[:, :4], conv(x, real)[:, :4])
    torch.testing.assert_close(conv(x[:, :4], real[:, :4]), conv(x, real)[:, :4], atol=1e-6, rtol=0)


@pytest.mark.parametrize(("layers", "window", "reach"), [(1, None, 1), (3, None, 3), (2, 3, 6), (4, 2, 8)])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_reach_is_what_gradients_measure(layers: int, window: int | None, reach: int, order: str) -> None:
    encoder = ConvolutionalEncoder(settings(encoder_layers=layers, attention_window=window, norm_order=order))
    assert encoder.reach == reach
    x = torch.randn(1, 2 * reach + 5, 14, generator=torch.Generator().manual_seed(8), requires_grad=True)
    middle = reach + 2
    encoder(x, torch.ones(1, x.shape[1], 1, dtype=torch.bool))[0, middle].square().sum().backward()
    felt = x.grad[0].abs().sum(-1).nonzero()[:, 0].tolist()
    assert felt == list(range(middle - reach, middle + reach + 1))


def test_the_model_tells_its_reach() -> None:
    assert built(encoder_layers=2, attention_window=3).reach == 6


def test_the_window_is_the_filters_not_the_decoders() -> None:
    """A decoder with the filter's window would not hear the first word of a long target."""
    model = built(attention_window=1)
    source = torch.full((1, 3), 7)
    target = torch.randint(5, 29, (1, 17), generator=torch.Generator().manual_seed(9))
    changed = target.clone()
    changed[0, 0] = 5 + (changed[0, 0] - 4) % 24
    assert (model(source, target)[0, -1] - model(source, changed)[0, -1]).abs().max() > 1e-4


def test_only_the_encoder_differs_from_the_transformer() -> None:
    transformer = build(settings(kind="seq2seq"), 29, 29)
    baseline = built()
    assert parameter_count(baseline.decoder) == parameter_count(transformer.decoder)
    names = {name for name, _ in baseline.named_parameters() if not name.startswith("encoder.")}
    assert names == {name for name, _ in transformer.named_parameters() if not name.startswith("encoder.")}
