"""Every synthetic task keeps its rule, depends on its seed only, and varies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest

from clearhead.data import synthetic
from clearhead.errors import UsageError

TASKS = [
    synthetic.copy,
    synthetic.reverse,
    synthetic.sort,
    synthetic.add,
    synthetic.recall,
    synthetic.parity,
    synthetic.agreement,
]


@pytest.mark.parametrize("task", TASKS)
def test_tasks_depend_on_the_seed_alone_and_vary(task: Callable[..., list[tuple[str, str]]]) -> None:
    first, again, other = task(300, 1), task(300, 1), task(300, 2)
    assert len(first) == 300
    assert first == again != other
    assert len(set(first)) > 250


def test_copy_reverse_sort() -> None:
    assert all(source == target for source, target in synthetic.copy(50, 1))
    assert all(source.split() == target.split()[::-1] for source, target in synthetic.reverse(50, 1))
    for source, target in synthetic.sort(50, 1, length=7, symbols=3):
        assert Counter(source.split()) == Counter(target.split())
        assert target.split() == sorted(source.split())
    assert {len(source.split()) for source, _ in synthetic.sort(50, 1, length=7)} == {7}


def test_add_is_right_and_carries() -> None:
    made = synthetic.add(500, 1, digits=3)
    for source, target in made:
        left, right = source.replace(" ", "").split("+")
        assert int(left) + int(right) == int(target.replace(" ", ""))
    assert {len(source.split("+")[0].split()) for source, _ in made} == {1, 2, 3}
    assert any(len(target.split()) == 4 for _, target in made)


@pytest.mark.parametrize("distance", [None, 1, 5])
def test_recall_gives_the_value_of_the_key_at_its_distance(distance: int | None) -> None:
    seen = set()
    for source, target in synthetic.recall(200, 1, entries=5, distance=distance, symbols=9):
        told, asked = source.split(" ? ")
        keys, values = told.split()[0::2], told.split()[1::2]
        assert len(set(keys)) == 5
        assert values[keys.index(asked)] == target
        seen.add(5 - keys.index(asked))
    assert seen == ({1, 2, 3, 4, 5} if distance is None else {distance})


def test_parity() -> None:
    made = synthetic.parity(200, 1, length=6)
    assert all((source.split().count("1") % 2 == 1) == (target == "odd") for source, target in made)
    assert {source.count(" ") for source, _ in made} == {5}


@pytest.mark.parametrize("distance", [0, 3])
def test_agreement_is_with_the_first_noun(distance: int) -> None:
    misled = 0
    for source, target in synthetic.agreement(300, 1, distance=distance):
        nouns = [word for word in source.split() if word.rstrip("s") in synthetic.NOUNS]
        assert len(nouns) == distance + 1
        assert target == ("are" if nouns[0].endswith("s") else "is")
        misled += nouns[-1].endswith("s") != nouns[0].endswith("s")
    assert (misled > 100) == (distance > 0)


def test_pairs_are_drawn_as_they_are_asked_for() -> None:
    assert len(list(islice(synthetic.pairs(10**9, 1), 5000))) == 5000
    made = list(synthetic.pairs(5000, 1))
    assert len(made) == 5000 and made == list(islice(synthetic.pairs(10**9, 1), 5000))
    assert made[:10] != list(synthetic.pairs(10, 2))


def test_pairs_have_the_length_the_vocabulary_and_the_inequality_asked_for() -> None:
    made = list(synthetic.pairs(4096, 1, vocabulary=500, mean_length=12))
    counts = Counter(word for source, _ in made for word in source.split())
    assert 11.5 < counts.total() / len(made) < 12.5
    assert 490 <= len(counts) <= 500
    ranked = [count for _, count in counts.most_common()]
    assert 1.5 < ranked[0] / ranked[1] < 2.0 and 6 < ranked[0] / ranked[9] < 9  # log 2, log 3/2, … log 11/10


def test_a_word_has_one_translation_and_the_order_turns() -> None:
    meaning: dict[str, str] = {}
    for source, target in synthetic.pairs(3000, 1, vocabulary=300):
        for word, said in zip(source.split(), reversed(target.split()), strict=True):
            assert meaning.setdefault(word, said) == said
    assert len(set(meaning.values())) == len(meaning) > 290
    assert not set(meaning) & set(meaning.values())


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: synthetic.copy(1, 1, length=0), "length"),
        (lambda: synthetic.copy(1, 1, symbols=27), "symbols"),
        (lambda: synthetic.add(1, 1, digits=0), "digits"),
        (lambda: synthetic.add(1, 1, digits=19), "digits"),
        (lambda: synthetic.recall(1, 1, entries=8, distance=9), "distance"),
        (lambda: synthetic.recall(1, 1, entries=8, symbols=7), "symbols"),
        (lambda: synthetic.agreement(1, 1, distance=-1), "distance"),
        (lambda: synthetic.pairs(1, 1, vocabulary=0), "vocabulary"),
    ],
)
def test_impossible_tasks_are_refused(make: Callable[[], object], field: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert caught.value.field == field and caught.value.hint
