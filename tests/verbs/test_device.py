"""A device is taken, or refused by name: never another one without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import clearhead as ch
from clearhead.errors import UsageError
from clearhead.verbs.device import described, device
from clearhead.verbs.translate import open_model

MODEL = Path(__file__).parents[1] / "formats" / "format-1" / "run"


def test_what_is_there_is_taken() -> None:
    assert device("cpu") == torch.device("cpu") and "processor" in described(device("cpu"))
    assert device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_what_is_not_there_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError, match=f"finds no {name} here") as caught:
        device(name)
    assert caught.value.hint == "here: cpu"
    with pytest.raises(UsageError, match="finds no"):
        ch.load(MODEL, device=name)


def test_a_misspelt_one_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="no device 'cdua'") as caught:
        device("cdua")
    assert caught.value.hint == "did you mean cuda?"


def test_it_is_said_when_it_was_asked_for() -> None:
    said: list[str] = []
    assert open_model(MODEL, on="cpu", say=said.append).device.type == "cpu"
    assert len(said) == 1 and "on the processor" in said[0]
    open_model(MODEL, say=said.append)
    assert len(said) == 1 or torch.cuda.is_available()
