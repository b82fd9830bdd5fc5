"""Counted draws: every random number is a function of where it is used, never of what was drawn before."""

from clearhead.randomness.counted import Site, key, numpy_generator, permutation, uniform

__all__ = ["Site", "key", "numpy_generator", "permutation", "uniform"]
