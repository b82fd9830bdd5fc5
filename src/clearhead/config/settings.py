"""The settings of each room. The string under a field is its documentation: help texts and docs/settings.md
are made from it, and a test holds them together.

Values that only a trained run knows (vocabulary sizes) stay out; values that follow from others are properties.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positions = Literal[
    "sinusoidal", "sinusoidal-halves", "learned", "relative-shaw", "relative-t5", "rotary", "alibi", "none"
]

MOST_THREADS = 1024
"""Asked for thousands, the libraries below crash instead of refusing."""


class Settings(BaseModel):
    """Frozen; an unknown key is an error; the docstring of a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class TextSettings(Settings):
    """How text becomes ids."""

    normalise: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode form every text is brought to before anything else."""
    lowercase: bool = False
    """Lower-case all text; output will be lower-case too."""
    level: Literal["subword", "word", "character", "sentence"] = "subword"
    """What one token is."""
    algorithm: Literal["bpe", "unigram"] = "bpe"
    """How sub-words are learned."""
    vocab_size: int = Field(8000, ge=270, le=1_000_000)
    """Upper bound on the number of tokens; small data gets fewer."""
    shared: bool = True
    """One vocabulary for both sides, or one each."""
    byte_fallback: bool = True
    """Spell what the vocabulary lacks in bytes, so that no text is unrepresentable."""
    bpe_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Chance that a merge is left out while training, per merge: words are cut in varying ways."""
    bpe_dropout_entries: int = Field(16, ge=2, le=256)
    """Segmentations drawn per word for BPE-dropout."""


class DataSettings(Settings):
    """Which pairs are read and which are kept."""

    columns: str | None = None
    """Columns to read, by number from 1 or by name, source first: "1,2" or "en,de". Guessed when empty."""
    source: str | None = None
    """Language code of the source; guessed when empty."""
    target: str | None = None
    """Language code of the target; guessed when empty."""
    valid: tuple[str, ...] = ()
    """File of held-out pairs, or two files, one a side; otherwise `valid_pairs` are set aside."""
    valid_pairs: int = Field(500, ge=1)
    """How many pairs to set aside for validation when no file is given; at most a tenth of the data."""
    gate: Literal["drop", "warn", "off"] = "drop"
    """What the data report's findings do to training: drop the pairs with counts, only warn, or nothing."""
    max_tokens: int = Field(256, ge=2)
    """Longer sides are left out of training, counted."""
    max_ratio: float = Field(9.0, gt=1.0)
    """Pairs whose lengths in characters differ by more than this factor are suspicious."""
    bad_utf8: Literal["error", "replace", "skip"] = "error"
    """What to do with bytes that are not UTF-8."""
    quotes: Literal["none", "csv"] = "none"
    """Of TSV files. none: quotation marks are text; csv: those around a cell go, doubled ones inside are halved."""
    drop_unpaired: bool = False
    """Of two text files with different numbers of lines, leave out the end of the longer one, counted."""
    note: str = Field("", max_length=500)
    """What the data are, from whom, under which licence: for the card, and handed on with the model."""


