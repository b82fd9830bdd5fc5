"""What `import clearhead as ch` promises: these names and no others. A name more or less is a decision."""

from __future__ import annotations

import subprocess
import sys

import pytest

import clearhead

PROMISED = {
    "verbs": ("data_check", "doctor", "evaluate", "load", "plan", "train", "translate"),
    "what they give": ("Model", "Output", "Translation"),
    "settings": ("DecodeSettings", "Experiment"),
    "errors": (
        "ClearheadError",
        "DataError",
        "DiskError",
        "Interrupted",
        "MissingExtra",
        "ModelFileError",
        "NumbersError",
        "UsageError",
    ),
}
NAMES = [name for names in PROMISED.values() for name in names]


def test_the_list() -> None:
    assert sorted(clearhead.__all__) == sorted(NAMES) == dir(clearhead)
    assert len(NAMES) == len(set(NAMES)) <= 25


@pytest.mark.parametrize("name", NAMES)
def test_each_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(clearhead, name)
    assert callable(found) and found.__name__ == name and found.__doc__


def test_verbs_are_not_hidden_by_the_rooms_of_the_same_name() -> None:
    import clearhead.evaluate
    import clearhead.train

    assert all(callable(getattr(clearhead, name)) for name in PROMISED["verbs"])


def test_errors_are_one_family_with_the_exit_codes_of_the_page() -> None:
    errors = {name: getattr(clearhead, name) for name in PROMISED["errors"]}
    assert all(issubclass(error, clearhead.ClearheadError) for error in errors.values())
    codes = {name: error.exit_code for name, error in errors.items() if name not in ("ClearheadError", "Interrupted")}
    assert set(codes.values()) == {2, 3, 4, 5}


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = clearhead.trian


def test_importing_it_does_not_wait_for_torch() -> None:
    words = [sys.executable, "-c", "import sys, clearhead; dir(clearhead); print('torch' in sys.modules)"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "False\n"
