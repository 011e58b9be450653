"""What a lists folder must hold: the numbers of its rows and lists, its columns, and its files."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from didyma.data import Features
from didyma.errors import DataError
from didyma.formats.text import WIDEST, parse_json

__all__ = ["MANIFEST", "NUMBERS", "File", "Manifest", "digest"]

MANIFEST = "manifest.json"
NUMBERS = ("labels", "scores", "losses")  # of rows, where they are known
FORMAT, VERSION = "didyma lists", 1
FLOATS, WIDE, INTEGERS = ("<f4", "<f8"), ("<i8",), ("<i4", "<i8")
TEXTS = tuple(f"<U{width}" for width in range(1, WIDEST + 1))


@dataclass(frozen=True)
class File:
    """Type and shape of an array, and SHA-256 of its file."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says; ``missing`` is whether values may be NaN."""

    rows: int
    lists: int
    features: Features
    missing: bool
    files: dict[str, File]

    def write(self, folder: Path) -> None:
        """Write it into a folder, which has no other."""
        names = self.features.names
        document = {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.rows,
            "lists": self.lists,
            "features": self.features.count,
            "feature_names": None if names is None else list(names),
            "zero_based": self.features.zero_based,
            "missing_values": self.missing,
            "files": {name: asdict(file) for name, file in sorted(self.files.items())},
        }
        with open(folder / MANIFEST, "x", encoding="utf-8") as file:
            json.dump(document, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """That of a folder, if it describes one that this version reads."""
        place = folder / MANIFEST
        if folder.is_dir() and not place.is_file():
            raise DataError(f"expected a lists folder, but it has no {MANIFEST}", path=folder)
        found = _document(place)
        rows, lists, width = (_count(found, name, place) for name in ("rows", "lists", "features"))
        if not 0 < lists <= rows:
            raise DataError(f"expected 1 to {rows}, found {lists}", path=place, field="lists")
        names = found.get("feature_names")
        if names is not None and not (
            isinstance(names, list)
            and len(names) == width
            and all(isinstance(name, str) for name in names)
        ):
            raise DataError(f"expected {width} names or null", path=place, field="feature_names")
        zero_based, missing = found.get("zero_based", 0), found.get("missing_values")
        if not (zero_based is None or isinstance(zero_based, bool)) or not isinstance(
            missing, bool
        ):
            raise DataError(
                "expected true or false", path=place, field="zero_based, missing_values"
            )
        features = Features(width, None if names is None else tuple(names), zero_based)
        return cls(rows, lists, features, missing, _files(found, place, rows, lists, width))


def _document(place: Path) -> dict[str, Any]:
    try:
        found = parse_json(place.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise DataError("expected UTF-8 text", path=place) from None
    except ValueError as error:
        raise DataError(f"expected JSON ({error})", path=place) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError("expected the manifest of a lists folder", path=place)
    if found.get("version") != VERSION:
        version = f"{found.get('version')!r:.20}"
        raise DataError(f"expected version {VERSION}, found {version}", path=place)
    return found


def _count(found: dict[str, Any], name: str, place: Path) -> int:
    value = found.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**48:
        return value
    raise DataError(f"expected a number, found {value!r:.20}", path=place, field=name)


def _files(
    found: dict[str, Any], place: Path, rows: int, lists: int, width: int
) -> dict[str, File]:
    """The files, if they make lists of so many rows and no others are there."""
    given = found.get("files")
    if not isinstance(given, dict):
        raise DataError("expected type, shape and checksum of each file", path=place, field="files")
    files = {name: _file(name, about, place) for name, about in given.items()}
    needed: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        "qid.npy": (TEXTS, (rows,)),
        "names.npy": (TEXTS, (lists,)),
        "starts.npy": (WIDE, (lists + 1,)),
    }
    if "data.npy" in files:
        entries = files["data.npy"].shape
        needed |= {"data.npy": (FLOATS, entries[:1]), "indices.npy": (INTEGERS, entries[:1])}
        needed["indptr.npy"] = (WIDE, (rows + 1,))
    else:
        needed["X.npy"] = (FLOATS, (rows, width))
    known = needed | {f"{name}.npy": (("<f8",), (rows,)) for name in NUMBERS}
    known["docid.npy"] = (TEXTS, (rows,))
    for name in (*needed, *files):
        if name not in known:
            raise DataError("expected no such file", path=place, field=name)
        types, shape = known[name]
        if name not in files or files[name].dtype not in types or files[name].shape != shape:
            raise DataError(
                f"expected {' or '.join(types[:2])} of shape {shape}", path=place, field=name
            )
    return files


def _file(name: str, about: Any, place: Path) -> File:
    values = about if isinstance(about, dict) else {}
    dtype, shape, checksum = (values.get(key) for key in ("dtype", "shape", "sha256"))
    if not (
        isinstance(dtype, str)
        and isinstance(checksum, str)
        and isinstance(shape, list)
        and all(type(size) is int and 0 <= size < 2**48 for size in shape)
    ):
        raise DataError("expected its type, shape and checksum", path=place, field=name)
    return File(dtype, tuple(shape), checksum)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
