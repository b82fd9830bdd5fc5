"""One locale, saying things: every method is one call into the locale data that Babel carries.

A pair of the phrasebook is one thought said by two voices, so both sides come from the same call with the same values.
A thing the locale cannot say is said as the empty string.

Knows Babel and one locale. Refuses to know the other language, chance, and what is worth saying.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cache
from typing import Literal

from babel import Locale, dates, lists, localedata, numbers, units
from babel.core import get_global, parse_locale

from clearhead.data.phrasebook.words import normalise

Length = Literal["long", "short"]
Joint = Literal["standard", "or"]
Price = Literal["name", "standard"]
Field = Literal["year", "month", "week", "day", "hour", "minute", "second"]

NAMED_STYLES = ("full", "long", "medium", "short")
SECONDS = {"year": 31536000, "month": 2592000, "week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}


class Voice:
    """Speaks one locale."""

    def __init__(self, locale: Locale) -> None:
        self.locale = locale
        self._data = localedata.load(str(locale))
        self.name = cache(self._name)
        self.quantity = cache(self._quantity)
        self.writes_latin = _script(locale) == "Latn"

    def date(self, day: dt.date, style: str) -> str:
        """`style` is one of CLDR's four lengths, or a skeleton such as "yMMMEd" (year, short month, weekday, day)."""
        if style in NAMED_STYLES:
            return normalise(dates.format_date(day, style, locale=self.locale))
        return normalise(dates.format_skeleton(style, day, locale=self.locale))

    def clock(self, moment: dt.datetime) -> str:
        return normalise(dates.format_time(moment, "short", locale=self.locale))

    def moment(self, moment: dt.datetime, style: str) -> str:
        """A day and a time, joined as the locale joins them."""
        joint = str(dates.get_datetime_format(style, locale=self.locale))  # type: ignore[arg-type]
        return normalise(joint.replace("{1}", self.date(moment, style)).replace("{0}", self.clock(moment)))

    def interval(self, start: dt.datetime, end: dt.datetime, skeleton: str) -> str:
        return normalise(dates.format_interval(start, end, skeleton, locale=self.locale))

    def relative(self, amount: int, field: Field) -> str:
        """From now: a negative amount is past. The threshold keeps 12 weeks from becoming 3 months."""
        seconds = amount * SECONDS[field]
        return normalise(dates.format_timedelta(seconds, field, threshold=1e9, add_direction=True, locale=self.locale))

    def _quantity(self, value: float, unit: str, length: Length) -> str:
        length = self._length(unit, length)
        said = units.format_unit(value, unit, length, locale=self.locale)
        return "" if unit in said else normalise(said)

    def rate(self, value: float, unit: str, per: str) -> str:
        length = self._length(unit, "long")
        said = units.format_compound_unit(value, unit, denominator_unit=per, length=length, locale=self.locale) or ""
        return "" if unit in said or per in said else normalise(said)

    def money(self, value: float, currency: str, style: Price) -> str:
        """By name, inflected, or by sign. Of a currency without cents, whole units: the plural follows the value."""
        value = value if numbers.get_currency_precision(currency) else max(1, int(value))
        return normalise(numbers.format_currency(value, currency, locale=self.locale, format_type=style))

    def percent(self, hundredths: int) -> str:
        return normalise(numbers.format_percent(hundredths / 100, locale=self.locale))

    def listing(self, items: Sequence[str], joint: Joint) -> str:
        return normalise(lists.format_list(items, joint, self.locale)) if all(items) else ""

    def _length(self, unit: str, length: Length) -> Length:
        """CLDR leaves out the long form where it is the short one; so does Japanese with its years and days."""
        return length if "other" in self._data["unit_patterns"].get(unit, {}).get(length, {}) else "short"

    def _name(self, category: str, code: str) -> str:
        if category == "city":
            return normalise(self._city(code))
        if category == "weekday":
            return normalise(self.locale.days["stand-alone"]["wide"][int(code)])
        if category == "month":
            return normalise(self.locale.months["stand-alone"]["wide"][int(code)])
        return normalise(getattr(self.locale, CATALOGUES[category]).get(code, ""))

    def _city(self, zone: str) -> str:
        """Locales in Latin letters leave out the cities they spell as the time zone's identifier does."""
        unsaid = zone.rpartition("/")[2].replace("_", " ") if self.writes_latin else ""
        return str(self.locale.time_zones.get(zone, {}).get("city", unsaid))


CATALOGUES = {"territory": "territories", "language": "languages", "script": "scripts", "currency": "currencies"}


def _script(locale: Locale) -> str | None:
    likely = get_global("likely_subtags")
    return locale.script or parse_locale(likely.get(str(locale)) or likely.get(locale.language, "en_Latn"))[2]
