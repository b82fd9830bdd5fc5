"""From the words of a command to a table of settings: files and options, or a recipe with options laid over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.config.load import read_table, refuse_misspelt
from clearhead.errors import UsageError

IN_DATA = ("columns", "source", "target", "valid", "drop_unpaired")


def table_from(files: Sequence[str], said: Mapping[str, Any]) -> dict[str, Any]:
    """`said` holds size and names of IN_DATA: those that were given."""
    recipes = [name for name in files if name.endswith(".toml")]
    if recipes and len(files) > 1:
        raise UsageError("a recipe stands alone: it names its files itself", field=recipes[0])
    table: dict[str, Any] = read_recipe(Path(recipes[0])) if recipes else {"files": list(files)}
    data = {name: said[name] for name in IN_DATA if name in said}
    if data:
        table["data"] = table.get("data", {}) | data
    if "size" in said:
        table["size"] = said["size"]
    return table


def read_recipe(path: Path) -> dict[str, Any]:
    """Its files are relative to its own folder."""
    try:
        table = read_table(path)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not valid TOML: {str(error)[:200]}", file=path) from None
    refuse_misspelt(table, path)
    if isinstance(table.get("files"), list):
        table["files"] = [beside(path, name) for name in table["files"]]
    data = table.get("data")
    if isinstance(data, dict) and isinstance(data.get("valid"), list):
        data["valid"] = [beside(path, name) for name in data["valid"]]
    return table


def beside(recipe: Path, name: Any) -> Any:
    if not isinstance(name, str) or name.startswith(("/", "$", "~")):
        return name
    return str(recipe.parent / name)
