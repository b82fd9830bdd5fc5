"""Learning: loss, optimiser, schedule, loop, checkpoints.

Knows a model, batches of ids and settings. Refuses to know text and decoding: who wants validation by decoding
hands in a function. Every random choice is counted (see `clearhead.randomness`).
"""
