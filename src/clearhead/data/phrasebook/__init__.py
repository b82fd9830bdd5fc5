"""Genuine parallel phrases of any two locales, from the locale data in Babel: dates, amounts, names, lists.

Knows what the data says in each locale. Refuses to translate anything itself: both sides of a pair come from the
same call, made in two locales.
"""

from clearhead.data.phrasebook.baseline import nearest_copy
from clearhead.data.phrasebook.book import LICENCE_NOTICE, Phrasebook, phrasebook

__all__ = ["LICENCE_NOTICE", "Phrasebook", "nearest_copy", "phrasebook"]
