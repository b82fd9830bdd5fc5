"""The same text, the same answer: alone, in any batch, in any order, in another process, on more threads.

Of a model trained for this: its sentences end by themselves and differ from one another, so that there is something
to disturb. Tokens are equal, scores agree within 1e-5; on another number of threads sums are added up in another
order, and scores agree within 1e-4.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.data.synthetic import reverse
from clearhead.errors import UsageError
from clearhead.verbs.model import Model, Translation, load

TABLE: dict[str, Any] = {
    "text": {"vocab_size": 300},
    "model": {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "n_heads": 4, "max_len": 64}
    | {"dropout": 0.0, "positions": "rotary"},
    "data": {"valid_pairs": 10},
    "train": {"max_steps": 150, "batch_tokens": 800, "optimiser": "muon", "lr": 5e-3, "warmup_steps": 10}
    | {"threads": 1, "precision": "float32", "schedule": "wsd"},
    "validation": {"every_steps": 150, "metric": "loss", "decode_pairs": 0},
    "checkpoint": {"every_steps": 150},
}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "greedy"},
    "beam": {"beam": 4, "n_best": 4},
    "no repeats": {"beam": 3, "n_best": 2, "no_repeat": 2},
    "plain step": {"beam": 4, "n_best": 2, "fast": False},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, train_here: Callable[..., Any]) -> Path:
    root = tmp_path_factory.mktemp("answers")
    pairs = root / "pairs.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in reverse(400, 3, length=6, symbols=12)), encoding="utf-8")
    from clearhead.verbs.quiet import Quiet
    from clearhead.verbs.train import train

    train({"files": [str(pairs)], **TABLE}, root / "run", Quiet())
    return root / "run"


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Short and long, empty, twice the same, longer than the model reads at once."""
    made = [source for length in (2, 6, 11) for source, _ in reverse(9, length, length=length, symbols=12)]
    return [*made, "", "a", made[3], " ".join("abcdefghijkl" * 8), "…", "a b c. d e f! g h i?"]


def translated(model: Model, texts: list[str], **changes: Any) -> list[Translation]:
    return model.translations(texts, model.settings(**changes))


def same(a: Translation, b: Translation, within: float = 1e-5) -> None:
    assert (a.source, a.pieces) == (b.source, b.pieces)
    assert [(o.text, o.tokens, o.finish_reason) for o in a.outputs] == [
        (o.text, o.tokens, o.finish_reason) for o in b.outputs
    ]
    for one, other in zip(a.outputs, b.outputs, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, rel=within, abs=within)


@pytest.mark.parametrize("way", WAYS)
def test_alone_in_any_batch_in_any_order(way: str, model: Model, texts: list[str]) -> None:
    together = dict(enumerate(translated(model, texts, **WAYS[way])))
    for place, text in enumerate(texts):
        same(translated(model, [text], **WAYS[way])[0], together[place])
    for batch_tokens in (1, 20, 100):
        for one, other in zip(
            translated(model, texts, batch_tokens=batch_tokens, **WAYS[way]), together.values(), strict=True
        ):
            same(one, other)
    for seed in range(5):
        order = random.Random(seed).sample(range(len(texts)), len(texts))
        for place, found in zip(order, translated(model, [texts[i] for i in order], **WAYS[way]), strict=True):
            same(found, together[place])


def test_there_is_something_to_disturb(model: Model, texts: list[str]) -> None:
    found = translated(model, texts, **WAYS["beam"])
    assert len({o.text for t in found for o in t.outputs}) > len(texts)
    assert sum(o.finish_reason == "stop" for t in found for o in t.outputs) > len(texts)
    assert any(t.pieces > 1 for t in found)


SCRIPT = """
import json, sys
import torch
torch.set_num_threads(int(sys.argv[2]))
from clearhead.verbs.model import load
model = load(sys.argv[1])
found = model.translations(json.loads(sys.stdin.read()), model.settings(beam=4, n_best=4))
print(json.dumps([[[o.text, o.log_probability] for o in t.outputs] for t in found]))
"""


def elsewhere(folder: Path, texts: list[str], threads: int) -> list[list[tuple[str, float]]]:
    """The answers of another process."""
    words = [sys.executable, "-c", SCRIPT, str(folder), str(threads)]
    told = subprocess.run(
        words, input=json.dumps(texts), capture_output=True, text=True, check=True, env=dict(os.environ), timeout=300
    )
    answer: list[list[tuple[str, float]]] = json.loads(told.stdout)
    return answer


@pytest.mark.parametrize(("threads", "within"), [(1, 1e-5), (2, 1e-4)])
def test_another_process_and_more_threads(
    threads: int, within: float, folder: Path, model: Model, texts: list[str]
) -> None:
    for here, there in zip(translated(model, texts, beam=4, n_best=4), elsewhere(folder, texts, threads), strict=True):
        assert [o.text for o in here.outputs] == [text for text, _ in there]
        for output, (_, score) in zip(here.outputs, there, strict=True):
            assert output.log_probability == pytest.approx(score, rel=within, abs=within)


def test_several_draws(model: Model, texts: list[str]) -> None:
    """As many as asked for; the first is what one draw gives, and none depends on how many there are or on others."""

    def drawn(n_best: int, texts: list[str], first: int = 0) -> list[Translation]:
        return model.translations(texts, model.settings(method="sample", temperature=3.0, n_best=n_best), first=first)

    several, fewer, one = drawn(5, texts), drawn(2, texts), drawn(1, texts)
    for text, all_of_them, some, single in zip(texts, several, fewer, one, strict=True):
        assert len(all_of_them.outputs) == (5 if any(c.isalnum() for c in text) else 1)
        assert [o.text for o in all_of_them.outputs[:2]] == [o.text for o in some.outputs]
        assert single.text == some.text
    assert len({output.text for output in several[0].outputs}) > 1
    same(drawn(5, texts[4:5], first=4)[0], several[4])
    with pytest.raises(UsageError, match="gives one output"):
        model.settings(method="greedy", n_best=2)
