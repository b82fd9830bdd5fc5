"""The small truths: every sentence of the notes that can be shown, proved on the spot by an experiment.

One short file per truth. Each states its claim, measures it on the real bricks, and can fail: with its ingredient
taken away (`control`) the same experiment must come out against the claim.

Knows everything below: bricks, models, training, decoding, verbs. Refuses to print: the command line does.
"""
