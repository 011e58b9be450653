"""Faults for inputs of every kind: of their bytes, and of what the bytes mean.

An input is files by name. What is broken in a file is chosen by its name: lines and fields of
texts, values of JSON, types, shapes and numbers of arrays, records of models. Where a file has
checksums they are put right as often as not, so that damage reaches what stands behind them.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import PurePath
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from didyma.model.container import checksum

__all__ = ["Parts", "damaged"]

Parts: TypeAlias = dict[str, bytes]
Mutator: TypeAlias = Callable[[bytes, Random], bytes]

# What damages a text more cleverly than a random byte does.
NUMBERS = [
    *(b"0", b"-1", b"1e309", b"-1e-320", b"nan", b"inf", b"0x1p3", b"1_0", b"\xd9\xa1", b"1.5"),
    *(b"9" * 9, b"9" * 19, b"9" * 30, b"1" * 5000, b"9007199254740993", b"2147483647"),
    *(b"2147483648", b"4294967296", b"", b"999999999", b"00", b"-0", b"+1", b"1e", b".5", b"5."),
]
WORDS = [
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b" "),
    *(b'"', b"'", b",", b":", b"#", b"|", b"(", b")", b"{", b"}", b"[", b"]", b"null", b"_", b"-"),
    *("\u2028".encode(), "\u00a0".encode(), b"\x1c", b"\x0c", b"\x85", "e\u0301".encode()),
    *(b"qid:", b"x" * 300, b"x" * 70_000, b"..", b"/", b"%s", b"{}"),
    *NUMBERS,
]
SEPARATORS = [b"\t", b",", b" ", b":", b"|", b"|||", b"\n"]

# Values that are seldom expected; those in RAW stand for text that `json.dumps` does not write.
RAW = {
    "@deep": "[" * 3000 + "]" * 3000,
    "@digits": "9" * 5000,
    "@exponent": "1e400",
    "@twice": '{"id": 1, "id": 2}',
    "@half": '"\\ud800"',
    "@bare": "undefined",
}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf")),
    *(2**31 - 1, 2**31, 2**53 + 1, 2**63, 10**30, -(2**63), 10**9, 15_000),
    *("", "a", "0", "1", "nan", "\x00", "\u2028", "x" * 5000, "../x", "Pipeline", "SVMRanker"),
    *([], {}, [[]], [None], [0], [1.5, "a"], {"": {}}, {"text": None}, [[0]] * 3, list("abc")),
    *RAW,
]
ODD = [-1, 0, 1, 3, 7, 8, 100, 2**31 - 1, 2**31, 2**40, -(2**31), 2**63 - 1]
ODD_FLOATS = [float("nan"), float("inf"), -1e308, 1e-320, 0.5, -0.0]
TYPES = ["<i8", "<f8", "<f4", "<i4", "<u8", "|u1", "|b1", ">f8", "<f2", "|i1"]
SHAPES: list[tuple[int, ...]] = [
    (),
    (0,),
    (1,),
    (2**40,),
    (2**62, 4),
    (-1,),
    (3, 0),
    (2, 2),
    (1,) * 40,
]


def damaged(parts: Parts, random: Random) -> Parts:
    """The input with one to three faults."""
    found = dict(parts)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        name = random.choice(sorted(found))
        if len(found) > 1 and random.random() < 0.06:
            other = random.choice(sorted(found))
            found[name], found[other] = found[other], found[name]
            if other == name:
                del found[name]
            continue
        found[name] = _mutated(name, found[name], random)
    return _resealed(found) if random.random() < 0.6 else found


def _mutated(name: str, contents: bytes, random: Random) -> bytes:
    path = PurePath(name)
    if random.random() < 0.25:
        return _of_bytes(contents, random)
    if path.suffix == ".gz":
        with suppress(OSError, EOFError, zlib.error):
            inner = _mutated(path.stem, gzip.decompress(contents), random)
            return gzip.compress(inner, mtime=0)
    of_kind = KINDS.get(path.suffix, _of_table)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            contents = of_kind(contents, random)
    except Exception:  # what is damaged already may mean nothing
        contents = _of_bytes(contents, random)
    if of_kind is _of_table and random.random() < 0.05:
        contents = gzip.compress(contents, mtime=0)
        return contents if random.random() < 0.5 else _of_bytes(contents, random)
    return contents


def _of_bytes(contents: bytes, random: Random) -> bytes:
    at = random.randrange(len(contents) + 1)
    stop = min(len(contents), at + random.choice([1, 1, 2, 8, 64]))
    match random.randrange(7):
        case 0:  # another byte
            return contents[:at] + bytes([random.randrange(256)]) + contents[at + 1 :]
        case 1:  # a bit
            flipped = bytes(byte ^ 1 << random.randrange(8) for byte in contents[at : at + 1])
            return contents[:at] + flipped + contents[at + 1 :]
        case 2:
            return contents[:at] + contents[stop:]
        case 3:
            return contents[:stop] + contents[at:]
        case 4:
            return contents[:at]
        case 5:
            return contents[:at] + random.choice(WORDS) + contents[at:]
        case _:
            return contents[:at] + random.choice(WORDS) + contents[stop:]


def _of_table(contents: bytes, random: Random) -> bytes:
    """A text of lines and fields: one of them, or a number, is another."""
    if random.random() < 0.3 and (found := [*re.finditer(rb"-?\d+(\.\d+)?", contents)]):
        one = random.choice(found)
        return contents[: one.start()] + random.choice(NUMBERS) + contents[one.end() :]
    present = [separator for separator in SEPARATORS if separator in contents]
    separator = random.choice(present or [b"\n"])
    return separator.join(_of_list(contents.split(separator), random, random.choice(WORDS)))


def _of_list(items: list[Any], random: Random, other: Any) -> list[Any]:
    at, to = (random.randrange(len(items)) for _ in range(2))
    match random.randrange(6):
        case 0:
            items[at] = other
        case 1:
            del items[at]
        case 2:
            items.insert(to, items[at])
        case 3:
            items[at], items[to] = items[to], items[at]
        case 4:
            items.insert(at, other)
        case 5:
            items[at:at] = [items[at]] * random.choice([2, 300])
    return items


def _of_json_lines(contents: bytes, random: Random) -> bytes:
    lines = contents.split(b"\n")
    if random.random() < 0.2:
        return b"\n".join(_of_list(lines, random, random.choice(WORDS)))
    at = random.choice([n for n, line in enumerate(lines) if line.strip()])
    lines[at] = _of_json(lines[at], random)
    return b"\n".join(lines)


def _of_json(contents: bytes, random: Random) -> bytes:
    text = json.dumps(_of_value(json.loads(contents), random), ensure_ascii=random.random() < 0.5)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode(errors="surrogatepass")


def _of_value(value: Any, random: Random) -> Any:
    """Another value somewhere in a value of JSON."""
    around: list[Any] = []

    def visit(own: Any) -> None:
        if isinstance(own, (dict, list)) and own:
            around.append(own)
            for inner in own.values() if isinstance(own, dict) else own:
                visit(inner)

    visit(value)
    if not around or random.random() < 0.02:
        return random.choice(VALUES)
    own = random.choice(around)
    other = random.choice(VALUES)
    if random.random() < 0.2:
        donor = random.choice(around)
        other = random.choice([*donor.values()] if isinstance(donor, dict) else donor)
        other = json.loads(json.dumps(other))  # a value is not part of itself
    if isinstance(own, list):
        _of_list(own, random, other)
        return value
    key = random.choice(sorted(own))
    match random.randrange(4):
        case 0:
            del own[key]
        case 1:
            own[random.choice(["", "id", "text", "label", f"{key}s", key.upper()])] = own.pop(key)
        case _:
            own[key] = _nudged(own[key], random) if random.random() < 0.3 else other
    return value


def _nudged(value: Any, random: Random) -> Any:
    """A value that is nearly the same."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float)):
        return random.choice([value + 1, value - 1, -value, value * 1000, float(value), str(value)])
    if isinstance(value, str):
        return random.choice([value * 2, value[:-1], value.upper(), [value], f" {value}"])
    return [value] if isinstance(value, dict) else {"0": value}


