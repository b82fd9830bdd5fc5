"""card.md: what a model is, what it was made from, how good it is. Numbers and counts; none of the training text."""

from __future__ import annotations

import clearhead
from clearhead.config import Experiment
from clearhead.train.state import RunState
from clearhead.verbs.prepare import Corpus


def write_card(experiment: Experiment, corpus: Corpus, state: RunState, parameters: int) -> str:
    model, train = experiment.model, experiment.train
    source, target = corpus.pairs.source or "source", corpus.pairs.target or "target"
    lines = [
        f"# {source} → {target}",
        "",
        f"A {model.kind} model of {parameters:,} parameters, trained with clearhead {clearhead.__version__}.",
        "",
        f"- **Data**: {corpus.train_pairs:,} pairs to learn from, {len(corpus.valid):,} held out. The text itself "
        "is not in this folder's manifest and is left out by `clearhead pack`."
        f"{' ' + experiment.data.note if experiment.data.note else ''}",
        f"- **Text**: {experiment.text.level} tokens ({experiment.text.algorithm}), at most "
        f"{experiment.text.vocab_size:,}; Unicode {experiment.text.normalise}"
        f"{', lower-cased' if experiment.text.lowercase else ''}.",
        f"- **Shape**: {model.encoder_layers}+{model.decoder_layers} layers, width {model.d_model}, feed-forward "
        f"{model.d_ff}, {model.n_heads} heads, {model.positions} positions, {model.norm_order}-norm.",
        f"- **Training**: {state.step:,} steps, {state.target_tokens:,} target tokens, seed {train.seed}, "
        f"{train.optimiser}, products in {train.precision}.",
    ]
    if state.best is not None:
        scores = ", ".join(f"{name} {value:.1f}" for name, value in state.best.scores.items())
        lines.append(
            f"- **Held-out pairs** (chosen by {experiment.validation.metric}, so slightly flattering; greedy "
            f"decoding): loss {state.best.loss:.3f} nats per token{', ' + scores if scores else ''}."
        )
    lines += [
        "",
        "It translates sentences like those it was trained on. It can be wrong and fluent at once; whoever relies on "
        "an output should read it.",
        "",
    ]
    return "\n".join(lines)
