"""The verb `demo`: a small translator trained on the built-in phrasebook, in about two minutes, with no network.

The phrasebook is written to two ordinary TSV files and trained on by the ordinary verb, so everything shown here
works the same on a person's own file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clearhead.data.phrasebook import LICENCE_NOTICE, Phrasebook, phrasebook
from clearhead.data.phrasebook.baseline import nearest_copy
from clearhead.evaluate.metrics import quick_scores
from clearhead.files import write_atomic
from clearhead.train.loop import Listener, Stop
from clearhead.verbs.model import Model, load
from clearhead.verbs.ticker import Ticker
from clearhead.verbs.train import train

STEPS, QUICK_STEPS = 650, 30
SHOWN = 6
TRAIN, TEST, NOTICE = "phrasebook.train.tsv", "phrasebook.test.tsv", "phrasebook.LICENCE"


def recipe(book: Phrasebook, folder: Path, steps: int) -> dict[str, Any]:
    """What `clearhead train` is given: a model of 1.5 million parameters, a fixed number of steps."""
    about = book.provenance
    source, target = (str(about[side]).replace("_", "-") for side in ("source", "target"))
    note = f"The phrases are from CLDR {about['cldr']} (Babel {about['babel']}), {about['licence']}: see {NOTICE}."
    return {
        "files": [str(folder / TRAIN)],
        "size": "tiny",
        "data": {"source": source, "target": target, "valid_pairs": 200, "note": note},
        "text": {"vocab_size": 3000},
        "model": {"encoder_layers": 3, "decoder_layers": 3, "dropout": 0.05, "positions": "rotary"},
        "train": {"max_steps": steps, "optimiser": "muon", "muon_lr": 0.02, "lr": 3e-3, "schedule": "wsd"}
        | {"warmup_steps": min(100, steps), "decay_fraction": 0.5, "batch_tokens": 4096},
        "validation": {"every_steps": max(1, steps // 4), "metric": "exact", "decode_pairs": 100},
        "checkpoint": {"every_steps": max(1, steps // 2), "keep": 1},
        "decode": {"method": "greedy"},
    }


def demo(source: str, target: str, folder: Path, listener: Listener, stop: Stop, quick: bool) -> list[str]:
    """Train and judge; returns what to show a person."""
    listener.say(f"making the phrasebook {source} → {target} from the locale data in Babel …")
    book = phrasebook(source, target)
    write_book(book, folder)
    steps = QUICK_STEPS if quick else STEPS
    train(recipe(book, folder, steps), folder, listener, stop=stop)
    model = load(folder)
    texts = [text for text, _ in book.held_out]
    ticker = Ticker(listener.say, "translated", len(texts))
    outputs = [found.text for found in model.translations(texts, model.settings(), ticker)]
    listener.say("copying the nearest training phrase, for comparison …")
    return report(book, folder, model, outputs, nearest_copy(book))


def write_book(book: Phrasebook, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in ((TRAIN, book.train), (TEST, book.held_out)):
        write_atomic(folder / name, "".join(f"{s}\t{t}\n" for s, t in pairs).encode())
    made = "\n".join(f"{key}: {value}" for key, value in book.provenance.items())
    write_atomic(folder / NOTICE, f"{LICENCE_NOTICE}\n\n{made}\n".encode())


def report(book: Phrasebook, folder: Path, model: Model, outputs: Sequence[str], copied: float) -> list[str]:
    """Some translations, the scores, and what to type next."""
    references = [target for _, target in book.held_out]
    scores = quick_scores(outputs, references)
    shown = range(0, len(outputs), max(1, len(outputs) // SHOWN))
    lines = [
        f"{len(book.train):,} phrases learned from, {len(outputs):,} held out: new combinations of known words",
        "",
    ]
    for place in list(shown)[:SHOWN]:
        right = "✓" if outputs[place] == references[place] else f"✗  wanted: {references[place]}"
        lines += [f"  {book.held_out[place][0]}", f"    → {outputs[place]}  {right}"]
    return [
        *lines,
        "",
        "Next:",
        f'  clearhead translate {folder} "{book.held_out[0][0]}"',
        f"  clearhead evaluate {folder} {folder / TEST}",
        "  clearhead train YOUR-PAIRS.tsv -o runs/mine",
        "",
        f"model: {model.parameters:,} parameters in {folder}",
        f"held-out chrF {scores['chrf']:.1f}",
        f"copying the nearest training phrase: exact match {100 * copied:.1f} %",
        f"held-out exact match {scores['exact']:.1f} %",
    ]