def _of_array(array: NDArray[Any], random: Random) -> NDArray[Any]:
    """Another number, type or shape."""
    match random.randrange(8):
        case 0:
            return array.astype(random.choice(TYPES))
        case 1:
            return array[: random.randrange(len(array) + 1)] if array.ndim else array[None]
        case 2:
            return random.choice([array[None], array.reshape(-1), array.T, array[:0]])
        case 3:
            return np.concatenate([array, array])
        case 4 if array.ndim:
            return array[random.sample(range(len(array)), len(array))]
        case _:
            changed = array.copy()
            if changed.size:
                at = random.randrange(changed.size)
                odd = ODD + ODD_FLOATS if array.dtype.kind == "f" else ODD
                np.put(changed, at, np.array(random.choice(odd)).astype(array.dtype))
            return changed


def _read_npy(contents: bytes) -> NDArray[Any]:
    found: NDArray[Any] = np.load(io.BytesIO(contents), allow_pickle=False)
    return found


def _npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    return file.getvalue()


def _of_npy(contents: bytes, random: Random) -> bytes:
    array = _read_npy(contents)
    if random.random() < 0.3:  # a header that does not tell what follows
        file = io.BytesIO()
        described = {
            "descr": random.choice([array.dtype.str, *TYPES, "|O", "<U5", "<M8[s]"]),
            "fortran_order": random.random() < 0.3,
            "shape": random.choice([array.shape, *SHAPES]),
        }
        np.lib.format.write_array_header_1_0(file, described)
        return file.getvalue() + array.tobytes()
    return _npy(_of_array(array, random))


