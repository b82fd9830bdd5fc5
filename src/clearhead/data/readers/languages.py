"""Language codes: which names are codes, when two mean the same language, and which way round a file's two go.

Knows ISO 639-1 and the look of longer tags (en-US, deu_Latn). Refuses to detect a language from text.
"""

from __future__ import annotations

import re
from pathlib import Path

from clearhead.config import DataSettings

TWO_LETTERS = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
    "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
    "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
    "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk "
    "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi "
    "yo za zh zu "
)
ISO_639_1 = frozenset(TWO_LETTERS.split())
LONGER_TAG = re.compile(r"([a-z]{2})[-_]([A-Za-z]{2}|[A-Z][a-z]{3})|[a-z]{3}[-_][A-Z][a-z]{3}")
SUFFIXES = (".gz", ".txt", ".text")


def is_code(name: str) -> bool:
    """Whether a word is a language code for sure: two known letters, or a tag with a region or script."""
    if name.lower() in ISO_639_1:
        return True
    tag = LONGER_TAG.fullmatch(name)
    return tag is not None and (tag[1] is None or tag[1] in ISO_639_1)


def same_language(one: str | None, other: str | None) -> bool:
    """Whether one code is the other or begins it: en and en-US, but not en-GB and en-US."""
    if not one or not other:
        return False
    a, b = (code.lower().replace("_", "-") for code in (one, other))
    return a == b or a.startswith(f"{b}-") or b.startswith(f"{a}-")


def orient(source: str | None, target: str | None, settings: DataSettings) -> tuple[bool, str | None, str | None]:
    """Whether the two sides found must change places for the languages asked for; then what each is called."""
    fits = same_language(settings.source, source) or same_language(settings.target, target)
    crossed = same_language(settings.source, target) or same_language(settings.target, source)
    swap = crossed and not fits
    if swap:
        source, target = target, source
    return swap, settings.source or source, settings.target or target


def language_of_file(path: Path) -> str | None:
    """The language a file's name ends in: train.en, train.en.gz, news_de.txt, en.txt."""
    name = bare_name(path)
    code = re.split(r"[._-]", name)[-1]
    return code if is_code(code) else None


def languages_of_file(path: Path) -> tuple[str | None, str | None]:
    """The two languages a file's name holds: en-de.tsv, opus.en_de.jsonl."""
    for found in re.finditer(r"(?<![A-Za-z])([a-z]{2})[-_]([a-z]{2})(?![A-Za-z])", path.name):
        if found[1] != found[2] and {found[1], found[2]} <= ISO_639_1:
            return found[1], found[2]
    return None, None


def bare_name(path: Path) -> str:
    name = path.name
    while name.lower().endswith(SUFFIXES):
        name = name[: name.rfind(".")]
    return name
