"""The kinds of phrases: each draws its values once and returns the thought, to be said by two voices.

Knows what is worth saying and how often. Refuses to know languages: a thought is a function of a voice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from clearhead.data.phrasebook.draws import Draws
from clearhead.data.phrasebook.stock import Stock
from clearhead.data.phrasebook.voice import Field, Joint, Voice

Thought = Callable[[Voice], str]
Kind = Callable[[Draws, Stock], Thought]

JOINTS: tuple[Joint, ...] = ("standard", "standard", "or")
LENGTHS = (2, 2, 3, 3, 4)
CENTS = (0.25, 0.50, 0.75, 0.95, 0.99)
# The fields of time, and how many of each are said beside a larger one: 2 years and 7 months, not 40 months.
FIELDS: dict[Field, int] = {"year": 50, "month": 11, "week": 4, "day": 6, "hour": 23, "minute": 59, "second": 59}


def date(draws: Draws, stock: Stock) -> Thought:
    """Thursday, March 3, 2022 · 3/3/22 · March 2022"""
    day, style = draws.day(), draws.pick(stock.days)
    return lambda voice: voice.date(day, style)


def dates(draws: Draws, stock: Stock) -> Thought:
    """March 3 or April 9"""
    days, style, joint = [draws.day(), draws.day()], draws.pick(("MMMMd", "yMMMM")), draws.pick(JOINTS)
    return lambda voice: voice.listing([voice.date(day, style) for day in days], joint)


def moment(draws: Draws, stock: Stock) -> Thought:
    """Thursday, March 3, 2022, 2:05 PM"""
    when, style = draws.moment(), draws.pick(stock.moments)
    return lambda voice: voice.moment(when, style)


def clock(draws: Draws, stock: Stock) -> Thought:
    """Thu 14:05 · Thu 2:05 in the afternoon"""
    when, style = draws.moment(), draws.pick(stock.clocks)
    return lambda voice: voice.date(when, style)


def period(draws: Draws, stock: Stock) -> Thought:
    """week 10 of 2022 · 1st quarter 2022"""
    day, style = draws.day(), draws.pick(stock.periods)
    return lambda voice: voice.date(day, style)


def interval(draws: Draws, stock: Stock) -> Thought:
    """Mar 3 – 12, 2022 · 14:05 – 17:30"""
    start, style = draws.moment(), draws.pick(stock.intervals)
    days, minutes = draws.between(2, 45), 5 * draws.between(2, 140)
    if style == "Hm":  # within one day
        morning = start.replace(hour=start.hour // 2)
        return lambda voice: voice.interval(morning, morning + dt.timedelta(minutes=minutes), style)
    return lambda voice: voice.interval(start, start + dt.timedelta(days=days), style)


def relative(draws: Draws, stock: Stock) -> Thought:
    """in 12 weeks · 3 days ago"""
    amount, field = draws.between(1, 99) * draws.pick((1, -1)), draws.pick(tuple(FIELDS))
    return lambda voice: voice.relative(amount, field)


def relatives(draws: Draws, stock: Stock) -> Thought:
    """in 3 days or in 2 weeks"""
    sign, joint = draws.pick((1, -1)), draws.pick(JOINTS)
    times = [(sign * draws.between(1, 30), draws.pick(tuple(FIELDS))) for _ in range(2)]
    return lambda voice: voice.listing([voice.relative(*time) for time in times], joint)


def duration(draws: Draws, stock: Stock) -> Thought:
    """3 hours and 20 minutes"""
    begin = draws.below(len(FIELDS) - 1)
    fields = list(FIELDS.items())[begin : begin + draws.between(2, 3)]
    parts = [(draws.between(1, most), f"duration-{field}") for field, most in fields]
    return lambda voice: voice.listing([voice.quantity(value, unit, "long") for value, unit in parts], "standard")


def quantity(draws: Draws, stock: Stock) -> Thought:
    """7.5 kilometers · 250 kg"""
    value, (unit, length) = draws.number(), draws.prominent(stock.units)
    return lambda voice: voice.quantity(value, unit, length)


def quantities(draws: Draws, stock: Stock) -> Thought:
    """3 liters, 2 kilograms, and 500 grams"""
    parts = [(draws.number(), *unit) for unit in draws.several(stock.units, draws.pick((2, 2, 3)))]
    joint = draws.pick(JOINTS)
    return lambda voice: voice.listing([voice.quantity(*part) for part in parts], joint)


def rate(draws: Draws, stock: Stock) -> Thought:
    """20 liters per minute"""
    value, (unit, per) = draws.number(), draws.pick(stock.rates)
    return lambda voice: voice.rate(value, unit, per)


def money(draws: Draws, stock: Stock) -> Thought:
    """1,250.00 Swiss francs · €12.50"""
    value, (currency, style) = price(draws), draws.prominent(stock.currencies)
    return lambda voice: voice.money(value, currency, style)


def prices(draws: Draws, stock: Stock) -> Thought:
    """20.00 euros or 25.00 US dollars"""
    parts = [(price(draws), *currency) for currency in draws.several(stock.currencies, 2)]
    joint = draws.pick(JOINTS)
    return lambda voice: voice.listing([voice.money(*part) for part in parts], joint)


def percents(draws: Draws, stock: Stock) -> Thought:
    """25% or 30%"""
    parts, joint = [draws.between(1, 100) for _ in range(draws.between(1, 3))], draws.pick(JOINTS)
    return lambda voice: voice.listing([voice.percent(part) for part in parts], joint)


def listing(category: str) -> Kind:
    """Germany, France, and Italy"""

    def names(draws: Draws, stock: Stock) -> Thought:
        chosen, joint = draws.several(stock.names[category], draws.pick(LENGTHS)), draws.pick(JOINTS)
        return lambda voice: voice.listing([voice.name(category, code) for code in chosen], joint)

    return names


def price(draws: Draws) -> float:
    """Mostly round, else with the cents that prices have."""
    value = draws.number()
    return value if draws.chance(0.6) else int(value) + draws.pick(CENTS)


# Each kind's share of a book, in thousandths. A kind with less to say than its share says what it has.
KINDS: dict[str, tuple[int, Kind]] = {
    "date": (105, date),
    "dates": (30, dates),
    "moment": (85, moment),
    "clock": (35, clock),
    "period": (20, period),
    "interval": (70, interval),
    "relative": (15, relative),
    "relatives": (35, relatives),
    "duration": (50, duration),
    "quantity": (110, quantity),
    "quantities": (50, quantities),
    "rate": (50, rate),
    "money": (80, money),
    "prices": (35, prices),
    "percents": (15, percents),
    "territories": (70, listing("territory")),
    "languages": (65, listing("language")),
    "cities": (65, listing("city")),
    "currencies": (28, listing("currency")),
    "scripts": (12, listing("script")),
    "weekdays": (10, listing("weekday")),
    "months": (15, listing("month")),
}
