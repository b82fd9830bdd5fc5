"""Hugging Face's Seq2SeqTrainer as a contestant, on a Marian model. It is given the ready batches of the others."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from gate import Batches, Gate
from protocol import serve
from transformers import (
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    logging,
    set_seed,
)

PAD, BOS, EOS = 0, 1, 2
NOT_A_LABEL = -100


class Ready(torch.utils.data.IterableDataset):
    """Each item is a whole batch."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        for source, target_in, target_out in self.batches:
            ids, labels = torch.from_numpy(source), torch.from_numpy(target_out)
            yield {
                "input_ids": ids,
                "attention_mask": (ids != PAD).long(),
                "decoder_input_ids": torch.from_numpy(target_in),
                "labels": labels.masked_fill(labels == PAD, NOT_A_LABEL),
            }


class StepByStep(TrainerCallback):
    def __init__(self) -> None:
        self.gate: Gate | None = None

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        assert self.gate is not None
        self.gate.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        assert self.gate is not None
        self.gate.end()


def config(vocabulary: int, shape: dict) -> MarianConfig:
    return MarianConfig(
        vocab_size=vocabulary,
        d_model=shape["d_model"],
        encoder_layers=shape["encoder_layers"],
        decoder_layers=shape["decoder_layers"],
        encoder_ffn_dim=shape["d_ff"],
        decoder_ffn_dim=shape["d_ff"],
        encoder_attention_heads=shape["n_heads"],
        decoder_attention_heads=shape["n_heads"],
        activation_function="relu",
        scale_embedding=True,
        dropout=shape["dropout"],
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )


class Contestant:
    def __init__(self, file: str, vocabulary: int, shape: dict, precision: str, threads: int, seed: int) -> None:
        torch.set_num_threads(threads)
        logging.set_verbosity_error()
        set_seed(seed)
        self.batches = Batches(file)
        arguments = Seq2SeqTrainingArguments(
            output_dir=tempfile.mkdtemp(prefix="clearhead-bench-"),
            per_device_train_batch_size=1,
            max_steps=1 << 30,
            learning_rate=1e-4,
            label_smoothing_factor=0.1,
            bf16=precision == "bf16",
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            seed=seed,
        )
        follower = StepByStep()
        trainer = Seq2SeqTrainer(
            model=MarianMTModel(config(vocabulary, shape)),
            args=arguments,
            train_dataset=Ready(self.batches),
            data_collator=lambda items: items[0],
            callbacks=[follower],
        )
        follower.gate = self.gate = Gate(trainer.train)

    def train(self, steps: int) -> dict:
        return {"seconds": self.gate.steps(steps), "tokens": self.batches.count(steps)}


if __name__ == "__main__":
    serve(Contestant)
