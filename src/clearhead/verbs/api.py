"""The verbs as Python calls: the same words as on the command line, with Python's own arguments.

ch.train("pairs.tsv", out="runs/de", size="tiny", settings={"train": {"max_steps": 2000}})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.data.report import Report
from clearhead.evaluate.report import Evaluation
from clearhead.train.loop import Listener, Stop
from clearhead.verbs import data as data_verb
from clearhead.verbs import doctor as doctor_verb
from clearhead.verbs import evaluate as evaluate_verb
from clearhead.verbs import plan as plan_verb
from clearhead.verbs import train as train_verb
from clearhead.verbs.model import Model, load
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.recipe import table_from
from clearhead.verbs.resolve import laid_over

Files = str | Path | Sequence[str | Path]


def names(files: Files) -> list[str]:
    return [str(files)] if isinstance(files, str | Path) else [str(file) for file in files]


def table_of(files: Files, settings: Mapping[str, Any] | None, said: Mapping[str, Any]) -> dict[str, Any]:
    table = table_from(names(files), {name: value for name, value in said.items() if value})
    return laid_over(table, settings or {})


def train(
    files: Files,
    out: str | Path,
    *,
    size: str | None = None,
    columns: str | None = None,
    source: str | None = None,
    target: str | None = None,
    valid: Files = (),
    settings: Mapping[str, Any] | None = None,
    listener: Listener | None = None,
    stop: Stop | None = None,
) -> Model:
    """Train on files of pairs, or go on with the run in `out`, and open the result."""
    said = {"size": size, "columns": columns, "source": source, "target": target, "valid": names(valid)}
    train_verb.train(table_of(files, settings, said), Path(out), listener or Quiet(), stop=stop)
    return load(out)


def translate(model: Model | str | Path, text: str | Sequence[str], **changes: Any) -> str | list[str]:
    """Translate one text or several with a model or the folder of one."""
    opened = model if isinstance(model, Model) else load(model)
    return opened.translate(text, **changes)


def evaluate(
    model: Model | str | Path,
    files: Files,
    *,
    against: Model | str | Path | None = None,
    tokenize: str | None = None,
    data: Mapping[str, Any] | None = None,
    worst: int = 5,
    outputs: str | Path | None = None,
    threads: int | None = None,
    device: str = "auto",
    **changes: Any,
) -> Evaluation:
    """Scores with signatures and intervals; `changes` are decoding settings, for example beam=1."""
    return evaluate_verb.evaluate(
        folder_of(model),
        names(files),
        against=None if against is None else folder_of(against),
        tokenize=tokenize,
        data=data,
        changes=changes,
        worst=worst,
        outputs=None if outputs is None else Path(outputs),
        threads=threads,
        device=device,
    )


def folder_of(model: Model | str | Path) -> Path:
    return model.path if isinstance(model, Model) else Path(model)


def data_check(files: Files, *, test: Files = (), **data: Any) -> Report:
    """The data report; `data` are settings of the data room, for example columns="1,2"."""
    return data_verb.check(names(files), data, names(test), None)


def plan(files: Files, *, size: str | None = None, settings: Mapping[str, Any] | None = None) -> plan_verb.Plan:
    """What a run would take, measured here."""
    return plan_verb.plan(table_of(files, settings, {"size": size}), (), lambda text: None)


def doctor(model: str | Path | None = None) -> list[doctor_verb.Finding]:
    """What is installed and what is wrong."""
    return doctor_verb.examine(None if model is None else Path(model))
