"""Decoding in one compiled pass, where a compiler is at hand.

    engine.cpp   the equations of models/seq2seq.py, for speed alone         build.py    compiles it once, and keeps it
    engine.py    a model's weights in it, and the steps of a search

Optional: without a compiler, or for a model it does not know, decoding takes the fused step (models/fused.py).
Imports models and nn. Refuses to know text, searches and training.
"""
