import pytest

from clearhead.text import Sentence, join_sentences, split_sentences

# One case per line, "|" where a sentence is to end.
CASES = """
Das ist gut.| Das auch.
Is it?| Yes!| Good.
Wait...| What?
Well... maybe.
He waited…| Then he left.
"Stop!" he said.
He said "Stop!"| Then he left.
(It rained.)| We stayed.
„Ja.“| Er ging.
« Bonjour ! »| Il part.
Ça va ?| Oui.
¿Qué?| ¡Nada!| Vale.
Dr. Braun kommt.| Er bleibt.
Mr. and Mrs. Smith met Prof. J. R. Jones.| They talked.
J. S. Bach lebte in Leipzig.
J.-P. Sartre schrieb.| Er rauchte.
The U.S. Senate voted.| It passed.
Das gilt z.B. Häusern, d.h. Gebäuden.
Das gilt z. B. Häusern.
Äpfel, Birnen usw. liegen da.
Äpfel usw.| Das reicht.
at 5 p.m.| The end.
See No. 5 for more.
He said no.| Then he left.
Vgl. Abb. 3 und Kap. IV dazu.
Im Jahr 1990.| Der Winter kam.
Am 3. Oktober 1990 kam er.
Im 21. Jahrhundert.| So ist es.
Pi is 3.14 now.| Good.
Siehe example.com/a.html bitte.| Danke.
1. Einleitung
12. Kapitel und mehr.| Ende.
a. First point
Yahoo! is a firm.
Wirklich?!| Ja!!!| Gut.
今日は。|元気？|はい！|
「はい。」と言った。|
「はい。」|彼は笑った。|
他说：“好。”|然后走了。|
मैं हूँ।| तुम हो।
هل أنت هنا؟| نعم.
Это он.| А это она.
т.е. Москва
– Ja.| – Nein.
Foo bar .| Baz.
Nothing ends here
"""


def cut(case: str) -> list[str]:
    return [part for part in case.replace("| ", "|").split("|") if part]


KNOWN = [case for case in CASES.splitlines() if case]


@pytest.mark.parametrize("case", KNOWN)
def test_cases(case):
    text = case.replace("|", "").strip()
    sentences = split_sentences(text)
    assert [sentence.text for sentence in sentences] == cut(case)
    assert join_sentences(sentences) == text


def test_there_are_many_cases():
    assert len(KNOWN) >= 40


def test_separators_are_kept():
    text = " \n Eins.  Zwei.\n\n\tDrei\r\n"
    assert split_sentences(text) == [
        Sentence("", " \n "),
        Sentence("Eins.", "  "),
        Sentence("Zwei.", "\n\n\t"),
        Sentence("Drei", "\r\n"),
    ]


def test_empty_and_white():
    assert split_sentences("") == []
    assert split_sentences(" \n") == [Sentence("", " \n")]


def test_hard_wrapped_text_breaks_at_empty_lines_only():
    text = "Eine lange\nZeile. Noch\neine.\n\nAbsatz"
    assert [sentence.text for sentence in split_sentences(text, line_breaks=False)] == [
        "Eine lange\nZeile.",
        "Noch\neine.",
        "Absatz",
    ]


def test_language_decides_on_ordinals():
    text = "Er wurde 3. Sie gewann."
    assert len(split_sentences(text, "de-AT")) == 1
    assert len(split_sentences(text, "en")) == 2


def test_language_decides_on_abbreviations():
    text = "Kauf Milch inkl. Flasche."
    assert len(split_sentences(text, "de")) == 1
    assert len(split_sentences(text, "en")) == 2


@pytest.mark.parametrize("unit", ["a" * 99 + ".", ". ", "  ", "\n", "».", "A. ", "。」"])
def test_long_texts_are_cut_in_one_pass(unit):
    """Looking back or ahead without bound would take hours here."""
    text = unit * (500_000 // len(unit))
    assert join_sentences(split_sentences(text)) == text
