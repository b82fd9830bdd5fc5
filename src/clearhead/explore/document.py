"""The data of a page: JSON, and the numbers of the trace as they are, in one block of base64.

    records   name → axes, kind, shape, dtype, place in the block, computed_from; of the trace, and `direct`
    numbers   little-endian float32 (or float64, int64) as recorded, deflated

Records with equal bytes share their place: the stream before a layer is the stream behind the one below. A page has a
budget, so records come in the order in which the journey needs them; what no longer fits is named in `absent`. Lenses,
choices and the search are always whole; for a very long text they leave less room for records.

Knows traces and lenses. Refuses to know HTML and colours.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from clearhead.glass.findings import Finding
from clearhead.glass.layout import NAMES, Array
from clearhead.glass.trace import Record
from clearhead.verbs.explain import Explained, Search

FORMAT = "clearhead page 1"
BUDGET = 1_350_000
"""Bytes of numbers, before deflating: with base64, the program and the texts about 1.9 MB."""
TEXTS = 100_000
"""What all other data may take before the numbers have to make room; of an ordinary sentence it is less."""
LEAST = 900_000
"""Bytes that records may take beside the longest text: the attentions come first."""

ORDER = (
    r".+_ids|written_.*|.+\.scale|.+\.eps|.+\.centred",
    r".+\.cross_attention\.pattern|decoder\.attention\.pattern",
    r".+\.pattern",
    r".+_embedding\..+",
    r"encoder\.layers\.0\..+_attention\.(query|key|scores)",
    r".+\.cross_attention\.scores",
    r"encoder\.layers\.0\..+_attention\.(value|mixed)",
    r"encoder\.layers\.0\..*norm\.(in|out|weight|bias|running_.+)|encoder\.layers\.0\..+_residual\.(before|added|after)",
    r"encoder\.layers\.0\.feedforward\.hidden",
    r"direct",
    r".+\.scores|.+\.bias",
    r".+attention\.(query|key)",
    r".+\.norm\.(in|out|weight|bias|running_.+)|.+_residual\.(before|added|after)",
    r".+\.feedforward\.hidden",
    r".+attention\.(value|mixed)|memory|hidden",
    r".+attention\.(heads|out_bias|out)|.+\.feedforward\.out",
)
"""What the journey asks for, first things first. Everything else stays in the .safetensors file."""
NEVER = re.compile(r"logits|probabilities")
"""As large as the vocabulary: `choices` has the likeliest words and the rest."""


def document(found: Explained, budget: int = BUDGET) -> dict[str, Any]:
    """Everything a page shows."""
    data = texts(found)
    excess = len(json.dumps(data, ensure_ascii=False, separators=(",", ":"))) - TEXTS
    records, numbers, absent = packed(arrays(found), min(budget, max(LEAST, BUDGET - max(0, excess) * 3 // 4)))
    encoded = base64.b64encode(zlib.compress(numbers, 6)).decode("ascii")
    return {"format": FORMAT} | data | {"records": records, "absent": absent, "numbers": encoded}


def texts(found: Explained) -> dict[str, Any]:
    """All that is not a record of the trace."""
    trace = found.trace
    across = found.agreement.labels[0] or ()
    return {
        "text": found.text,
        "translation": found.translation,
        "facts": found.facts,
        "provenance": asdict(trace.provenance),
        "log_probability": trace.log_probability,
        "tokens": {"source": trace.source, "target": trace.target, "written": trace.written},
        "attentions": [{"path": path, "across": path in across} for path in trace.attentions()],
        "choices": [asdict(choice) for choice in found.choices],
        "direct": found.direct and about(found.direct) | {"gap": found.direct.gap},
        "likelier": [asdict(place) for place in trace.likelier()],
        "neighbours": [[{"text": text, "cosine": cosine} for text, cosine in row] for row in found.neighbours],
        "search": search(found.search),
        "lenses": {
            "left_out": lens(found.left_out) | {"prefix": plain(found.left_out.prefix)},
            "share": lens(found.share),
            "agreement": lens(found.agreement) | {"overall": plain(np.array(found.agreement.overall))},
        },
    }


def search(found: Search) -> dict[str, Any]:
    nodes = [asdict(node) for node in found.nodes]
    for node in nodes:
        for name in ("log_probability", "rank", "needed"):
            node[name] = None if node[name] is None else nine(node[name])
    return asdict(found) | {"nodes": nodes}


def lens(finding: Finding) -> dict[str, Any]:
    """Values with method, cost, control and caveat; numbers in full."""
    return about(finding) | {"values": plain(finding.values)}


def about(finding: Finding) -> dict[str, Any]:
    said = {name: getattr(finding, name) for name in ("method", "axes", "labels", "caveat", "edits")}
    control = {"what": finding.control.what, "value": plain(np.array(finding.control.value))}
    return said | {"cost": asdict(finding.cost), "control": control}


def plain(values: Array) -> Any:
    """Nested lists; JSON knows no nan, which is null here."""
    if values.ndim:
        return [plain(np.asarray(row)) for row in values]
    number = float(values)
    return nine(number) if math.isfinite(number) else None


def nine(number: float) -> float:
    """Nine digits that count: what float32, in which the model computes, can tell apart."""
    return float(f"{number:.9g}")


def arrays(found: Explained) -> dict[str, Record]:
    """What may go into the block: the records of the trace, and the logits' direct contributions."""
    records = {name: found.trace.record(name) for name in found.trace}
    if found.direct is None:
        return records
    values = found.direct.values.astype(np.float32)
    return records | {"direct": Record("direct", found.direct.axes, "contribution", values, ())}


def packed(arrays: Mapping[str, Record], budget: int) -> tuple[dict[str, dict[str, Any]], bytes, list[str]]:
    """Records and their bytes, and the names that did not fit."""
    records: dict[str, dict[str, Any]] = {}
    places: dict[bytes, int] = {}
    block, absent = bytearray(), []
    for name in wanted(arrays):
        values = arrays[name].values
        data = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        if data not in places:
            if len(block) + len(data) > budget:
                absent.append(name)
                continue
            places[data] = len(block)
            block += data + bytes(-len(data) % 8)
        records[name] = entry(arrays[name], places[data])
    return records, bytes(block), absent


def entry(record: Record, place: int) -> dict[str, Any]:
    shape, dtype = list(record.values.shape), NAMES[record.values.dtype]
    said = {"axes": record.axes, "kind": record.kind, "computed_from": record.computed_from}
    return said | {"shape": shape, "dtype": dtype, "at": place}


def wanted(names: Iterable[str]) -> Iterator[str]:
    """The names the journey can use, in the order in which it needs them."""
    given: set[str] = set()
    for pattern in ORDER:
        for name in names:
            if name not in given and re.fullmatch(pattern, name) and not NEVER.fullmatch(name):
                given.add(name)
                yield name
