"""Text to ids and back: normalise, cut into sentences and words, learn and apply a vocabulary."""

from clearhead.text.normalise import normalise
from clearhead.text.sampling import SegmentationTable
from clearhead.text.segment import Sentence, join_sentences, split_sentences
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from clearhead.text.vocabulary import BOS, EOS, MASK, PAD, SPECIAL, UNK

__all__ = [
    "BOS",
    "EOS",
    "MASK",
    "PAD",
    "SPECIAL",
    "UNK",
    "SegmentationTable",
    "Sentence",
    "Tokenizer",
    "join_sentences",
    "load_tokenizer",
    "normalise",
    "split_sentences",
    "train_tokenizer",
]
