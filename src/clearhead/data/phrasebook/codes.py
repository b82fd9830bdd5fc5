"""Codes of the things the locale data names, the most prominent first.

Prominence is read from the data itself: how many locales speak a language or live in a territory, how many
territories pay with a currency. It decides which names a small book keeps and which a large one says most often.
For units no such count exists, so those of daily life are listed here.

Knows Babel's tables. Refuses to know any one locale's words for the codes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from babel import localedata
from babel.core import get_global, parse_locale

CATEGORIES = ("territory", "weekday", "month", "language", "currency", "script", "city")

DAILY_UNITS = (
    *("duration-" + name for name in ("day", "hour", "minute", "month", "second", "week", "year", "century", "decade")),
    *("length-" + name for name in ("meter", "kilometer", "centimeter", "millimeter", "mile", "foot", "inch", "yard")),
    *("mass-" + name for name in ("kilogram", "gram", "tonne", "milligram", "pound", "ounce", "ton", "carat")),
    *("volume-" + name for name in ("liter", "milliliter", "cubic-meter", "gallon", "teaspoon", "tablespoon", "cup")),
    *("area-" + name for name in ("square-meter", "square-kilometer", "hectare", "acre", "square-mile", "square-foot")),
    *("speed-" + name for name in ("kilometer-per-hour", "meter-per-second", "mile-per-hour", "knot")),
    *("temperature-" + name for name in ("celsius", "fahrenheit", "kelvin")),
    *("digital-" + name for name in ("byte", "kilobyte", "megabyte", "gigabyte", "terabyte", "bit", "megabit")),
    *("energy-" + name for name in ("kilowatt-hour", "kilocalorie", "joule", "kilojoule")),
    *("power-" + name for name in ("watt", "kilowatt", "megawatt", "horsepower")),
    *("electric-ampere", "electric-volt", "frequency-hertz", "frequency-megahertz", "pressure-bar", "force-newton"),
    *("length-nautical-mile", "length-light-year", "angle-degree", "volume-pint", "volume-barrel", "volume-drop"),
    *("duration-night", "duration-quarter", "duration-millisecond", "graphics-pixel", "graphics-megapixel"),
    *("volume-cubic-centimeter", "volume-centiliter", "length-micrometer", "area-square-centimeter", "mass-stone"),
)
# Ratios and technical curiosities: rarely said, and cut so differently in each language that they teach little.
ODD_UNITS = re.compile(r"concentr|consumption|force-kilowatt|gasoline|person|generic|-em$|graphics-dot|british|-therm")
RATED = (
    *("length-" + name for name in ("meter", "kilometer", "centimeter", "millimeter", "mile")),
    *("mass-" + name for name in ("kilogram", "gram", "tonne", "milligram", "pound")),
    *("volume-" + name for name in ("liter", "milliliter", "cubic-meter", "gallon", "drop")),
    *("area-square-meter", "area-hectare", "energy-kilowatt-hour", "energy-kilocalorie"),
    *("digital-" + name for name in ("kilobyte", "megabyte", "gigabyte", "megabit")),
)
PER = tuple("duration-" + name for name in ("second", "minute", "hour", "day", "week", "month", "year"))


@cache
def locales() -> tuple[str, ...]:
    """Locales that say more than their language, such as fr_CH or zh_Hans_SG; no variants."""
    return tuple(sorted(name for name in localedata.locale_identifiers() if name.count("_") in (1, 2)))


@cache
def counts() -> dict[str, Counter[str]]:
    """How often the locale data mentions each code."""
    seen: dict[str, Counter[str]] = {category: Counter() for category in CATEGORIES}
    for name in locales():
        language, territory, script = parse_locale(name)[:3]
        likely = parse_locale(get_global("likely_subtags").get(language, language))[2]
        seen["language"][language] += 1
        seen["territory"][territory or ""] += 1
        seen["script"][script or likely or ""] += 1
    for history in get_global("territory_currencies").values():
        seen["currency"].update(code for code, _, end, tender in history if tender and end is None)
    return seen


def by_prominence(category: str, codes: Iterable[str]) -> list[str]:
    seen = counts()[category]
    return sorted(codes, key=lambda code: (-seen[code], code))


@cache
def zones() -> tuple[str, ...]:
    """Time zones: the first of each territory, prominent territories first; then the second of each; and so on."""
    homes = get_global("zone_territories")
    rank = {code: place for place, code in enumerate(by_prominence("territory", set(homes.values())))}
    passed: Counter[str] = Counter()
    order = []
    for zone, home in sorted(homes.items()):
        order.append((passed[home], rank[home], zone))
        passed[home] += 1
    return tuple(zone for *_, zone in sorted(order) if not zone.startswith("Etc/"))


def codes_of(category: str) -> list[str]:
    """Every code of a category; the English names tell which exist. Currencies: those that one pays with today."""
    if category == "weekday":
        return [str(day) for day in range(7)]
    if category == "month":
        return [str(month) for month in range(1, 13)]
    if category == "city":
        return list(zones())
    table = {"territory": "territories", "language": "languages", "script": "scripts", "currency": "currency_names"}
    known = by_prominence(category, localedata.load("en")[table[category]])
    return [code for code in known if counts()["currency"][code]] if category == "currency" else known


@cache
def units() -> tuple[str, ...]:
    """Units of daily life, then the others by their code."""
    others = sorted(unit for unit in localedata.load("en")["unit_patterns"] if not ODD_UNITS.search(unit))
    return tuple(dict.fromkeys([*DAILY_UNITS, *others]))