class ModelSettings(Settings):
    """The shape of a model. Words as in docs/notation.md."""

    kind: Literal["seq2seq", "recurrent", "convolutional"] = "seq2seq"
    """seq2seq: the Transformer encoder-decoder; recurrent, convolutional: the baselines it replaced."""
    d_model: int = Field(128, ge=2)
    """Width of the residual stream."""
    d_ff: int = Field(256, ge=1)
    """Hidden width of the feed-forward part."""
    n_heads: int = Field(4, ge=1)
    """Attention heads."""
    n_kv_heads: int | None = Field(None, ge=1)
    """Heads of keys and values, shared by groups of query heads; as many as `n_heads` when empty."""
    d_head: int | None = Field(None, ge=1)
    """Width of a head's queries and keys (d_k); d_model / n_heads when empty."""
    d_value: int | None = Field(None, ge=1)
    """Width of a head's values (d_v); as `d_head` when empty."""
    encoder_layers: int = Field(4, ge=1, le=256)
    """Depth of the encoder."""
    decoder_layers: int = Field(4, ge=1, le=256)
    """Depth of the decoder."""
    positions: Positions = "sinusoidal"
    """How order enters."""
    max_len: int = Field(1024, ge=2, le=1_000_000)
    """Longest sequence; the size of the table when positions are learned."""
    norm: Literal["layer", "rms", "batch"] = "layer"
    """Which normalisation (batch: for comparison only)."""
    norm_order: Literal["pre", "post"] = "pre"
    """Normalise before each part (pre) or after each addition (post, the 2017 paper)."""
    activation: Literal["relu", "gelu", "relu2", "swiglu", "geglu"] = "relu"
    """The feed-forward non-linearity; the -glu kinds are gated."""
    bias: bool = True
    """Biases in the linear maps."""
    scale_scores: bool = True
    """Divide q·k by √d_head."""
    embedding_scale: bool = True
    """Multiply embeddings by √d_model, as the paper does."""
    tie: Literal["all", "target", "none"] = "all"
    """Which embeddings share weights with the output layer; "all" needs a shared vocabulary."""
    attention_window: int | None = Field(None, ge=1)
    """Self-attention reaches this many tokens to each side; everything when empty."""
    attention_stride: int | None = Field(None, ge=2)
    """Besides its window, a token reads every token at a multiple of this distance."""
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Dropout on embeddings and on what each part adds to the residual stream."""
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Dropout on the attention pattern."""
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Dropout inside the feed-forward part."""
    word_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Chance that a whole token's embedding is zeroed while training."""

    @model_validator(mode="after")
    def _consistent(self) -> ModelSettings:
        if self.d_head is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}; change one or give d_head"
            )
        if self.n_heads % self.kv_heads:
            raise ValueError(f"n_heads {self.n_heads} is not a multiple of n_kv_heads {self.kv_heads}")
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions need an even d_head, not {self.head_width}")
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.attention_stride is not None and self.attention_window is None:
            raise ValueError("attention_stride needs attention_window")
        return self

    @property
    def head_width(self) -> int:
        return self.d_head or self.d_model // self.n_heads

    @property
    def value_width(self) -> int:
        return self.d_value or self.head_width

    @property
    def kv_heads(self) -> int:
        return self.n_kv_heads or self.n_heads


class TrainSettings(Settings):
    """How a model learns."""

    seed: int = Field(1, ge=0, lt=2**63)
    """Every random choice of the run follows from it."""
    max_steps: int = Field(20_000, ge=1)
    """Optimiser steps in all; raising it later continues the run."""
    batch_tokens: int = Field(4096, ge=1)
    """Target and source tokens of a batch, padding included, each at most this many."""
    accumulate: int = Field(1, ge=1)
    """Batches added up before each step; the loss is per target token over all of them."""
    optimiser: Literal["adamw", "muon"] = "adamw"
    """muon: orthogonalised momentum for matrices, AdamW for the rest."""
    lr: float = Field(2e-3, gt=0.0)
    """Peak learning rate (of AdamW)."""
    muon_lr: float = Field(0.02, gt=0.0)
    """Peak learning rate of Muon's matrices."""
    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's averages of gradient and square."""
    weight_decay: float = Field(0.0, ge=0.0)
    """Decoupled weight decay of matrices."""
    schedule: Literal["inverse-sqrt", "cosine", "wsd", "constant"] = "inverse-sqrt"
    """Learning rate over time: the paper's, a half cosine to zero, or warm-up, stable, decay."""
    warmup_steps: int = Field(1000, ge=0)
    """Steps of linear rise."""
    decay_fraction: float = Field(0.2, gt=0.0, le=1.0)
    """Last part of the run over which "wsd" falls to zero."""
    clip_norm: float = Field(1.0, gt=0.0)
    """Largest gradient norm."""
    label_smoothing: float = Field(0.1, ge=0.0, lt=1.0)
    """Probability spread over all tokens in the target distribution."""
    rdrop: float = Field(0.0, ge=0.0)
    """Weight of R-Drop: two passes under different dropout must agree. Costs twice the time."""
    ema: float = Field(0.0, ge=0.0, lt=1.0)
    """Decay of an exponential average of the weights, used for validation and the result; 0 is off."""
    average: int = Field(0, ge=0)
    """The result is the mean of this many snapshots of the weights, the last ones; 0 is off."""
    average_every: int = Field(100, ge=1)
    """Steps between those snapshots."""
    precision: Literal["auto", "bf16", "float32"] = "auto"
    """Of the matrix products; weights, sums, norms and attention stay in float32. auto: bf16 where it is faster."""
    on_nonfinite: Literal["stop", "skip", "rewind"] = "stop"
    """When loss or gradient is not finite: stop, skip the batch, or go back to the last checkpoint."""
    threads: int | None = Field(None, ge=1, le=MOST_THREADS)
    """CPU threads; all cores when empty. Equal results are promised for equal thread counts."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to train. auto: on a CUDA GPU if there is one, else on the processor; which it is, is said."""


