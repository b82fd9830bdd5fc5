"""What verbs print on stdout, and how their decoding options are read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.errors import UsageError

if TYPE_CHECKING:
    from clearhead.verbs.model import Translation


def decoding_changes(beam: int | None, n_best: int | None, sample: bool, overrides: Sequence[str]) -> dict[str, Any]:
    """Options → settings of `decode`; `--set length_penalty=0.6` may leave the section's name out."""
    from clearhead.config.load import parse_override

    changes: dict[str, Any] = {}
    for text in overrides:
        name, value = parse_override(f"decode.{text}" if re.match(r"[^.=]+=", text) else text)
        if not name.startswith("decode."):
            raise UsageError(
                f"{name} is no setting of decoding", field="--set", hint="those of [decode] may be given here"
            )
        changes[name.removeprefix("decode.")] = value
    if beam is not None:
        changes |= {"method": "greedy" if beam == 1 else "beam", "beam": beam}
    if n_best is not None:
        changes |= {"n_best": n_best}
    if sample:
        changes |= {"method": "sample"}
    return changes


def data_settings(said: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Settings of `data`: what options said, and each `--set data.NAME=VALUE` laid over it."""
    from clearhead.config.load import apply_overrides

    given = {name: value for name, value in said.items() if value}
    return dict(apply_overrides({"data": given}, overrides)["data"])


def write_translations(
    translations: Sequence[Translation], as_json: bool, several: bool = False, first: int = 0
) -> None:
    """One line per output. A line break inside one would break that promise: it is written as a space. Of several
    outputs each is told with its text's number and log-probability: number, log-probability, output, tabs between."""
    for number, translation in enumerate(translations, first + 1):
        if as_json:
            record = {"source": translation.source, "pieces": translation.pieces}
            outputs = [asdict(found) for found in translation.outputs]
            sys.stdout.write(json.dumps(record | {"outputs": outputs}, ensure_ascii=False) + "\n")
        else:
            for found in translation.outputs:
                told = f"{number}\t{found.log_probability:.4f}\t" if several else ""
                sys.stdout.write(told + " ".join(found.text.split("\n")) + "\n")
    sys.stdout.flush()


def one_document(text: Sequence[str] | None) -> Path:
    if not text or len(text) != 1:
        raise UsageError("-o needs exactly one document to translate", hint="clearhead translate RUN in.po -o out.po")
    return Path(text[0])