def _of_npz(contents: bytes, random: Random) -> bytes:
    """An archive of arrays; one that is called record holds JSON."""
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(sorted(members))
    own = members.pop(name)
    match random.randrange(8):
        case 0:
            pass
        case 1:
            members[random.choice(["X.npy", "y.npy", "qid.npy", "x", "../y.npy"])] = own
        case _ if name == "record.npy":
            changed = _of_json(_read_npy(own).tobytes(), random)
            members[name] = _npy(np.frombuffer(changed, np.uint8))
        case _:
            members[name] = _of_npy(own, random)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, own in members.items():
            archive.writestr(name, own)
    return file.getvalue()


def _of_safetensors(contents: bytes, random: Random) -> bytes:
    """A model: a value of its record, or an array, and the checksum of what it is then."""
    size = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + size])
    if random.random() < 0.1:
        changed = json.dumps(_of_value(header, random)).encode()
        return len(changed).to_bytes(8, "little") + changed + contents[8 + size :]
    texts, tensors = header["__metadata__"], load(contents)
    texts.pop("checksum", None)
    name = random.choice(sorted(tensors)) if tensors else None
    if name is None or random.random() < 0.5:
        # What a record says is worth more tries than what was learned along the way.
        text = (
            random.choice(["model"] * 8 + sorted(texts))
            if "model" in texts
            else random.choice(sorted(texts))
        )
        texts[text] = _of_json(texts[text].encode(), random).decode(errors="replace")
    elif random.random() < 0.1:
        tensors[f"{name}s"] = tensors.pop(name)
    else:
        tensors[name] = np.ascontiguousarray(_of_array(tensors[name], random))
    return save(tensors, {**texts, "checksum": checksum(texts, tensors)})


KINDS: dict[str, Mutator] = {
    ".json": _of_json,
    ".jsonl": _of_json_lines,
    ".npy": _of_npy,
    ".npz": _of_npz,
    ".safetensors": _of_safetensors,
    ".parquet": _of_bytes,
}


def _resealed(parts: Parts) -> Parts:
    """The same with manifests that tell sizes, types and checksums of the files as they are."""
    for name in [name for name in parts if PurePath(name).name == "manifest.json"]:
        with suppress(Exception):
            manifest = json.loads(parts[name])
            for file, about in manifest["files"].items():
                contents = parts[str(PurePath(name).with_name(file))]
                about["sha256"] = sha256(contents).hexdigest()
                if "bytes" in about:
                    about["bytes"] = len(contents)
                if "shape" in about:
                    array = _read_npy(contents)
                    about |= {"shape": list(array.shape), "dtype": array.dtype.str}
            parts = {**parts, name: json.dumps(manifest).encode()}
    return parts
