"""The space of embeddings, and words in it; each number again by the long way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from clearhead.errors import UsageError
from clearhead.glass.lenses.association import association
from clearhead.glass.lenses.context import in_context
from clearhead.glass.lenses.space import neighbours, plane, table_of


def cos(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(29, 7))


def test_neighbours(table: np.ndarray) -> None:
    found = neighbours(table, 11, 4, "w{}".format)
    near = sorted((i for i in range(29) if i != 11), key=lambda i: -cos(table[11], table[i]))[:4]
    assert found.ids == tuple(near) and found.labels == (tuple(f"w{i}" for i in near),)
    np.testing.assert_allclose(found.values, [cos(table[11], table[i]) for i in near])
    assert 0.5 < found.control.value < 1
    with pytest.raises(UsageError, match="token 29 does not exist"):
        neighbours(table, 29)


def test_a_map_shows_the_two_widest_directions(table: np.ndarray) -> None:
    tokens = [3, 5, 7, 11, 13, 17]
    found = plane(table, tokens)
    rows = table[tokens] - table[tokens].mean(0)
    spread = np.sort(np.linalg.eigvalsh(rows.T @ rows))[::-1]
    np.testing.assert_allclose((found.values**2).sum(0), spread[:2])
    assert found.share == pytest.approx(spread[:2].sum() / spread.sum())
    assert found.values[np.abs(found.values).argmax(0), [0, 1]].min() > 0, "the sign is settled"
    with pytest.raises(UsageError, match="at least 3 tokens, not 2"):
        plane(table, [1, 2])


def test_the_table_is_the_model_s(glass_model: Callable) -> None:
    model = glass_model(tie="none")
    for side in ("source", "target"):
        expected = model.get_parameter(f"{side}_embedding.table.weight").detach().numpy()
        np.testing.assert_array_equal(table_of(model, side), expected)


def words(*ids: int) -> dict[str, list[int]]:
    return {f"w{i}": [i] for i in ids}


def test_association_over_all_divisions(table: np.ndarray) -> None:
    x, y, a, b = words(1, 2, 3), words(4, 5, 6), words(7, 8), words(9, 10)
    found = association(table, x, y, a, b, counts={i: i * i for i in range(29)})
    s = {
        i: np.mean([cos(table[i], table[j]) for j in (7, 8)]) - np.mean([cos(table[i], table[j]) for j in (9, 10)])
        for i in range(1, 7)
    }
    np.testing.assert_allclose(found.values, list(s.values()))
    own = np.mean([s[i] for i in (1, 2, 3)]) - np.mean([s[i] for i in (4, 5, 6)])
    assert found.effect == pytest.approx(own / np.std(list(s.values())))
    others = [np.mean([s[i] for i in one]) - np.mean([s[i] for i in s if i not in one]) for one in combinations(s, 3)]
    assert found.p == pytest.approx(np.mean([other >= own - 1e-12 for other in others]))
    assert found.frequency["A"] == pytest.approx(np.mean(np.log1p([49, 64])))
    logs = np.log1p(np.array([1, 4, 9, 16, 25, 36]))
    assert found.frequency_correlation == pytest.approx(np.corrcoef(list(s.values()), logs)[0, 1])
    assert 0 <= found.random_lists <= 1 and found.control.value > 0 and found.split == ()


def test_an_association_that_is_there_and_one_that_is_not(table: np.ndarray) -> None:
    leaning = table.copy()
    leaning[1:5] = leaning[9] + 0.1 * leaning[1:5]
    leaning[5:9] = leaning[11] + 0.1 * leaning[5:9]
    lists = words(1, 2, 3, 4), words(5, 6, 7, 8), words(9, 10), words(11, 12)
    there = association(leaning, *lists)
    assert there.effect > 1.9 and there.p < 0.02 and "saturated" in there.caveat
    nowhere = association(leaning, words(1, 2, 5, 6), words(3, 4, 7, 8), words(9, 10), words(11, 12))
    assert abs(nowhere.effect) < 0.5 and nowhere.p > 0.2 and nowhere.frequency is None


def test_words_of_several_pieces_are_marked(table: np.ndarray) -> None:
    split = {"long": [1, 2], **words(3)}
    assert association(table, split, words(4, 5), words(6, 7), words(8, 9)).split == ("long",)
    with pytest.raises(UsageError, match="list Y has 1 words"):
        association(table, split, words(4), words(6, 7), words(8, 9))


def test_one_word_in_two_sentences(float64: None, glass_model: Callable, traced: Callable) -> None:
    model = glass_model(encoder_layers=2, positions="rotary")
    first, second = traced(model, [7, 11, 8]), traced(model, [11, 23, 19, 5])
    found = in_context(first, 1, second, 0)
    ends = ["source_embedding.sum", *(f"encoder.layers.{i}.feedforward_residual.after" for i in (0, 1))]
    assert found.labels == (tuple(ends),)
    for row, name in enumerate(ends):
        assert found.values[row] == pytest.approx(cos(first[name][1], second[name][0]))
        pairs = [
            cos(first[name][i], second[name][j])
            for i in range(4)
            for j in range(5)
            if first.source[i] != second.source[j]
        ]
        assert found.different[row] == pytest.approx(np.mean(pairs))
    assert found.control.value == found.different[-1]
    assert found.values[0] == pytest.approx(1), "the same row of the table; then the neighbours are read"
    assert found.values[-1] < 0.9999
    with pytest.raises(UsageError, match="place 9 does not exist"):
        in_context(first, 1, second, 9)
