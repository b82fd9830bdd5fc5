"""Translating texts so that what is protected in them comes out exactly as it went in, whatever the translator says.

Text is first offered whole, line by line, placeholders and all: a model trained on such text keeps them in place, and
context helps. Where the answer does not hold exactly the same pieces in the same order, the words between the pieces
are translated one by one. Should even that fail, because an answer looks like markup itself, markup characters are
taken out of it, and as the last resort the source stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from clearhead.data.protected import LINE_BREAK, has_letters, protected, split

Translate = Callable[[list[str]], list[str]]

SUSPECT = re.compile(r"[<>&{}%$\\@]|://|www\.")


def translate_texts(texts: Sequence[str], translate: Translate) -> list[str]:
    """One translation per text, each with exactly its text's protected pieces, in order."""
    lines = [split_lines(text) for text in texts]
    whole = ask((line.strip() for text in lines for line in text if is_worded(line)), translate)
    words = (
        piece.text.strip()
        for text in lines
        for line in text
        if is_worded(line) and not keeps(line, tidy(whole[line.strip()]))
        for piece in split(line)
        if not piece.protected and has_letters(piece.text)
    )
    answers = whole | ask((word for word in words if word not in whole), translate)
    return [put_together(text, split_text, answers) for text, split_text in zip(texts, lines, strict=True)]


def split_lines(text: str) -> list[str]:
    """The text cut at its line breaks (which are kept, as items of their own), but never inside a protected piece."""
    lines = [""]
    for piece in split(text):
        if piece.protected and LINE_BREAK.fullmatch(piece.text):
            lines += [piece.text, ""]
        else:
            lines[-1] += piece.text
    return lines


def is_worded(line: str) -> bool:
    """Whether there is something to translate besides what is protected."""
    return has_letters(line) and any(has_letters(piece.text) for piece in split(line) if not piece.protected)


def ask(wanted: Iterable[str], translate: Translate) -> dict[str, str]:
    """Each different text once, in order."""
    texts = list(dict.fromkeys(wanted))
    answers = translate(texts) if texts else []
    if len(answers) != len(texts):
        raise ValueError(f"{len(texts)} texts were given to translate, {len(answers)} came back")
    return dict(zip(texts, answers, strict=True))


def put_together(text: str, lines: Sequence[str], answers: dict[str, str]) -> str:
    """The first way of joining the answers that keeps every protected piece."""
    for way in (best_line, careful_line):
        result = "".join(way(line, answers) if is_worded(line) else line for line in lines)
        if protected(result) == protected(text):
            return result
    return text


def best_line(line: str, answers: dict[str, str]) -> str:
    answer = tidy(answers[line.strip()])
    if keeps(line, answer):
        return framed(line, answer)
    joined = by_pieces(line, answers, tidy)
    return joined if keeps(line, joined) else careful_line(line, answers)


def careful_line(line: str, answers: dict[str, str]) -> str:
    joined = by_pieces(line, answers, lambda answer: SUSPECT.sub("", tidy(answer)).strip())
    return joined if keeps(line, joined) else line


def by_pieces(line: str, answers: dict[str, str], clean: Callable[[str], str]) -> str:
    """Protected pieces stand; the words between them are replaced. A line answered whole has no answers for pieces."""
    joined = ""
    for piece in split(line):
        answer = None if piece.protected else answers.get(piece.text.strip())
        joined += piece.text if answer is None else framed(piece.text, clean(answer))
    return joined


def keeps(line: str, answer: str) -> bool:
    return bool(answer) and protected(answer) == protected(line)


def framed(text: str, answer: str) -> str:
    """The answer between the white space its text stood in; an empty answer leaves the text."""
    if not answer:
        return text
    start = len(text) - len(text.lstrip())
    return text[:start] + answer + text[len(text.rstrip()) :]


def tidy(answer: str) -> str:
    """One line without control characters or halves of surrogate pairs: neither belongs in a document."""
    return re.sub(r"[\ud800-\udfff]", "", LINE_BREAK.sub(" ", answer)).strip()
