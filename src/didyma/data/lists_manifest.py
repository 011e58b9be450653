"""What the manifest of a lists folder says, and the arrays that there must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from didyma.data.array_folder import MANIFEST, ArrayFolder, open_folder
from didyma.data.columns import Columns
from didyma.data.text_columns import WIDEST
from didyma.errors import DataError
from didyma.values import is_whole

KIND, VERSION = "lists of rows", 1
NUMBERS = ("labels", "scores", "losses")  # of rows, where they are known
FLOATS, WIDE, INTEGERS = ("<f4", "<f8"), ("<i8",), ("<i4", "<i8")
TEXTS = tuple(f"<U{width}" for width in range(1, WIDEST + 1))


@dataclass(frozen=True)
class ListsManifest:
    """How many rows and lists there are, what the columns are, and whether values may be NaN."""

    rows: int
    lists: int
    features: Columns
    missing: bool

    def record(self) -> dict[str, Any]:
        """As the manifest has it."""
        names = self.features.names
        return {
            "rows": self.rows,
            "lists": self.lists,
            "features": self.features.count,
            "feature_names": None if names is None else list(names),
            "zero_based": self.features.zero_based,
            "missing_values": self.missing,
        }

    @classmethod
    def open(cls, path: Path) -> tuple[ListsManifest, ArrayFolder]:
        """That of a folder, and the folder, if it holds the lists that its manifest describes."""
        folder = open_folder(path, KIND, VERSION)
        found, place = folder.record, path / MANIFEST
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
        _check_arrays(folder.arrays, path, rows, lists, width)
        features = Columns(width, None if names is None else tuple(names), zero_based)
        return cls(rows, lists, features, missing), folder


def _count(found: Mapping[str, Any], name: str, place: Path) -> int:
    value = found.get(name)
    if is_whole(value) and 0 <= value < 2**48:
        return value
    raise DataError(f"expected a number, found {value!r:.20}", path=place, field=name)


def _check_arrays(
    arrays: Mapping[str, NDArray[Any]], path: Path, rows: int, lists: int, width: int
) -> None:
    """Refuse what does not make lists of so many rows."""
    needed: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        "qid": (TEXTS, (rows,)),
        "names": (TEXTS, (lists,)),
        "starts": (WIDE, (lists + 1,)),
    }
    if "data" in arrays:
        entries = arrays["data"].shape[:1]
        needed |= {"data": (FLOATS, entries), "indices": (INTEGERS, entries)}
        needed["indptr"] = (WIDE, (rows + 1,))
    else:
        needed["X"] = (FLOATS, (rows, width))
    known = needed | dict.fromkeys(NUMBERS, (("<f8",), (rows,))) | {"docid": (TEXTS, (rows,))}
    for name in (*needed, *arrays):
        place = path / f"{name}.npy"
        if name not in known:
            raise DataError("expected no such file", path=place)
        types, shape = known[name]
        found = arrays.get(name)
        if (
            found is None
            or found.dtype.str not in types
            or found.shape != shape
            or not found.flags.c_contiguous
        ):
            raise DataError(
                f"expected an array of {' or '.join(types[:2])} of shape {shape}", path=place
            )
