"""From files as people have them to pairs of strings, one after the other, however many there are.

Knows formats, encodings and languages. Refuses to know tokens, quality (see `clearhead.data.gate`) and the network.
"""

from clearhead.data.readers.pairs import Guess, Pair, Pairs
from clearhead.data.readers.read import FORMATS, open_pairs

__all__ = ["FORMATS", "Guess", "Pair", "Pairs", "open_pairs"]
