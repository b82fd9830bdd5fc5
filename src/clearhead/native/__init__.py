"""What is compiled for this processor, where a compiler is at hand: decoding, and the loops of training in bf16.

    build.py       compiles both once, and keeps them               registers.h   what both do with registers
    engine.cpp     the equations of models/seq2seq.py, for decoding alone
    engine.py      a model's weights in it, and the steps of a search
    learning.cpp   what stands between the matrix products of a training step
    loops.py       those loops as differentiable steps on rows       rows.py       a batch's tokens as rows
    learning.py    a Transformer's training pass made of them       memory.py     what is freed is kept for the next one

Optional: without a compiler, or for a model they do not know, decoding takes the fused step (models/fused.py) and
training the bricks. Imports models and nn. Refuses to know text, searches, losses and optimisers.
"""
