"""The data of a page: what it holds is what the trace holds; what does not fit is named; nothing in it is markup."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clearhead.explore import document as rooms
from clearhead.explore.document import BUDGET, FORMAT, arrays, document, texts
from clearhead.explore.page import page, script_json, static
from clearhead.verbs.explain import Explained

KINDS: dict[str, dict[str, Any]] = {
    "sinusoidal": {"positions": "sinusoidal"},
    "rotary, shared keys": {"positions": "rotary", "n_kv_heads": 1},
    "post-norm alibi": {"positions": "alibi", "norm_order": "post"},
    "recurrent": {"kind": "recurrent"},
    "convolutional": {"kind": "convolutional"},
}
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


def unpacked(data: dict[str, Any], name: str) -> np.ndarray:
    """A record as the page reads it: from the block, by its place, type and shape."""
    block, entry = zlib.decompress(base64.b64decode(data["numbers"])), data["records"][name]
    count = math.prod(entry["shape"])
    return np.frombuffer(block, DTYPES[entry["dtype"]], count, entry["at"]).reshape(entry["shape"])


@pytest.fixture(params=KINDS)
def found(request: pytest.FixtureRequest, make_explained: Callable[..., Explained]) -> Explained:
    return make_explained(**KINDS[request.param])


def test_every_record_is_the_trace_s_bit_by_bit(found: Explained) -> None:
    data = json.loads(script_json(document(found)))
    assert data["format"] == FORMAT and data["absent"] == []
    assert {f"{path}.pattern" for path in found.trace.attentions()} <= set(data["records"])
    for name, entry in data["records"].items():
        record = arrays(found)[name]
        assert np.array_equal(unpacked(data, name), record.values), name
        assert unpacked(data, name).dtype == record.values.dtype and entry["at"] % 8 == 0
        assert (entry["axes"], entry["kind"]) == (list(record.axes), record.kind)
        assert entry["computed_from"] == list(record.computed_from)


def test_the_words_and_their_chances(found: Explained) -> None:
    data = document(found)
    trace = found.trace
    assert data["tokens"] == {"source": trace.source, "target": trace.target, "written": trace.written}
    for t, (choice, written) in enumerate(zip(data["choices"], trace.ids("written"), strict=True)):
        row = trace["probabilities"][t].astype(float)
        listed = [word["id"] for word in choice["likeliest"]]
        assert written in listed and len(set(listed)) == len(listed)
        assert [word["probability"] for word in choice["likeliest"]] == pytest.approx(row[listed].tolist())
        assert sum(row[listed]) + choice["rest"] == pytest.approx(1, abs=1e-5), "all bars together are 1"
        assert choice["others"] == len(row) - len(listed)


def test_every_listed_word_s_logit_is_the_sum_of_its_parts(found: Explained) -> None:
    """Of every word listed, not only of the one written: embedding, heads, feed-forward parts and the norms' own."""
    data = document(found)
    if found.facts["kind"] == "recurrent":
        assert data["direct"] is None and "direct" not in data["records"], "no stream, no parts"
        return
    parts, values = data["direct"]["labels"][0], unpacked(data, "direct").astype(float)
    logits = np.array([[word["logit"] for word in choice["likeliest"]] for choice in data["choices"]])
    assert values.shape == (len(parts), *logits.shape) and logits.shape[1] > 1
    np.testing.assert_allclose(values.sum(0), logits, atol=1e-4)
    assert sum(".cross_attention.heads[" in part for part in parts) == 2, "one for each head of the layer"
    assert data["direct"]["gap"] < 1e-4 and data["direct"]["caveat"]


def test_places_that_are_not_the_likeliest_are_named(found: Explained) -> None:
    """A search keeps words for what comes after them; each such place has both words, and the likeliest is listed."""
    data = json.loads(script_json(document(found)))
    positions = found.trace.provenance.parity.not_likeliest
    assert [place["position"] for place in data["likelier"]] == list(positions)
    for place in data["likelier"]:
        words = {word["id"]: word for word in data["choices"][place["position"]]["likeliest"]}
        assert words[place["likeliest_id"]]["text"] == place["likeliest"]
        assert words[place["likeliest_id"]]["probability"] == place["likeliest_probability"] > place["probability"]


def test_the_table_stands_beside_the_attention(found: Explained) -> None:
    data = json.loads(script_json(document(found)))
    left_out = data["lenses"]["left_out"]
    np.testing.assert_allclose(np.array(left_out["values"], float), found.left_out.values)
    assert left_out["prefix"][0] == [None] * len(found.trace.target), "nothing was read before the first word"
    across = [a["path"] for a in data["attentions"] if a["across"]]
    assert across == list(found.agreement.labels[0]) == data["lenses"]["agreement"]["labels"][0]
    for lens in data["lenses"].values():
        assert lens["method"] and lens["caveat"] and lens["control"]["what"] and lens["cost"]["seconds"] >= 0


