import pytest
import sacrebleu

from clearhead.errors import DataError, MissingExtra, UsageError
from clearhead.evaluate import bleu_tokenizer, metrics, quick_scores, score, standard_metrics
from clearhead.evaluate.metrics import TOKENIZERS, ExactMatch, bleu, chrf, ter


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("tokenize", ["13a", "intl", "zh", "char", "none"])
def test_bleu_is_sacrebleus(references, spoilt, share, tokenize):
    theirs = sacrebleu.BLEU(tokenize=tokenize, force=True)
    wanted = theirs.corpus_score(spoilt(share), [references])
    ours = score(bleu(tokenize), spoilt(share), references)
    assert ours.value == wanted.score
    assert ours.signature == str(theirs.get_signature())
    assert f"tok:{tokenize}" in ours.signature


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("ours", "theirs"), [(chrf, sacrebleu.CHRF), (ter, sacrebleu.TER)])
def test_chrf_and_ter_are_sacrebleus(references, spoilt, share, ours, theirs):
    metric = theirs()
    wanted = metric.corpus_score(spoilt(share), [references])
    found = score(ours(), spoilt(share), references)
    assert (found.name, found.value) == (wanted.name, wanted.score)
    assert found.signature == str(metric.get_signature())


def test_rows_are_sentence_scores(references, spoilt):
    theirs = sacrebleu.CHRF()
    metric = chrf()
    rows = metric.statistics(spoilt(0.3), references)
    assert [metric.value(row) for row in rows] == [
        theirs.sentence_score(output, [reference]).score
        for output, reference in zip(spoilt(0.3), references, strict=True)
    ]


def test_tokenised_text_is_taken_as_it_is():
    """Published Multi30k scores are of tokenised text: brackets stay with their words only where they stand so."""
    outputs, references = ["ein ( rotes ) auto steht dort"], ["ein (rotes) auto steht dort"]
    assert score(bleu("13a"), outputs, references).value == pytest.approx(100.0)
    assert score(bleu("none"), outputs, references).value < 50.0


def test_exact_match_by_hand():
    outputs = ["Ja.", " Nein.\n", "vielleicht", "", "Ä"]
    references = ["Ja.", "Nein.", "Vielleicht", "", "A\u0308"]
    assert score(ExactMatch(), outputs, references).value == 60.0


def test_length_ratio_by_hand():
    ratio = standard_metrics()[-1]
    assert score(ratio, ["a b c.", "d"], ["a b", "c d e"]).value == 5 / 5
    assert score(ratio, ["a b c d"], ["a b c d e"]).value == 4 / 5
    assert score(ratio, [""], [""]).value == 1.0
    assert score(ratio, ["a b"], [""]).value == 2.0


def test_names():
    assert [metric.name for metric in standard_metrics()] == ["BLEU", "chrF2", "TER", "exact match", "length ratio"]


def test_quick_scores(references, spoilt):
    found = quick_scores(spoilt(0.2), references)
    assert list(found) == ["bleu", "chrf", "exact"]
    assert found["bleu"] == score(bleu(), spoilt(0.2), references).value
    assert found["chrf"] == score(chrf(), spoilt(0.2), references).value
    assert 0 < found["exact"] < 100


@pytest.mark.parametrize("metric", standard_metrics(), ids=lambda metric: metric.name)
def test_different_numbers_and_none_are_refused(metric):
    with pytest.raises(DataError, match="2 outputs and 3 references"):
        score(metric, ["a", "b"], ["a", "b", "c"])
    with pytest.raises(DataError, match="nothing to score"):
        score(metric, [], [])


@pytest.mark.parametrize("metric", standard_metrics(), ids=lambda metric: metric.name)
def test_empty_sentences_have_a_score(metric):
    assert score(metric, ["", "a"], ["a", ""]).value >= 0.0


def test_unknown_tokeniser_names_the_nearest():
    with pytest.raises(UsageError, match="'13a'"):
        bleu("13b")
    with pytest.raises(UsageError, match="choose one of 13a"):
        bleu("???")


def test_tokeniser_that_is_not_installed(monkeypatch):
    def refuse(**_: object) -> None:
        raise RuntimeError("no MeCab")

    monkeypatch.setattr(metrics, "BLEU", refuse)
    with pytest.raises(MissingExtra, match=r"sacrebleu\[ja\]"):
        bleu("ja-mecab")


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("de", "13a"), (None, "13a"), ("zh-TW", "zh"), ("ZH_cn", "zh"), ("ja", "char")]
)
def test_tokeniser_of_a_language(language, tokenizer):
    assert bleu_tokenizer(language) == tokenizer
    assert tokenizer in TOKENIZERS
