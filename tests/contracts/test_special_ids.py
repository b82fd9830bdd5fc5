"""The special ids are the same in every room that needs them; decode may not import text, so a test ties them."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.data import batching
from clearhead.decode import step
from clearhead.models.protocol import EncoderDecoder
from clearhead.text import vocabulary

NAMES = ("PAD", "BOS", "EOS", "UNK", "MASK")


def test_the_same_everywhere() -> None:
    text = {name: getattr(vocabulary, name) for name in NAMES}
    assert text == {"PAD": 0, "BOS": 1, "EOS": 2, "UNK": 3, "MASK": 4}
    assert {name: getattr(step, name) for name in NAMES} == text
    for name in ("PAD", "BOS", "EOS"):
        assert getattr(batching, name) == text[name]


def test_their_printed_forms_stand_in_that_order() -> None:
    assert tuple(f"<{name.lower()}>" for name in NAMES) == vocabulary.SPECIAL


def test_models_hide_what_the_others_pad_with(tiny_model: Callable) -> None:
    assert EncoderDecoder.pad == tiny_model().pad == vocabulary.PAD
