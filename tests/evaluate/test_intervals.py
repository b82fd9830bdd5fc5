import numpy as np
import pytest

from clearhead.errors import DataError
from clearhead.evaluate import compare, interval, standard_metrics
from clearhead.evaluate.intervals import Interval, around, p_value, resampled
from clearhead.evaluate.metrics import ExactMatch, chrf

METRICS = standard_metrics()
each_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


@each_metric
def test_the_interval_holds_the_score_and_repeats(metric, references, spoilt):
    rows = metric.statistics(spoilt(0.3), references)
    value = metric.value(rows.sum(axis=0))
    found = interval(metric, rows, seed=3, resamples=200)
    assert found.low < value < found.high
    assert found == interval(metric, rows, seed=3, resamples=200)
    assert found != interval(metric, rows, seed=4, resamples=200)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@each_metric
def test_even_few_sentences_have_their_score_inside(metric, references, spoilt, n):
    rows = metric.statistics(spoilt(0.4)[:n], references[:n])
    found = interval(metric, rows, resamples=50)
    assert found.low <= metric.value(rows.sum(axis=0)) <= found.high


@each_metric
def test_more_sentences_make_it_narrower(metric, references, spoilt):
    rows = metric.statistics(spoilt(0.1), references)
    few, many = (interval(metric, some, resamples=200) for some in (rows[:20], np.tile(rows, (4, 1))))
    assert many.high - many.low < (few.high - few.low) / 2


def test_a_score_outside_its_resamples_widens_them():
    assert around(9.0, [1.0, 2.0]) == Interval(pytest.approx(1.025), 9.0)
    assert around(0.0, [1.0, 2.0]) == Interval(0.0, pytest.approx(1.975))


def test_the_interval_of_a_share_is_the_binomial_one():
    rows = np.array([[1, 1]] * 300 + [[0, 1]] * 100, dtype=np.float64)
    found = interval(ExactMatch(), rows, resamples=2000)
    half = 196 * np.sqrt(0.75 * 0.25 / 400)
    assert found.low == pytest.approx(75 - half, abs=0.6)
    assert found.high == pytest.approx(75 + half, abs=0.6)


def test_every_resample_has_as_many_sentences():
    rows = np.ones((13, 2))
    assert [total.tolist() for total in resampled(rows, 1, 5)] == [[13.0, 13.0]] * 5


@each_metric
def test_a_system_against_itself_is_no_better(metric, references, spoilt):
    found = compare(metric, spoilt(0.3), spoilt(0.3), references, resamples=100)
    assert found.p_value == 1.0
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("metric", METRICS[:3], ids=lambda metric: metric.name)
def test_a_clearly_better_system_is_found(metric, references, spoilt):
    found = compare(metric, spoilt(0.5), spoilt(0.1), references, resamples=300)
    assert 1 / 301 <= found.p_value < 0.05
    assert found.low > 0 or found.high < 0
    assert found.low < found.difference < found.high
    assert found.difference == found.value - found.baseline
    assert found == compare(metric, spoilt(0.5), spoilt(0.1), references, resamples=300)


def test_exchanged_systems_give_the_opposite(references, spoilt):
    one = compare(chrf(), spoilt(0.3), spoilt(0.2), references, resamples=300)
    other = compare(chrf(), spoilt(0.2), spoilt(0.3), references, resamples=300)
    assert one.difference == -other.difference
    assert one.low == pytest.approx(-other.high)


def test_chance_finds_differences_as_often_as_it_should(references, spoilt):
    """Two systems of equal quality: over many pairs, p below 0.2 about a fifth of the time."""
    metric = chrf()
    rows = [metric.statistics(spoilt(0.3 + step / 1000), references) for step in range(14)]
    found = [p_value(metric, one, other, seed, 60) for seed, one in enumerate(rows) for other in rows[:seed]]
    assert 0.05 < np.mean(np.array(found) < 0.2) < 0.4


def test_exact_p_value_of_two_sentences():
    """One sentence better, one equal: any swap makes a difference as large, so p is 1."""
    old = np.array([[0.0, 1.0], [1.0, 1.0]])
    new = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert p_value(ExactMatch(), old, new, 1, 50) == 1.0


def test_both_numbers_are_named():
    with pytest.raises(DataError, match="1 outputs of the baseline and 2 references"):
        compare(chrf(), ["a"], ["a", "b"], ["a", "b"])
    with pytest.raises(DataError, match="3 outputs and 2 references"):
        compare(chrf(), ["a", "b"], ["a", "b", "c"], ["a", "b"])
