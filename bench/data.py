"""Which files of a data folder are learned from, and which are translated.

Two files belong together when they differ in their last suffix alone: train.en and train.de. Of several, the shortest
name is taken: train.en, not train.lc.norm.tok.en.
"""

from __future__ import annotations

from pathlib import Path


def find_pair(folder: Path, beginning: str, source: str | None = None) -> tuple[Path, Path] | None:
    """The two files (source, target) whose names begin so; English is the source, or else the first by alphabet."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.startswith(beginning) and path.suffix:
            groups.setdefault(path.stem, []).append(path)
    pairs = [files for _, files in sorted(groups.items(), key=lambda item: (len(item[0]), item[0])) if len(files) == 2]
    if not pairs:
        return None
    wanted = f".{source or 'en'}"
    first, second = sorted(pairs[0], key=lambda path: (path.suffix != wanted, path.suffix))
    return first, second


def chosen_files(folder: Path, source: str | None = None) -> tuple[tuple[Path, Path], tuple[Path, Path]]:
    """(train, test), each a source and a target file."""
    train, test = (find_pair(folder, beginning, source) for beginning in ("train", "test"))
    if train is None or test is None:
        raise SystemExit(f"{folder}: wanted train.XX, train.YY, test*.XX and test*.YY, one sentence a line")
    return train, test
