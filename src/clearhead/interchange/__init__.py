"""Public formats: a foreign name for every tensor of ours, in tables.

Knows the names, layouts and limits of other programs' models. Refuses to know training, decoding and folders of runs:
settings, tensors and vocabularies in, files out. Foreign names stand in this room and nowhere else.
"""
