"""The lenses: each a method with its cost, a control and a caveat.

    attention.py   the weight · weight × value · value zeroing · rollout           reading    where heads read from
    erasure.py     leave one out · the source's share · agreement with attention   causal     exact
    ablation.py    every head cut · activations patched                            causal     exact
    gradients.py   gradient × input · integrated gradients                         slopes     completeness shown
    layers.py      logit lens · decode from encoder layer k                        layers
    space.py       neighbours · a map        association.py   word lists (WEAT)    embeddings
    context.py     one word's vectors in two sentences

None of them says why. Reading and slopes suggest, erasure and ablation measure; their disagreement is shown.
"""
