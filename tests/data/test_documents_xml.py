"""TMX and XLIFF documents: units are filled, structure and inline elements stay, the result opens again."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from clearhead.config import DataSettings
from clearhead.data.documents import Document, open_document, translate_document
from clearhead.data.readers import open_pairs
from clearhead.errors import DataError, UsageError

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<!-- a memory -->
<tmx version="1.4">
  <header creationtool="x" srclang="en-US" datatype="html"/>
  <body>
    <tu tuid="1">
      <note>keep me</note>
      <tuv xml:lang="en-US">
        <seg>Click <bpt i="1">&lt;b&gt;</bpt>here<ept i="1">&lt;/b&gt;</ept> &amp; wait for %s</seg>
      </tuv>
    </tu>
    <tu tuid="2">
      <tuv xml:lang="en-US"><seg>old</seg></tuv>
      <tuv xml:lang="de-DE"><seg>alt</seg></tuv>
    </tu>
    <tu tuid="3">
      <tuv xml:lang="en-US"><seg>12 %</seg></tuv>
      <tuv xml:lang="de"><seg></seg></tuv>
    </tu>
    <tu tuid="4">
      <tuv xml:lang="fr"><seg>seul</seg></tuv>
    </tu>
  </body>
</tmx>
<!-- the end -->
"""
XLIFF1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file original="a.html" datatype="html" source-language="en" target-language="de">
    <body>
      <trans-unit id="1">
        <source>Read <g id="1">the <x id="2"/> manual</g> first</source>
        <note>keep me</note>
      </trans-unit>
      <trans-unit id="2" translate="no">
        <source>CamelCase</source>
      </trans-unit>
      <trans-unit id="3">
        <source>done</source>
        <target state="final">fertig</target>
      </trans-unit>
      <trans-unit id="4">
        <source>copied <mrk mtype="protected">NAME</mrk> text</source>
        <target state="new">copied</target>
        <alt-trans><source>q</source><target>r</target></alt-trans>
      </trans-unit>
      <trans-unit id="5">
        <source>one. two.</source>
        <seg-source><mrk mtype="seg" mid="1">one.</mrk> <mrk mtype="seg" mid="2">two.</mrk></seg-source>
      </trans-unit>
    </body>
  </file>
</xliff>
"""
XLIFF2 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
  <file id="f">
    <group id="g" translate="no">
      <unit id="0"><segment><source>frozen</source></segment></unit>
      <unit id="1" translate="yes"><segment><source>thawed</source></segment></unit>
    </group>
    <unit id="2">
      <notes><note>keep me</note></notes>
      <segment id="s1">
        <source>Read <pc id="1">this <ph id="2"/> <mrk id="m" translate="no">Thing</mrk></pc>.</source>
      </segment>
      <ignorable><source> </source></ignorable>
      <segment id="s2" state="final"><source>done</source><target>fertig</target></segment>
    </unit>
  </file>
</xliff>
"""


@pytest.fixture
def opened(tmp_path: Path):
    def make(content: str | bytes, name: str, **options: object) -> Document:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return open_document(path, **options)

    return make


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.xml"


def upper(document: Document, out: Path) -> str:
    document.write(translate_document(document, lambda texts: [text.upper() for text in texts]), out)
    etree.parse(str(out))
    return out.read_bytes().decode()


def sides(path: Path, **settings: str) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in open_pairs([path], DataSettings(**settings))]


def test_tmx_gets_its_variants_and_nothing_else_changes(opened, out: Path) -> None:
    document = opened(TMX, "a.tmx", target="de")
    assert [segment.text for segment in document.segments] == ["Click ", "here", " & wait for %s"]
    written = upper(document, out)
    new = """
      <tuv xml:lang="de">
        <seg>CLICK <bpt i="1">&lt;b&gt;</bpt>HERE<ept i="1">&lt;/b&gt;</ept> &amp; WAIT FOR %s</seg>
      </tuv>"""
    assert new in written
    expected = TMX.replace('<tuv xml:lang="de"><seg></seg></tuv>', '<tuv xml:lang="de"><seg>12 %</seg></tuv>')
    assert written.replace(new, "", 1) == expected
    assert sides(out, source="en", target="de") == [
        ("Click here & wait for %s", "CLICK HERE & WAIT FOR %s"),
        ("old", "alt"),
        ("12 %", "12 %"),
    ]


def test_tmx_overwrites_when_asked_and_needs_its_languages(opened, out: Path) -> None:
    assert ">OLD</seg>" in upper(opened(TMX, "a.tmx", target="de", overwrite=True), out)
    with pytest.raises(UsageError, match="which target language"):
        opened(TMX, "a.tmx")
    with pytest.raises(UsageError, match="which source language"):
        opened(TMX.replace('srclang="en-US"', 'srclang="*all*"'), "a.tmx", target="de")
    assert opened(TMX, "a.tmx", source="fr", target="de").segments[0].text == "seul"


