"""One file of HTML that works anywhere: the program, the style and the data are inside, and nothing is ever fetched.

Knows text and bytes. Refuses to know what the data say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from clearhead.errors import ModelFileError
from clearhead.files.atomic import write_atomic

STATIC = "clearhead.explore"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'unsafe-inline'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""Inside a script element nothing may look like markup, or end a line of an old parser."""


def write_page(data: Mapping[str, Any], path: Path) -> None:
    """Write the page: whole, or not at all."""
    write_atomic(path, page(data).encode())


def page(data: Mapping[str, Any]) -> str:
    title = escape(f"{data['text']} → {data['translation']}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title} · clearhead</title>\n<style>{static('app.css')}</style></head>\n"
        '<body><div id="clearhead-app"></div>\n'
        f'<script type="application/json" id="clearhead-data">{script_json(data)}</script>\n'
        f'<script type="module">{static("app.js")}</script>\n</body></html>\n'
    )


def script_json(data: Mapping[str, Any]) -> str:
    """JSON that stays text in a script element, whatever words it holds."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)


@cache
def static(name: str) -> str:
    """A file of the built page."""
    file = files(STATIC) / "static" / name
    if not file.is_file():
        raise ModelFileError("is not in this installation", file=f"explore/static/{name}", hint="build it: make web")
    text = file.read_text(encoding="utf-8")
    if name.endswith(".js") and "</script" in text.lower():
        raise ModelFileError("would end its own script element", file=f"explore/static/{name}", hint="make web")
    return text
