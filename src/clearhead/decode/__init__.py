"""Writing, word by word until EOS: step, filter, choose, rank.

Knows a model's protocol and ids. Refuses to know text, training and files.
"""
