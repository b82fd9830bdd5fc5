"""Ways to spoil a model folder. Not a test: test_mutated_models.py runs them, fuzz_loaders.py starts from them.

A folder is a dictionary from name to bytes. A mutation changes it; most are signed again, so that the manifest fits
the spoilt file and the checks behind it are reached.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
from collections.abc import Callable
from typing import Any

Files = dict[str, bytes]
Mutation = Callable[[Files, random.Random], None]

WEIGHTS, CONFIG, TOKENIZER, MANIFEST = "model.safetensors", "config.toml", "tokenizer.json", "manifest.json"
FOREIGN = [
    b"",
    b"\0",
    b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",  # a pickle
    b"PK\x03\x04" + b"\0" * 60,
    b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 45080\n",
    b"<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>",
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"a = " + b"[" * 50_000,
    b"a = " + b"9" * 5_000,
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\0}\0",
    b"null",
    b"{}",
    b"[]",
]
NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 63, 255, 256, 257, 1000, 65_535, 10**6, 10**6 + 1, 10**9, 2**31, 2**40, 2**53),
    *(2**63 - 1, 2**63, 2**64, 10**30, 10**400, -(2**63), 0.0, 0.5, 1.0, -0.5, 1e308, 1e-308),
]
ODD: list[Any] = ["", "a", "x" * 10_000, "\0", "../../etc/passwd", True, False, [], [1], {}, {"a": 1}, ["a"] * 1000]
TOML_ODD = ["nan", "inf", "-inf", "1979-05-27", "'''x'''", "0xffffffffffffffffff", "[[1]]", "{a = 1}", "9" * 4000]


def sign(files: Files) -> None:
    """The manifest fits the files again, whatever they are; a vocabulary that can be read is the one named."""
    about = {"kind": "model", "steps": 12, "tokenizer": hashlib.sha256(files.get(TOKENIZER, b"")).hexdigest()}
    entries = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
        if name != MANIFEST
    }
    files[MANIFEST] = json.dumps({"format": 1, "about": about, "files": entries}).encode()


def pick(files: Files, chance: random.Random) -> str:
    return chance.choice(sorted(files))


# --- any file, any bytes ------------------------------------------------------------------------------------------


def flip_bits(files: Files, chance: random.Random) -> None:
    name = pick(files, chance)
    data = bytearray(files[name])
    for _ in range(chance.choice([1, 1, 2, 10])):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    files[name] = bytes(data)


def cut_short(files: Files, chance: random.Random) -> None:
    name = pick(files, chance)
    files[name] = files[name][: chance.randint(0, len(files[name]))]


def insert(files: Files, chance: random.Random) -> None:
    name = pick(files, chance)
    at = chance.randint(0, len(files[name]))
    files[name] = files[name][:at] + chance.randbytes(chance.choice([1, 2, 8, 100])) + files[name][at:]


def take_out(files: Files, chance: random.Random) -> None:
    name = pick(files, chance)
    at = chance.randint(0, len(files[name]))
    files[name] = files[name][:at] + files[name][at + chance.choice([1, 2, 8, 100]) :]


def copy_within(files: Files, chance: random.Random) -> None:
    name = pick(files, chance)
    data = files[name]
    start, at = chance.randint(0, len(data)), chance.randint(0, len(data))
    files[name] = data[:at] + data[start : start + 50] + data[at:]


def foreign(files: Files, chance: random.Random) -> None:
    files[pick(files, chance)] = chance.choice(FOREIGN)


def swap(files: Files, chance: random.Random) -> None:
    one, other = pick(files, chance), pick(files, chance)
    files[one], files[other] = files[other], files[one]


def lose(files: Files, chance: random.Random) -> None:
    del files[pick(files, chance)]


# --- the weights' header ------------------------------------------------------------------------------------------


def header_of(files: Files) -> tuple[dict[str, Any], bytes]:
    data = files[WEIGHTS]
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def put_header(files: Files, header: Any, data: bytes, length: int | None = None) -> None:
    raw = json.dumps(header).encode()
    files[WEIGHTS] = struct.pack("<Q", len(raw) if length is None else length) + raw + data


def header_field(files: Files, chance: random.Random) -> None:
    header, data = header_of(files)
    entry = header[chance.choice(sorted(set(header) - {"__metadata__"}))]
    field = chance.choice(["dtype", "shape", "data_offsets", "new"])
    types = ["F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "U64", "F8_E4M3", "f32", "", None]
    if field == "dtype":
        entry["dtype"] = chance.choice(types)
    elif chance.random() < 0.3 or field == "new":
        entry[field] = chance.choice(NUMBERS[:20] + ODD)
    else:
        entry[field] = [chance.choice(NUMBERS[:22]) for _ in range(chance.choice([0, 1, 2, 2, 3, 20]))]
    put_header(files, header, data)


def header_names(files: Files, chance: random.Random) -> None:
    header, data = header_of(files)
    name = chance.choice(sorted(set(header) - {"__metadata__"}))
    new = chance.choice(["", "x", name + "x", "__metadata__", "../x", "n" * 600, "\ud800", "\0", name.upper()])
    header[new] = header.pop(name)
    put_header(files, header, data)


def header_tensors(files: Files, chance: random.Random) -> None:
    """Fewer tensors, or more; the file's length fits, so that only the model can tell."""
    header, data = header_of(files)
    last = max((n for n in header if n != "__metadata__"), key=lambda n: header[n]["data_offsets"][1])
    if chance.random() < 0.5:
        start, _ = header.pop(last)["data_offsets"]
        data = data[:start]
    for extra in range(chance.choice([0, 1, 50])):
        size = chance.choice([0, 1, 64])
        header[f"extra.{extra}"] = {"dtype": "F32", "shape": [size], "data_offsets": [len(data), len(data) + 4 * size]}
        data += b"\0" * 4 * size
    put_header(files, header, data)


