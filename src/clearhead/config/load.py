"""Reading, overriding and writing experiments, strictly: an unknown key names the nearest known one and its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from clearhead.config.experiment import Experiment
from clearhead.errors import UsageError, nearest

WANTED = {
    "int": "a whole number",
    "int_from": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list",
    "model": "a table of settings",
    "model_attributes": "a table of settings",
}
"""Kinds of values, by Pydantic's names for them."""


def read_experiment(path: Path) -> Experiment:
    """A recipe or a resolved config, checked against every setting's type and bounds."""
    return build_experiment(read_table(path), path)


def read_table(path: Path) -> dict[str, Any]:
    """The file's keys as they stand, unchecked: what the person wrote, and no more."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError("is not UTF-8", file=path, line=line, hint="convert the file with iconv") from None
    except FileNotFoundError:
        raise UsageError("there is no such file", file=path) from None
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", file=path) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        raise UsageError(f"is not valid TOML: {error}", file=path, line=int(place[1]) if place else None) from None


def build_experiment(table: Mapping[str, Any], path: Path | None = None) -> Experiment:
    try:
        return Experiment.model_validate(table)
    except ValidationError as error:
        raise explain(error, path) from None


def refuse_misspelt(table: Mapping[str, Any], path: Path | None = None) -> None:
    """Names, types and bounds of settings to which others will be added: told now, with a file's line. What settings
    ask of one another ("value_error") is asked when they are all there."""
    try:
        Experiment.model_validate(table)
    except ValidationError as error:
        if any(found["type"] != "value_error" for found in error.errors(include_url=False)):
            raise explain(error, path) from None


def explain(error: ValidationError, path: Path | None = None) -> UsageError:
    """Pydantic's first complaint in our words: the setting, its line, the value, the way out."""
    complaints = error.errors(include_url=False)
    first = min(complaints, key=lambda found: found["type"] == "value_error")
    keys = [str(part) for part in first["loc"]]
    name = ".".join(keys)
    line = find_line(path, keys) if path else None
    if first["type"] == "extra_forbidden":
        return UsageError(f"unknown setting {name}", file=path, line=line, hint=suggestion(name))
    shown = first["type"] != "missing" and not isinstance(first["input"], dict | BaseModel)
    value = f", not {first['input']!r}" if shown else ""
    return UsageError(f"{in_words(first)}{value}", file=path, line=line, field=name or None)


def in_words(complaint: ErrorDetails) -> str:
    """What a value must be, for people who never heard of Python."""
    what = WANTED.get(complaint["type"].rsplit("_", 1)[0])
    if complaint["type"] == "missing":
        return "is missing: more values are wanted"
    if complaint["type"] == "too_long":
        return f"must be at most {complaint['ctx']['max_length']} values"
    if what and complaint["type"].endswith(("_type", "_parsing", "_float")):
        return f"must be {what}"
    return complaint["msg"].removeprefix("Value error, ").replace("Input should be", "must be")


def suggestion(name: str) -> str:
    """The way out for one who named a setting that is none: the nearest setting, be it by its last part, or table."""
    known, last = known_settings(), name.rsplit(".", 1)[-1]
    if name in known:  # as one key of a recipe, or of a table in Python
        return f"settings stand in tables: {name.split('.')[0]} holds {last}"
    tables = {setting.split(".")[0]: setting for setting in reversed(known) if "." in setting}
    if name in tables:
        return f"it is a table of settings; one of them is {tables[name]}"
    by_last_part = {setting.rsplit(".", 1)[-1]: setting for setting in reversed(known)}
    holding = min((setting for part, setting in by_last_part.items() if last in part.split("_")), key=len, default=None)
    likely = by_last_part.get(last) or holding or nearest(name, [*known, *by_last_part, *tables])
    likely = likely or nearest(last, by_last_part)
    if likely is None:
        return "`clearhead train --settings` lists every setting"
    return f"did you mean {likely if likely in tables else by_last_part.get(likely, likely)}?"


def find_line(path: Path, keys: Sequence[str]) -> int | None:
    """The line of a TOML file that sets this key, for messages."""
    section, wanted = ".".join(keys[:-1]), keys[-1] if keys else ""
    current = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if header := re.match(r"\s*\[([^\]]+)\]", line):
            current = header[1].strip()
            if not section and current == wanted:
                return number
        elif current == section and re.match(rf"\s*[\"']?{re.escape(wanted)}[\"']?\s*=", line):
            return number
    return None


def known_settings() -> list[str]:
    """Every setting's dotted name."""
    names: list[str] = []
    for name, field in Experiment.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += [f"{name}.{inner}" for inner in kind.model_fields]
        else:
            names.append(name)
    return names


def parse_override(text: str) -> tuple[str, Any]:
    """ "train.lr=0.001" → ("train.lr", 0.001). Values are TOML; a bare word is a string."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise UsageError(f"{text!r} is not NAME=VALUE", field="--set", hint="for example --set train.max_steps=2000")
    if name not in known_settings():
        raise UsageError(f"unknown setting {name}", field="--set", hint=suggestion(name))
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value.strip()


def apply_overrides(table: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of the table with each NAME=VALUE laid over it; "none" empties a setting that may be empty."""
    result = {k: dict(v) if isinstance(v, Mapping) else v for k, v in table.items()}
    for text in overrides:
        name, value = parse_override(text)
        *sections, leaf = name.split(".")
        place = result
        for section in sections:
            place = place.setdefault(section, {})
        if value == "none" and may_be_empty(name):
            place.pop(leaf, None)
        else:
            place[leaf] = value
    return result


def may_be_empty(name: str) -> bool:
    *sections, leaf = name.split(".")
    kind: Any = Experiment
    for section in sections:
        kind = kind.model_fields[section].annotation
    return type(None) in get_args(kind.model_fields[leaf].annotation)


def to_table(settings: BaseModel) -> dict[str, Any]:
    """Plain values, empty settings left out (TOML has no null)."""
    return settings.model_dump(mode="json", exclude_none=True)


def to_toml(experiment: Experiment) -> str:
    """Every value, resolved: the text of `config.toml`."""
    return tomli_w.dumps(to_table(experiment))


def write_experiment(experiment: Experiment, path: Path) -> None:
    path.write_text(to_toml(experiment), encoding="utf-8")
