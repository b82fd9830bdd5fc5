"""The glass: every number inside a model, real and recomputable, and causal questions asked of it.

    trace.py          a trace as typed data, saved and opened without torch (layout.py: its file)
    table.py          what each record is, by its name
    tracer.py         one pass under the taps
    decoded.py        decode, then that pass, and how well the two agree; tree.py: beam search as a tree
    opened.py         one number taken apart; direct.py: a logit, by embedding, head and layer
    passes.py         whole passes, many rows at once, or without a cache
    interventions.py  edits of the running model, as context managers
    lenses/           methods that read a trace or ask the model again, each a finding: numbers, cost, control, caveat
    shown.py          traces and findings as lines, and as tables in a notebook

Knows networks, ids and taps. Refuses to know text (printed tokens are given to it), training, pages and colours.
"""
