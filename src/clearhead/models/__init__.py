"""Whole networks, made of bricks. Knows how parts are joined; refuses to know loss, optimiser, text and files.

Every encoder-decoder obeys one protocol (`models/protocol.py`), so that the Transformer and the baselines it
replaced are trained, decoded and judged by the same code.
"""
