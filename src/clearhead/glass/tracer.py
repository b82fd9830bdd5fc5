"""The tracer: one teacher-forced pass over a source and an output, every tap heard.

The bricks' taps give nearly all records. Derived here, from them and the weights: each head's own contribution
(`heads`: mixed times its slice of W_o), probabilities, and the few weights that open a number without the network.

Knows networks through their taps, module paths and bricks, never their class. Refuses to know how the output was
chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from clearhead.decode.step import BOS, EOS, MASK, PAD
from clearhead.errors import UsageError
from clearhead.glass.interventions import attention_at, edits
from clearhead.glass.layout import Array
from clearhead.glass.passes import whole, with_end
from clearhead.glass.table import Lineage, shape_of
from clearhead.glass.trace import Provenance, Record, Trace
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.norm import RMSNorm
from clearhead.nn.shapes import Float, Tensor
from clearhead.nn.tap import listen

Print = Callable[[int], str]
"""The printed form of a token."""

Found = tuple[str, str, tuple[str, ...], Tensor]
"""Name, kind, axes, values."""

NEVER = [PAD, BOS, MASK]
"""What no decoder writes, however likely."""

NORM = ("weight", "bias", "running_mean", "running_variance")


@torch.inference_mode()
def trace_pass(
    network: EncoderDecoder,
    source: Sequence[int],
    output: Sequence[int],
    source_text: Print = str,
    target_text: Print = str,
    *,
    ended: bool = True,
    how: str = "given",
) -> Trace:
    """The trace of a source and an output, both without EOS; `ended` says whether the output's end is meant too."""
    read = [BOS, *output] if ended else [BOS, *output[:-1]]
    written = [*output, EOS] if ended else list(output)
    heard = heard_in(network, with_end(source), read)
    found = [*tapped(network, heard), *constants(network, heard), *closing(network, heard["logits"][0], written)]
    best = likeliest(heard["logits"][0])
    found += [
        (f"{n}_ids", "ids", ("position",), torch.tensor(ids)) for n, ids in sides(with_end(source), read, written, best)
    ]
    shared = [name for name, tensor in heard.items() if tensor.dim() == len(shape_of(name)[1])]
    lineage = Lineage([name for name, *_ in found], shared)
    records = {name: Record(name, axes, kind, frozen(x), lineage.of(name)) for name, kind, axes, x in found}
    provenance = Provenance(type(network).__name__, str(heard["logits"].dtype)[6:], how, ended, edits())
    tokens = (
        [source_text(i) for i in with_end(source)],
        [target_text(i) for i in read],
        [target_text(i) for i in written],
    )
    return Trace(records, *tokens, provenance, likeliest=[target_text(i) for i in best])


def sides(source: list[int], read: list[int], written: list[int], best: list[int]) -> list[tuple[str, list[int]]]:
    return [("source", source), ("target", read), ("written", written), ("likeliest", best)]


def likeliest(logits: Float[Tensor, "T V"]) -> list[int]:
    """At every position, among the words that may be written."""
    found: list[int] = logits.index_fill(1, torch.tensor(NEVER, device=logits.device), -torch.inf).argmax(1).tolist()
    return found


def heard_in(network: EncoderDecoder, source: list[int], target: list[int]) -> dict[str, Tensor]:
    """Everything the taps say in one pass."""
    heard: dict[str, Tensor] = {}

    def hear(name: str, tensor: Tensor) -> Tensor:
        heard[name] = tensor
        return tensor

    device = network.output_weight.device
    with whole(network), listen(network, hear):
        network.logits(network(torch.tensor([source], device=device), torch.tensor([target], device=device)))
    if not heard:
        raise UsageError("this network's taps say nothing", hint="trace the network itself, not a compiled copy of it")
    return heard


def tapped(network: EncoderDecoder, heard: dict[str, Tensor]) -> Iterator[Found]:
    """What was heard, batch dropped, and each head's contribution behind what it is made of."""
    for name, tensor in heard.items():
        kind, axes = shape_of(name)
        single = tensor[0] if tensor.dim() > len(axes) else tensor
        yield name, kind, axes, single.clone() if name.endswith(".positions") else single
        if name.endswith(".mixed"):
            path = name.removesuffix(".mixed")
            yield f"{path}.heads", *shape_of(f"{path}.heads"), contributions(network, path, single)


def contributions(network: EncoderDecoder, attention: str, mixed: Float[Tensor, "N Q U"]) -> Float[Tensor, "N Q D"]:
    """What each head adds to the stream: its slice of W_o applied to what it mixed."""
    return mixed @ head_maps(network, attention, mixed.shape[0]).transpose(1, 2)


def head_maps(network: EncoderDecoder, attention: str, heads: int) -> Float[Tensor, "N D U"]:
    """W_o, head by head."""
    return attention_at(network, attention).out.weight.unflatten(1, (heads, -1)).transpose(0, 1)


def constants(network: EncoderDecoder, heard: dict[str, Tensor]) -> Iterator[Found]:
    """Small weights, copied, so that scores and norms can be recomputed from the trace alone."""
    for name in heard:
        path = name.rsplit(".", 1)[0]
        if name.endswith(".pattern"):
            attention = attention_at(network, path)
            yield f"{path}.scale", "constant", (), torch.tensor(attention.scale, dtype=torch.float64)
            if attention.out.bias is not None:
                yield f"{path}.out_bias", "weight", ("channel",), attention.out.bias.clone()
        elif name.endswith("norm.out"):
            norm = network.get_submodule(path)
            yield f"{path}.eps", "constant", (), torch.tensor(norm.eps, dtype=torch.float64)
            yield f"{path}.centred", "constant", (), torch.tensor(not isinstance(norm, RMSNorm), dtype=torch.float64)
            for part in NORM:
                if getattr(norm, part, None) is not None:
                    yield f"{path}.{part}", "weight", ("channel",), getattr(norm, part).clone()


def closing(network: EncoderDecoder, logits: Float[Tensor, "T V"], written: list[int]) -> Iterator[Found]:
    """Probabilities, those of the words written, and the rows of the output table that made their logits."""
    ids = torch.tensor(written, device=logits.device)
    probabilities = logits.softmax(-1)
    yield "probabilities", *shape_of("probabilities"), probabilities
    picked = logits.gather(1, ids[:, None])[:, 0] - logits.logsumexp(-1)
    yield "written_log_probabilities", "log-probability", ("position",), picked
    yield "written_rows", "weight", ("position", "channel"), network.output_weight[ids]
    if network.output_bias is not None:
        yield "written_bias", "weight", ("position",), network.output_bias[ids]


def frozen(tensor: Tensor) -> Array:
    """The tensor's numbers, not to be written on."""
    values: Array = tensor.detach().cpu().numpy()
    values.flags.writeable = False
    return values
