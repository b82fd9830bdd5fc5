"""Train the model in the package again: the demo's recipe, longer; weights stored as bf16.

    python bench/package_model.py [--steps 3000] [--run build/packaged-run] [--out src/clearhead/packaged/…]

On the same machine type and torch the same bytes come out: it is trained on one thread, whatever the machine has, in
about a quarter of an hour; stopped and started again, it goes on. The weights are rounded to bf16 first and judged
afterwards, so the score printed is the stored model's own.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from clearhead.cli.progress import display
from clearhead.data.phrasebook import phrasebook
from clearhead.evaluate.metrics import quick_scores
from clearhead.train.loop import Stop
from clearhead.verbs.demo import NOTICE, recipe, write_book
from clearhead.verbs.model import PACKAGED, load
from clearhead.verbs.pack import pack
from clearhead.verbs.resolve import laid_over
from clearhead.verbs.train import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--run", type=Path, default=Path("build/packaged-run"))
    parser.add_argument("--out", type=Path, default=PACKAGED)
    given = parser.parse_args()
    book = phrasebook("en", "de")
    shown = display()
    write_book(book, given.run)
    table = laid_over(recipe(book, given.run, given.steps), {"train": {"threads": 1}})
    train(table, given.run, shown, stop=Stop())
    shown.stop()
    made = given.run / "packed"
    shutil.rmtree(made, ignore_errors=True)
    pack(given.run, made, half=True, notes={NOTICE: (given.run / NOTICE).read_bytes()})
    model = load(made)
    outputs = model.translate([source for source, _ in book.held_out])
    scores = quick_scores(list(outputs), [target for _, target in book.held_out])
    shutil.rmtree(given.out, ignore_errors=True)
    shutil.copytree(made, given.out)
    size = sum(path.stat().st_size for path in given.out.iterdir())
    print(f"{given.out}: {model.parameters:,} parameters, {size:,} bytes")
    print(f"held-out chrF {scores['chrf']:.1f}\nheld-out exact match {scores['exact']:.1f} %")


if __name__ == "__main__":
    main()