def header_length(files: Files, chance: random.Random) -> None:
    header, data = header_of(files)
    put_header(files, header, data, chance.choice([0, 1, 7, 8, 10**7, 10**7 + 1, 10**9, 2**32, 2**63, 2**64 - 1]))


def header_reshaped(files: Files, chance: random.Random) -> None:
    """The same numbers in another shape."""
    header, data = header_of(files)
    entry = header[chance.choice(sorted(set(header) - {"__metadata__"}))]
    entry["shape"] = chance.choice([entry["shape"][::-1], [1, *entry["shape"]], [*entry["shape"], 1]])
    put_header(files, header, data)


def bad_numbers(files: Files, chance: random.Random) -> None:
    header, data = header_of(files)
    at = 4 * chance.randrange(len(data) // 4)
    value = struct.pack("<I", chance.choice([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 1]))
    put_header(files, header, data[:at] + value + data[at + 4 :])


# --- the settings -------------------------------------------------------------------------------------------------


def as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(v)}" for key, v in value.items()) + "}"
    return repr(value) if not isinstance(value, list) else "[" + ", ".join(map(as_toml, value)) + "]"


def setting(files: Files, chance: random.Random) -> None:
    """Any value of config.toml becomes another."""
    lines = files[CONFIG].decode("utf-8", "replace").split("\n")
    places = [number for number, line in enumerate(lines) if " = " in line]
    if places:
        number = chance.choice(places)
        value = chance.choice([as_toml(v) for v in NUMBERS + ODD] + TOML_ODD + ['"rotary"', '"learned"', '"seq2seq"'])
        lines[number] = re.sub(r"= .*", lambda _: f"= {value}", lines[number])
    files[CONFIG] = "\n".join(lines).encode()


def shape_setting(files: Files, chance: random.Random) -> None:
    """A value that decides shapes: what is asked for must not be given memory."""
    names = ["d_model", "d_ff", "n_heads", "n_kv_heads", "d_head", "d_value", "encoder_layers", "decoder_layers"]
    kinds = ["max_len", "positions", "tie", "kind", "norm", "activation", "bias", "shared", "level"]
    values = {
        "positions": ["sinusoidal", "learned", "relative-shaw", "relative-t5", "rotary", "alibi", "none"],
        "tie": ["all", "target", "none"],
        "kind": ["seq2seq", "recurrent", "convolutional"],
        "norm": ["layer", "rms", "batch"],
        "activation": ["relu", "swiglu"],
        "bias": [True, False],
        "shared": [True, False],
        "level": ["word", "character", "sentence", "subword"],
    }
    text = files[CONFIG].decode("utf-8", "replace")
    for _ in range(chance.choice([1, 1, 2, 3])):
        name = chance.choice(names + kinds)
        value = as_toml(chance.choice(values.get(name, NUMBERS[:22])))
        if re.search(rf"(?m)^{name} = ", text):
            text = re.sub(rf"(?m)^{name} = .*$", lambda _, n=name, v=value: f"{n} = {v}", text)
        else:
            text = text.replace("[model]\n", f"[model]\n{name} = {value}\n")
    files[CONFIG] = text.encode()


