import math

import pytest

from clearhead.errors import DataError, NumbersError, UsageError
from clearhead.evaluate import Evaluation, evaluate_outputs, lines, score, standard_metrics


@pytest.fixture
def evaluation(references, spoilt):
    sources = [f"source {number}" for number in range(len(references))]
    return evaluate_outputs(
        spoilt(0.1), references, sources=sources, baseline=spoilt(0.5), nats_per_token=1.5, worst=3, resamples=200
    )


def test_scores_are_the_metrics_own(evaluation, references, spoilt):
    for found, metric in zip(evaluation.scores, standard_metrics(), strict=True):
        wanted = score(metric, spoilt(0.1), references)
        assert (found.name, found.value, found.signature) == (wanted.name, wanted.value, wanted.signature)
        assert found.low < found.value < found.high
        assert evaluation.value(found.name) == found.value
    assert evaluation.n == len(references)


def test_it_goes_to_json_and_comes_back(evaluation):
    assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation


def test_perplexity_is_handed_in(evaluation, references):
    assert evaluation.perplexity == pytest.approx(math.exp(1.5))
    assert evaluate_outputs(references, references, resamples=2).perplexity is None


@pytest.mark.parametrize("nats", [math.nan, math.inf, 1e4, -1.0])
def test_a_loss_without_perplexity_is_refused(nats):
    with pytest.raises(NumbersError, match="no perplexity"):
        evaluate_outputs(["a"], ["a"], nats_per_token=nats)


def test_worst_sentences_come_first(evaluation, references, spoilt):
    values = [sentence.chrf for sentence in evaluation.worst]
    assert values == sorted(values)
    for sentence in evaluation.worst:
        place = sentence.number - 1
        assert sentence.output == spoilt(0.1)[place]
        assert sentence.reference == references[place]
        assert sentence.source == f"source {place}"
    everything = evaluate_outputs(spoilt(0.1), references, worst=10**6, resamples=2).worst
    assert len(everything) == len(references)
    assert everything[2].chrf == values[2]


def test_equal_sentences_keep_their_order():
    found = evaluate_outputs(["x", "x", "a"], ["a", "a", "a"], worst=2, resamples=2)
    assert [sentence.number for sentence in found.worst] == [1, 2]


def test_worst_sentences_tell_their_places(references, spoilt):
    places = [("test.tsv", 2 * number + 1) for number in range(len(references))]
    found = evaluate_outputs(spoilt(0.1), references, places=places, worst=2, resamples=2)
    assert [(s.file, s.line) for s in found.worst] == [places[s.number - 1] for s in found.worst]
    first = found.worst[0]
    assert f"{first.file}:{first.line}: chrF {first.chrf:.1f}" in lines(found)
    assert evaluate_outputs(["a"], ["b"], resamples=2).worst[0].file is None


def test_what_is_left_out_is_told_first():
    found = evaluate_outputs(["a"], ["a"], resamples=2).model_copy(update={"left_out": {"empty side": 1_200}})
    assert lines(found)[0] == "1 sentences, besides those left out: 1,200 × empty side"
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


def test_the_baseline_is_tested_against(evaluation):
    bleu = evaluation.against[0]
    assert bleu.name == "BLEU"
    assert bleu.value > 0
    assert bleu.p_value < 0.05
    assert bleu.baseline == pytest.approx(evaluation.value("BLEU") - bleu.value)


def test_identical_outputs(references):
    found = evaluate_outputs(references, references, baseline=references, resamples=20, worst=1)
    assert [round(found.value(name), 9) for name in ("BLEU", "chrF2", "TER", "exact match")] == [100, 100, 0, 100]
    assert all((test.value, test.p_value) == (0.0, 1.0) for test in found.against)


def test_lines_show_everything(evaluation):
    text = "\n".join(lines(evaluation))
    bleu = evaluation.scores[0]
    assert text.startswith("97 sentences\n")
    assert f"{bleu.value:.2f}   [{bleu.low:.2f}, {bleu.high:.2f}]   {bleu.signature}" in text
    assert "4.48   1.5000 nats per token" in text
    assert f"p = {evaluation.against[0].p_value:.3f}" in text
    assert f"  source     {evaluation.worst[0].source}" in text
    assert all(f"  output     {sentence.output}" in text for sentence in evaluation.worst)


def test_lines_without_extras_are_only_scores():
    found = lines(evaluate_outputs(["a"], ["a"], worst=0, resamples=2))
    assert len(found) == 1 + len(standard_metrics())


def test_a_text_cannot_break_the_table():
    found = lines(evaluate_outputs(["a\nb\x1b[31m"], ["c"], resamples=2))
    assert found[-1] == r"  output     a\nb\x1b[31m"
    assert not any("\n" in line for line in found)


def test_other_sides_are_checked_too():
    with pytest.raises(DataError, match="1 sources and 2 references"):
        evaluate_outputs(["a", "b"], ["a", "b"], sources=["a"])
    with pytest.raises(DataError, match="3 outputs of the baseline and 2 references"):
        evaluate_outputs(["a", "b"], ["a", "b"], baseline=["a", "b", "c"])
    with pytest.raises(DataError, match="nothing to score"):
        evaluate_outputs([], [])


def test_an_unknown_score_is_named(evaluation):
    with pytest.raises(UsageError, match="BLEU, chrF2"):
        evaluation.value("METEOR")
