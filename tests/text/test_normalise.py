import unicodedata

import pytest

from clearhead.config import TextSettings
from clearhead.errors import DataError
from clearhead.text import normalise


def test_nfc_composes():
    assert normalise("e\u0301", TextSettings()) == "é"


def test_none_leaves_text_alone():
    assert normalise("e\u0301ﬁ", TextSettings(normalise="none")) == "e\u0301ﬁ"


def test_nfc_keeps_and_nfkc_opens_ligatures():
    assert normalise("ﬁ①", TextSettings(normalise="nfc")) == "ﬁ①"
    assert normalise("ﬁ①", TextSettings(normalise="nfkc")) == "fi1"


def test_lowercase():
    assert normalise("ÄRGER Straße", TextSettings(lowercase=True)) == "ärger straße"


def test_lowercase_reaches_compatibility_capitals():
    assert normalise("ℌ", TextSettings(normalise="nfkc", lowercase=True)) == "h"


def test_lowercase_result_is_in_the_asked_form():
    lowered = normalise("\u0130e\u0301", TextSettings(lowercase=True))
    assert unicodedata.is_normalized("NFC", lowered)


@pytest.mark.parametrize(("text", "place"), [("\ud800", 1), ("ab\udfffc", 3)])
def test_lone_surrogates_are_refused_with_their_place(text, place):
    with pytest.raises(DataError, match=rf"character {place} is U\+D"):
        normalise(text, TextSettings(normalise="none"))