def unknown_setting(files: Files, chance: random.Random) -> None:
    line = chance.choice(["_target_ = 'os.system'", "dmodel = 4", "[modl]", "[model.x]", "trust_remote_code = true"])
    files[CONFIG] = files[CONFIG].replace(b"[model]\n", b"[model]\n" + line.encode() + b"\n")


# --- the vocabulary -----------------------------------------------------------------------------------------------


def vocabulary(files: Files, chance: random.Random) -> None:
    try:
        content = json.loads(files[TOKENIZER])
        place, key = content, chance.choice(sorted(content))
        while isinstance(place[key], dict | list) and place[key] and chance.random() < 0.7:
            place = place[key]
            key = chance.choice(sorted(place)) if isinstance(place, dict) else chance.randrange(len(place))
    except (ValueError, KeyError, TypeError):
        return
    act = chance.random()
    if act < 0.6:
        place[key] = chance.choice([*NUMBERS, *ODD, None, "\ud800", [0, 0], [10**9, 1]])
    elif isinstance(place, list):
        place.insert(key, place[chance.randrange(len(place))]) if act < 0.8 else place.pop(key)
    elif act < 0.8:
        del place[key]
    else:
        place["pattern"] = "(a+)+$"
    files[TOKENIZER] = json.dumps(content).encode()


# --- the manifest -------------------------------------------------------------------------------------------------


def manifest(files: Files, chance: random.Random) -> None:
    """Spoilt after signing."""
    content = json.loads(files[MANIFEST])
    entries = content["files"]
    name = chance.choice(sorted(entries))
    acts: list[Callable[[], Any]] = [
        lambda: entries.update(
            {chance.choice(["../x", "/etc/passwd", "..", "a/b", "n" * 300, "", "\0"]): entries[name]}
        ),
        lambda: entries.pop(name),
        lambda: entries[name].update(size=chance.choice([*NUMBERS, None, "1"])),
        lambda: entries[name].update(sha256=chance.choice(["", "0" * 64, "g" * 64, None, 1])),
        lambda: content.update(format=chance.choice([*NUMBERS, None, "1"])),
        lambda: content.update(about=chance.choice([[], None, {"tokenizer": 1}, {"steps": [1]}, {"a": "b" * 10_000}])),
        lambda: content.update(more=1),
        lambda: entries.update({f"file-{n}": entries[name] for n in range(1000)}),
    ]
    chance.choice(acts)()
    files[MANIFEST] = json.dumps(content).encode()


RAW: list[Mutation] = [flip_bits, cut_short, insert, take_out, copy_within, foreign, swap, lose]
SIGNED: list[Mutation] = [
    *RAW,
    *(header_field, header_names, header_tensors, header_length, header_reshaped, bad_numbers),
    *(setting, shape_setting, shape_setting, unknown_setting, vocabulary, vocabulary),
]


def spoil(files: Files, chance: random.Random) -> tuple[Files, str]:
    """A spoilt copy, and what was done to it."""
    files = dict(files)
    kind = chance.random()
    if kind < 0.15:
        chosen = [chance.choice(RAW)]
        chosen[0](files, chance)
    elif kind < 0.25:
        chosen = [manifest]
        manifest(files, chance)
    else:
        files.pop(MANIFEST)
        chosen = [chance.choice(SIGNED) for _ in range(chance.choice([1, 1, 1, 2]))]
        for mutation in chosen:
            try:
                mutation(files, chance)
            except (KeyError, ValueError, IndexError, struct.error, RecursionError, TypeError):
                continue  # the mutation before left nothing that this one knows how to spoil
        sign(files)
    return files, " + ".join(mutation.__name__ for mutation in chosen)
