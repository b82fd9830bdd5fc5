"""Pages that repeat what the code knows are held to it: the settings, the truths, the index, the changelog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import clearhead
from clearhead.config import document
from clearhead.truths.registry import TRUTHS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHANGELOG = ROOT / "CHANGELOG.md"
LINK = re.compile(r"\]\(([\w-]+\.md)\)")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_settings_are_written_down_as_they_are() -> None:
    assert page("settings.md") == document.markdown(), "python -m clearhead.config.document > docs/settings.md"


def test_every_setting_says_what_it_means() -> None:
    entries = [entry for section in document.sections() for entry in section.entries]
    assert len(entries) > 60
    assert [entry.name for entry in entries if not entry.meaning.endswith(".")] == []


def test_every_truth_is_in_the_table_in_the_words_of_the_registry() -> None:
    rows = [line[2:-2].split(" | ") for line in page("truths.md").splitlines() if line.startswith("| `")]
    told = [[name, row, claim, refuted, control] for name, row, claim, _, refuted, control in rows]
    assert told == [[f"`{t.name}`", t.row, t.claim, t.refuted_by, t.control] for t in TRUTHS]
    assert all(measured.strip() for _, _, _, measured, _, _ in rows)


def test_the_index_names_every_page_once() -> None:
    listed = LINK.findall(page("README.md"))
    assert sorted(listed) == sorted(path.name for path in DOCS.glob("*.md") if path.name != "README.md")


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## {clearhead.__version__} (" in CHANGELOG.read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{clearhead.__version__}"\n' in project


@pytest.mark.parametrize("path", [CHANGELOG, *sorted(DOCS.glob("*.md"))], ids=lambda path: path.name)
def test_a_page_has_one_title_and_ends_with_a_line(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^# \S", prose, re.MULTILINE)) == 1 and text.startswith("# ")
    assert text.endswith("\n") and not text.endswith("\n\n") and "\t" not in prose
