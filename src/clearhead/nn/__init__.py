"""The bricks: one idea per file, tensors in, tensors out.

Knows shapes, masks and arithmetic. Refuses to know text, files, settings, training and decoding. Letters of the
shape annotations: docs/notation.md. Checked by the test run, where every dimension is a different prime.
"""
