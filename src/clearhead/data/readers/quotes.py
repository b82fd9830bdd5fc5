"""Quotation marks as spreadsheets put them around cells: "a ""b"" c" for a "b" c.

In a TSV file nothing is quoted unless `data.quotes` says so: a sentence may begin and end with a quotation mark. Knows
cells. Refuses to join lines: a quoted cell that holds a tab or a line break is a row of the wrong width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

DOUBLED = re.compile(r'"[^"]*(?:""[^"]*)+"')
"""Quoted, with marks inside, each doubled: no sentence looks like that by itself."""
SURE = 3
"""So many cells, all of a column, are quoted by a program, not by their author."""


def unquote(cell: str) -> str:
    """The text of a quoted cell; any other cell as it is."""
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
        return cell
    return cell[1:-1].replace('""', '"')


def is_doubled(text: str) -> bool:
    return '""' in text and DOUBLED.fullmatch(text) is not None


def looks_quoted(cells: Sequence[str]) -> bool:
    """Whether a program put the quotation marks around cells of this column."""
    filled = [cell for cell in cells if cell.strip()]
    wrapped = [cell for cell in filled if len(cell) > 1 and cell[0] == cell[-1] == '"']
    return (len(wrapped) == len(filled) >= SURE) or any(map(is_doubled, wrapped))