class ValidationSettings(Settings):
    """How a run is judged on the way."""

    every_steps: int = Field(500, ge=1)
    """Steps between validations."""
    metric: Literal["loss", "bleu", "chrf", "exact"] = "chrf"
    """What the best checkpoint and early stopping go by."""
    decode_pairs: int = Field(200, ge=0)
    """Validation pairs that are decoded, greedily, for the scores; 0 judges by loss alone."""
    patience: int = Field(10, ge=1)
    """Validations without improvement before stopping early."""


class CheckpointSettings(Settings):
    """What is saved on the way."""

    every_steps: int = Field(500, ge=1)
    """Steps between checkpoints."""
    keep: int = Field(2, ge=1)
    """Newest checkpoints kept. Each holds the best weights so far besides its own."""


class DecodeSettings(Settings):
    """How a trained model writes."""

    method: Literal["beam", "greedy", "sample"] = "beam"
    """Search for the likeliest output, take the likeliest word each time, or draw."""
    beam: int = Field(5, ge=1, le=64)
    """Hypotheses kept per sentence."""
    length_penalty: float = Field(1.0, ge=0.0, le=5.0)
    """A finished hypothesis is ranked by its log-probability over length to this power."""
    n_best: int = Field(1, ge=1, le=64)
    """Outputs per sentence: the best of the beam, or that many draws."""
    max_ratio: float = Field(2.0, gt=0.0)
    """Output tokens at most: this times the source's, plus `max_extra`."""
    max_extra: int = Field(20, ge=1)
    """See `max_ratio`."""
    no_repeat: int = Field(0, ge=0, le=20)
    """Never write the same run of this many tokens twice; 0 is off."""
    prefix: str = ""
    """Every output begins with this text; the model goes on from there. Whole words."""
    temperature: float = Field(1.0, gt=0.0, le=10.0)
    """Sampling: below 1 sharper, above 1 flatter."""
    top_k: int = Field(0, ge=0)
    """Sampling: only the k likeliest tokens; 0 is off."""
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    """Sampling: the smallest set of tokens with this much probability."""
    min_p: float = Field(0.0, ge=0.0, lt=1.0)
    """Sampling: only tokens at least this fraction as likely as the likeliest."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Sampling: the draws follow from it and from the sentence's place."""
    batch_tokens: int = Field(4096, ge=1)
    """Source tokens decoded at once."""
    precision: Literal["float32", "bf16", "int8"] = "float32"
    """Of the matrix products. float32 keeps every promise of sameness; bf16 and int8 are faster and may choose
    another word now and then."""
    fast: bool = True
    """Take the fused step, which gives the same numbers; false takes the plain one."""
    compiled: bool = True
    """Take the compiled engine, which gives the same numbers within rounding, where it has been built."""

    @model_validator(mode="after")
    def _consistent(self) -> DecodeSettings:
        if self.method == "beam" and self.n_best > self.beam:
            raise ValueError(
                f"n_best {self.n_best} is more than beam {self.beam}: a beam of {self.n_best} gives as many"
            )
        return self
