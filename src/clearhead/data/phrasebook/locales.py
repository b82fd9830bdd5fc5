"""Finding the two locales a person means.

Knows which locales Babel carries and how well. Refuses to know phrases.
"""

from __future__ import annotations

from functools import cache

from babel import Locale, UnknownLocaleError, localedata
from babel.core import get_global, parse_locale

from clearhead.data.phrasebook.voice import Voice
from clearhead.errors import UsageError, nearest

FEWEST_TERRITORIES = 150  # a locale that names fewer has little else either


def voices(source: str, target: str) -> tuple[Voice, Voice]:
    """Two different locales, each well covered by the data."""
    pair = find(source, "source"), find(target, "target")
    if likely(pair[0]) == likely(pair[1]):
        raise UsageError(
            f"{source!r} and {target!r} are the same locale; a phrasebook needs two",
            field="target",
            hint="choose another language for one side",
        )
    return Voice(pair[0]), Voice(pair[1])


def find(name: str, field: str) -> Locale:
    """The locale of an identifier such as "de", "pt-BR" or "zh_Hant"."""
    try:
        locale = Locale.parse(name.replace("-", "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        raise UsageError(f"no locale {name!r}", field=field, hint=suggestion(name)) from None
    named = len(locale.territories)
    if named < FEWEST_TERRITORIES:
        raise UsageError(
            f"the locale data knows too little {locale.english_name}: {named} names of countries, "
            f"where {FEWEST_TERRITORIES} are needed",
            field=field,
            hint="well-covered ones are, for example, en de fr es it pt nl sv pl cs ru uk tr el ar he hi ja ko zh",
        )
    return locale


def suggestion(name: str) -> str:
    """The language alone where only the territory is wrong; else the identifier or name spelled most alike."""
    known, asked = known_names(), name.replace("-", "_").lower()
    close = asked.partition("_")[0] if asked.partition("_")[0] in known else nearest(asked, known)
    return f"did you mean {known[close]!r}?" if close else "name it by its code, such as 'en', 'de' or 'pt_BR'"


@cache
def known_names() -> dict[str, str]:
    """Identifiers, and the names of languages in English and in themselves, in small letters → identifier."""
    identifiers = localedata.locale_identifiers()
    names = {name.lower(): name for name in identifiers}
    for code in filter(Locale("en").languages.get, identifiers):
        names.setdefault(Locale("en").languages[code].lower(), code)
        names.setdefault(Locale.parse(code).languages.get(code, code).lower(), code)
    return names


def likely(locale: Locale) -> tuple[str, str | None, str | None]:
    """Language, script and territory in full: en and en_US are one."""
    full = get_global("likely_subtags")
    _, territory, script = parse_locale(full.get(str(locale)) or full.get(locale.language) or str(locale))[:3]
    return locale.language, locale.script or script, locale.territory or territory
