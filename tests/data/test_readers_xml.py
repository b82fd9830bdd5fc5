"""TMX and XLIFF: languages, inline markup, and XML that means harm."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.readers import Pairs, markup, open_pairs
from clearhead.errors import DataError

TMX = '<tmx version="1.4"><header srclang="{srclang}"/><body>{units}</body></tmx>'
XLIFF1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" datatype="plaintext" source-language="en" target-language="de"><body>{units}</body></file></xliff>"""
XLIFF2 = """<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"
 xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><file id="f">{units}</file></xliff>"""


@pytest.fixture
def read(tmp_path: Path):
    def opened(content: str | bytes, name: str = "memory.tmx", **settings: str) -> Pairs:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return open_pairs([path], DataSettings(**settings))

    return opened


def sides(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def unit(**texts: str) -> str:
    variants = "".join(f'<tuv xml:lang="{k.replace("_", "-")}"><seg>{v}</seg></tuv>' for k, v in texts.items())
    return f"<tu>{variants}</tu>"


def tmx(*units: str, srclang: str = "en") -> str:
    return TMX.format(srclang=srclang, units="\n".join(units))


def test_tmx_languages_are_guessed_and_said(read) -> None:
    pairs = read(tmx(unit(de="gut", en_US="good", fr="bon")))
    assert sides(pairs) == [("good", "gut")]
    assert "TMX, en-US → de; also there: fr" in pairs.said[0]


def test_tmx_languages_asked_for_match_their_regions(read) -> None:
    memory = tmx(unit(en_US="color", en_GB="colour", de_AT="Farbe"))
    assert sides(read(memory, source="de", target="en")) == [("Farbe", "color")]
    assert sides(read(memory, source="en-GB", target="de")) == [("colour", "Farbe")]
    with pytest.raises(DataError, match=r"holds no pairs \(1 × unit without both en and xx\)") as caught:
        read(memory, source="en", target="xx")
    assert "de-AT" in str(caught.value)


def test_tmx_inline_codes_go_and_highlights_stay(read) -> None:
    seg = 'a <bpt i="1">&lt;b></bpt>bold<ept i="1">&lt;/b></ept> <hi>word</hi><ph>{0}</ph>!<!-- note -->?'
    assert sides(read(tmx(unit(en=seg, de="x")))) == [("a bold word!?", "x")]


def test_tmx_units_without_both_are_counted(read) -> None:
    pairs = read(tmx(unit(en="a", de="A"), unit(en="b"), unit(en="c", de="C")))
    assert sides(pairs) == [("a", "A"), ("c", "C")]
    assert [pair.line for pair in pairs] == [1, 3]
    assert pairs.skipped == {"unit without both en and de": 1}


def test_tmx_in_other_encodings_and_packed(read) -> None:
    memory = tmx(unit(en="grün", de="ß"))
    assert sides(read(f'<?xml version="1.0" encoding="utf-16"?>{memory}'.encode("utf-16"))) == [("grün", "ß")]
    assert sides(read(f'<?xml version="1.0" encoding="iso-8859-1"?>{memory}'.encode("latin-1"))) == [("grün", "ß")]
    assert sides(read(gzip.compress(memory.encode()), "memory.tmx.gz")) == [("grün", "ß")]


def test_an_ordinary_doctype_opens_and_its_file_is_not_looked_for(read) -> None:
    doctype = '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "http://127.0.0.1:9/tmx14.dtd">'
    assert sides(read(doctype + tmx(unit(en="a", de="b")))) == [("a", "b")]


@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY a "b">', '<!ENTITY a SYSTEM "file:///etc/passwd">', '<!ENTITY % a SYSTEM "http://127.0.0.1:9/"> %a;'],
)
@pytest.mark.parametrize("use", ["&a;", ""])
def test_entity_declarations_are_refused(read, declaration: str, use: str) -> None:
    memory = f"<!DOCTYPE tmx [{declaration}]>" + tmx(unit(en=f"x{use}", de="y"))
    with pytest.raises(DataError, match="declares the entity 'a'"):
        read(memory)