def test_other_encodings_and_line_endings_stay(opened, out: Path) -> None:
    wide = TMX.replace("UTF-8", "UTF-16").replace("here", "grün").encode("utf-16")
    opened(wide, "a.tmx", target="de").write(["a ", "ü", " c"], out)
    assert out.read_bytes().startswith((b"\xff\xfe", b"\xfe\xff"))
    assert sides(out, source="en", target="de")[0] == ("Click grün & wait for %s", "a ü c")
    upper(opened(TMX.replace("\n", "\r\n"), "a.tmx", target="de"), out)
    assert out.read_bytes().count(b"\n") == out.read_bytes().count(b"\r\n") > 20


def test_xliff_1_targets_are_filled_and_nothing_else_changes(opened, out: Path) -> None:
    written = upper(opened(XLIFF1, "a.xlf"), out)
    targets = [
        '\n        <target state="translated">READ <g id="1">THE <x id="2"/> MANUAL</g> FIRST</target>',
        '<target state="translated">COPIED <mrk mtype="protected">NAME</mrk> TEXT</target>',
        '\n        <target state="translated"><mrk mtype="seg" mid="1">ONE.</mrk> '
        '<mrk mtype="seg" mid="2">TWO.</mrk></target>',
    ]
    assert all(target in written for target in targets)
    for target, before in zip(targets, ("", '<target state="new">copied</target>', ""), strict=True):
        written = written.replace(target, before)
    assert written == XLIFF1
    assert sides(out) == [
        ("Read the  manual first", "READ THE  MANUAL FIRST"),
        ("done", "fertig"),
        ("copied NAME text", "COPIED NAME TEXT"),
        ("one. two.", "ONE. TWO."),
    ]


def test_xliff_1_marks_for_review_and_names_its_language(opened, out: Path) -> None:
    content = XLIFF1.replace(' target-language="de"', "")
    written = upper(opened(content, "a.xlf", target="nl", mark=True, overwrite=True), out)
    assert written.count('state="needs-review-translation"') == 4
    assert 'target-language="nl"' in written
    assert ">DONE</target>" in written
    with pytest.raises(DataError, match="is en → de; nl was asked for"):
        opened(XLIFF1, "a.xlf", target="nl")


def test_a_targets_own_attributes_stay_and_the_sources_language_does_not(opened, out: Path) -> None:
    content = XLIFF1.replace("<source>copied", '<source xml:lang="en">copied')
    content = content.replace('<target state="new">', '<target xml:lang="de-AT" state="new" phase-name="p">')
    written = upper(opened(content, "a.xlf"), out)
    assert '<target xml:lang="de-AT" state="translated" phase-name="p">COPIED' in written
    bare = content.replace('<target xml:lang="de-AT" state="new" phase-name="p">copied</target>', "")
    assert '<target state="translated">COPIED' in upper(opened(bare, "a.xlf"), out)


def test_xliff_2_targets_are_filled_and_nothing_else_changes(opened, out: Path) -> None:
    written = upper(opened(XLIFF2, "a.xliff", target="de"), out)
    target = '\n        <target>READ <pc id="1">THIS <ph id="2"/> <mrk id="m" translate="no">Thing</mrk></pc>.</target>'
    assert target in written
    assert "<source>frozen</source></segment>" in written
    assert '<segment state="translated"><source>thawed</source><target>THAWED</target></segment>' in written
    assert '<segment id="s1" state="translated">' in written and 'trgLang="de"' in written
    assert '<segment id="s2" state="final"><source>done</source><target>fertig</target></segment>' in written
    with pytest.raises(UsageError, match="names no target language"):
        opened(XLIFF2, "a.xliff")


def test_writing_again_replaces_what_was_written(opened, out: Path) -> None:
    for content, name in ((TMX, "a.tmx"), (XLIFF1, "a.xlf"), (XLIFF2, "a.xliff")):
        document = opened(content, name, target="de")
        upper(document, out)
        first = out.read_bytes()
        document.write(["something else"] * len(document.segments), out)
        assert out.read_bytes() != first
        upper(document, out)
        assert out.read_bytes() == first


def test_hostile_translations_stay_text(opened, out: Path) -> None:
    document = opened(XLIFF1, "a.xlf")
    document.write(["</target>&x;<x/>\x00\x1b\ud800\uffff]]>"] * len(document.segments), out)
    tree = etree.parse(str(out))
    assert len(tree.findall(".//{*}x")) == len(etree.fromstring(XLIFF1.encode()).findall(".//{*}x")) + 1
    assert "</target>&x;<x/>]]>" in "".join(tree.getroot().itertext())


def test_entities_the_file_does_not_declare_are_refused(opened) -> None:
    content = '<!DOCTYPE xliff SYSTEM "x.dtd">' + XLIFF1.split("\n", 1)[1].replace("first", "&nbsp;first")
    with pytest.raises(DataError, match="entity &nbsp; is not declared"):
        opened(content, "a.xlf")
