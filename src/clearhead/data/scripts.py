"""Which script a text is written in, by the blocks of Unicode its letters stand in.

Han, kana and Bopomofo count as one script, because Japanese and Chinese mix them within a sentence. Knows scripts that
many people write; letters of any other belong to none, and are never called wrong. Refuses to detect languages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

BLOCKS: dict[str, str] = {
    "Latin": "41-5A 61-7A AA BA C0-D6 D8-F6 F8-2AF 1E00-1EFF 2C60-2C7F A722-A7FF FF21-FF3A FF41-FF5A",
    "Greek": "370-373 376-377 37B-37D 37F-3E1 3F0-3FF 1F00-1FFF",
    "Cyrillic": "400-52F 1C80-1C88 2DE0-2DFF A640-A69F",
    "Armenian": "531-556 560-588",
    "Hebrew": "5D0-5F2 FB1D-FB4F",
    "Arabic": "620-65F 66E-6EF 6FA-6FF 750-77F 8A0-8FF FB50-FD3D FD50-FDFF FE70-FEFC",
    "Syriac": "710-74F",
    "Thaana": "780-7B1",
    "Devanagari": "900-963 971-97F A8E0-A8FF",
    "Bengali": "980-9E3 9F0-9F1",
    "Gurmukhi": "A01-A5E A70-A75",
    "Gujarati": "A81-AE3 AF9-AFF",
    "Odia": "B01-B63 B71",
    "Tamil": "B82-BD7",
    "Telugu": "C00-C63",
    "Kannada": "C80-CE3 CF1-CF2",
    "Malayalam": "D00-D63 D7A-D7F",
    "Sinhala": "D81-DDF DF2-DF3",
    "Thai": "E01-E3A E40-E4E",
    "Lao": "E81-ECD EDC-EDF",
    "Tibetan": "F00 F40-FBC",
    "Myanmar": "1000-103F 1050-108F A9E0-A9FE AA60-AA7F",
    "Georgian": "10A0-10FF 1C90-1CBF 2D00-2D2D",
    "Hangul": "1100-11FF 3131-318E A960-A97C AC00-D7FB",
    "Ethiopic": "1200-135F 1380-138F 2D80-2DDE AB01-AB2E",
    "Cherokee": "13A0-13FD AB70-ABBF",
    "Canadian syllabics": "1401-166C 166F-167F 18B0-18F5",
    "Khmer": "1780-17D3",
    "Mongolian": "1820-18AA",
    "Han and kana": "3005-3007 3041-30FA 30FC-312F 31A0-31BF 31F0-31FF 3400-4DBF 4E00-9FFF F900-FAFF FF66-FF9D "
    "20000-323AF",
}


def character_class(blocks: str) -> str:
    """ "41-5A AA" becomes "A-Zª", for the inside of [ ] in a pattern."""
    return "".join("-".join(chr(int(end, 16)) for end in block.split("-")) for block in blocks.split())


RANGES = {script: character_class(blocks) for script, blocks in BLOCKS.items()}


@cache
def letters(script: str) -> re.Pattern[str]:
    return re.compile(f"[{RANGES[script]}]")


@cache
def other_letters(script: str) -> re.Pattern[str]:
    """Letters of any known script but this one."""
    return re.compile("[" + "".join(ranges for name, ranges in RANGES.items() if name != script) + "]")


@cache
def script_of_character(character: str) -> str | None:
    return next((script for script in RANGES if letters(script).match(character)), None)


def script_of(text: str) -> str | None:
    """The script most of its letters belong to; None for a text without letters of a known one."""
    if text.isascii():
        return "Latin" if letters("Latin").search(text) else None
    counts = Counter(filter(None, map(script_of_character, text)))
    return counts.most_common(1)[0][0] if counts else None


def common_script(texts: Iterable[str], share: float) -> str | None:
    """The script of at least this share of the texts that have one; None when there is no such script."""
    counts = Counter(filter(None, map(script_of, texts)))
    if not counts:
        return None
    name, count = counts.most_common(1)[0]
    return name if count >= share * counts.total() else None