def test_a_billion_laughs_are_refused(read) -> None:
    levels = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    memory = f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{levels}]>' + tmx(unit(en="&l9;", de="y"))
    with pytest.raises(DataError, match="declares the entity"):
        read(memory)


def test_undeclared_entities_are_never_lost_in_silence(read) -> None:
    memory = '<!DOCTYPE tmx SYSTEM "x.dtd">' + tmx(unit(en="a&nbsp;b", de="y"))
    with pytest.raises(DataError, match="entity &nbsp; is not declared"):
        read(memory)


def test_depth_and_size_are_limited(read, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="nested more than 100 deep"):
        read(tmx(unit(en="<hi>" * 120 + "</hi>" * 120, de="y")))
    with pytest.raises(DataError, match="depth"):
        read(tmx(unit(en="<hi>" * 3000 + "</hi>" * 3000, de="y")))
    monkeypatch.setattr(markup, "LARGEST_UNIT", 100_000)
    many = [unit(en="a" * 1000, de="b" * 1000) for _ in range(200)]
    assert len(list(read(tmx(*many)))) == 200
    with pytest.raises(DataError, match="a unit is larger"):
        read(tmx(unit(en="a" * 200_000, de="b")))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<tmx><body><tu></body></tmx>", "not well-formed XML"),
        ("<tmx><body>", "not well-formed XML"),
        ("<xliff/>", "holds no units"),
        ("<?xml version='1.0'?><other/>", "neither TMX nor XLIFF"),
        ("<root><tmx></tmx></root>", "root <root>, not <tmx>"),
        (tmx(), "two languages expected, none found"),
        (tmx(unit(en="a")), "two languages expected, en only found"),
        ('<?xml version="1.0" encoding="utf-8"?><tmx><body>\xe4', "not well-formed XML"),
    ],
)
def test_damaged_files_are_named(read, content: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        read(content.encode("latin-1"))


def test_memory_is_given_back(read) -> None:
    """What is left of the tree at the last unit is what the parser has read ahead, not the units before it."""
    path = Path(read(tmx(*[unit(en="a", de="b") for _ in range(5000)])).guesses[0].file)
    left = [0]
    for number, element in enumerate(markup.stream_units(path, "tmx", frozenset({"tu"}))):
        if number % 500 == 0:
            left.append(sum(1 for _ in element.getroottree().getroot().iter()))
    assert 0 < max(left) < 5000  # of 25,000 elements


def test_xliff_1(read) -> None:
    units = """
    <trans-unit id="1"><source>a <g id="1">b</g><x id="2"/><ph id="3">code</ph></source>
      <target>A <g id="1">B</g></target>
      <alt-trans><source>q</source><target>r</target></alt-trans></trans-unit>
    <trans-unit id="2"><source>b</source></trans-unit>
    <trans-unit id="3"><source>c</source><target/></trans-unit>
    <trans-unit id="4"><source>d</source><target state="needs-translation">d</target></trans-unit>
    <group><trans-unit id="5"><source>e</source><target state="final">E</target></trans-unit></group>"""
    pairs = read(XLIFF1.format(units=units), "a.xlf")
    assert sides(pairs) == [("a b", "A B"), ("e", "E")]
    assert pairs.skipped == {"segment without a translation": 3}
    assert "XLIFF 1.2, en → de" in pairs.said[0]


def test_xliff_2(read) -> None:
    units = """<unit id="1">
    <mtc:matches><mtc:match ref="#m"><source>q</source><target>r</target></mtc:match></mtc:matches>
    <segment><source>a <pc id="1">b</pc><ph id="2"/></source><target>A</target></segment>
    <ignorable><source> </source></ignorable><segment><source>c</source></segment></unit>"""
    pairs = read(XLIFF2.format(units=units), "a.xliff")
    assert sides(pairs) == [("a b", "A")]
    assert pairs.skipped == {"segment without a translation": 1}


def test_xliff_languages_turn_or_are_refused(read) -> None:
    content = XLIFF1.format(units='<trans-unit id="1"><source>a</source><target>A</target></trans-unit>')
    assert sides(read(content, "a.xlf", source="de", target="en-GB")) == [("A", "a")]
    with pytest.raises(DataError, match="is en → de; fr was asked for"):
        read(content, "a.xlf", target="fr")