def test_the_search_and_its_marked_path(make_explained: Callable[..., Explained]) -> None:
    for beam in (1, 3):
        data = document(make_explained(beam=beam))
        search, tokens = data["search"], data["tokens"]["written"]
        spelled = [search["nodes"][at]["text"] for at in search["path"]]
        assert search["beam"] == (3 if beam == 3 else 4)
        assert search["same"] == (spelled == list(tokens))
        assert beam == 1 or search["same"]
        if search["same"] and beam == 3:
            total = search["nodes"][search["path"][-1]]["log_probability"]
            assert total == pytest.approx(data["log_probability"], abs=1e-4)


def test_a_page_has_a_budget_and_names_what_did_not_fit(make_explained: Callable[..., Explained]) -> None:
    found = make_explained()
    whole = document(found)
    for budget in (0, 500, 2_000, 10_000):
        data = document(found, budget)
        block = zlib.decompress(base64.b64decode(data["numbers"]))
        assert len(block) <= budget + 8 * len(data["records"])
        assert sorted([*data["records"], *data["absent"]]) == sorted(whole["records"])
        assert not set(data["records"]) & set(data["absent"])
        for name in data["records"]:
            assert np.array_equal(unpacked(data, name), arrays(found)[name].values)
    first = document(found, 20_000)
    assert all(f"{path}.pattern" in first["records"] for path in found.trace.attentions()), "attention comes first"
    assert first["absent"]
    assert BUDGET * 4 / 3 + len(static("app.js")) + len(static("app.css")) < 2_000_000


def test_a_long_text_leaves_less_room_for_records(
    make_explained: Callable[..., Explained], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lenses and search are whole; what they take beyond their share is taken from the numbers, down to a least."""
    found = make_explained()
    size = len(zlib.decompress(base64.b64decode(document(found)["numbers"])))
    told = len(json.dumps(texts(found), ensure_ascii=False, separators=(",", ":")))
    monkeypatch.setattr(rooms, "BUDGET", size)
    monkeypatch.setattr(rooms, "LEAST", 1_000)
    for allowed in (told, told - 4_000, 0):
        monkeypatch.setattr(rooms, "TEXTS", allowed)
        data = document(found, size)
        held = len(zlib.decompress(base64.b64decode(data["numbers"])))
        assert held <= max(1_000, size - (told - allowed) * 3 // 4) + 8 * len(data["records"])
        assert bool(data["absent"]) == (allowed < told) and data["lenses"]["left_out"]["values"]


def test_lenses_and_search_have_nine_digits(make_explained: Callable[..., Explained]) -> None:
    found = make_explained()
    data = document(found)
    shown_values = np.array(data["lenses"]["left_out"]["values"]).flat
    for value, shown in zip(found.left_out.values.flat, shown_values, strict=True):
        assert shown == pytest.approx(value, rel=1e-8) and shown == float(f"{shown:.9g}")
    for node, shown in zip(found.search.nodes, data["search"]["nodes"], strict=True):
        assert shown["log_probability"] == pytest.approx(node.log_probability, rel=1e-8)


def test_cross_attention_comes_first(make_explained: Callable[..., Explained]) -> None:
    """Where there is room for little, it is for what the translation read from the source."""
    names = [name for name in document(make_explained())["records"] if name.endswith(".pattern")]
    assert "cross_attention" in names[0] and not any("cross_attention" in name for name in names[1:])


def test_equal_numbers_are_held_once(make_explained: Callable[..., Explained]) -> None:
    data = document(make_explained())
    ends = "encoder.layers.0.feedforward_residual.after", "encoder.layers.1.attention_residual.before"
    assert len({data["records"][name]["at"] for name in ends}) == 1


def test_all_words_are_only_text(make_explained: Callable[..., Explained]) -> None:
    found = make_explained()
    assert {"</script>", "<!--<script>", "&amp;\u2028"} <= set(found.trace.source)
    made = page(document(found))
    head, _, rest = made.partition('<script type="application/json" id="clearhead-data">')
    data, _, tail = rest.partition("</script>")
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data)["tokens"]["source"] == list(found.trace.source)
    assert tail.count("</script>") == 1 and made.count("<script") == 2
    assert "<title>the woman ate the &lt;/script&gt; raccoon" in head
    assert "default-src 'none'" in head


def test_the_page_fetches_nothing(make_explained: Callable[..., Explained]) -> None:
    made = page(document(make_explained()))
    addresses = set(re.findall(r"https?://[\w.]+", made))
    assert addresses == {"http://www.w3.org", "https://svelte.dev"}, "namespaces, and the texts of errors"
    for word in ("@import", "url(", "<link", "<img", "<iframe"):
        assert word not in made
    assert len(made) < 400_000


def test_numbers_json_does_not_know_are_null(make_explained: Callable[..., Explained]) -> None:
    text = script_json(document(make_explained()) | {"numbers": ""})
    assert "NaN" not in text.replace("isNaN", "") and "Infinity" not in text
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json({"x": math.nan})
