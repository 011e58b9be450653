"""NumPy archives (``.npz``) with the arrays of a `RankingData` by name."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from didyma.data import RankingData
from didyma.errors import DataError
from didyma.files import PathName, replace_when_done

__all__ = ["read", "write"]

SPARSE = ("data", "indices", "indptr", "shape")


def read(path: PathName) -> RankingData:
    """Read X (or data, indices, indptr and shape of a CSR matrix), y and qid.

    There may also be docid, feature_names and zero_based.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: dict[str, Any] = dict(archive)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"not a readable NumPy archive ({error})", path=path) from None
    for name in ("y", "qid"):
        if name not in arrays:
            raise DataError(f"no such array among {', '.join(arrays)}", path=path, field=name)
    if "X" not in arrays and not set(SPARSE) <= set(arrays):
        raise DataError(f"no such array among {', '.join(arrays)}", path=path, field="X")
    try:
        X = (
            arrays["X"]
            if "X" in arrays
            else sp.csr_array(
                tuple(arrays[name] for name in SPARSE[:3]), shape=tuple(arrays["shape"])
            )
        )
        names = tuple(arrays["feature_names"].tolist()) if "feature_names" in arrays else None
        return RankingData(
            X,
            arrays["y"].astype(np.float64),
            arrays["qid"],
            arrays.get("docid"),
            names,
            bool(arrays["zero_based"]) if "zero_based" in arrays else None,
        )
    except ValueError as error:
        raise DataError(str(error), path=path) from None


def write(data: RankingData, path: PathName) -> None:
    """Write a compressed archive that `read` gives back."""
    if sp.issparse(data.X):
        arrays = {name: np.asarray(getattr(data.X, name)) for name in SPARSE}
    else:
        arrays = {"X": data.X}
    arrays |= {"y": data.y, "qid": data.qid}
    if data.docid is not None:
        arrays["docid"] = data.docid
    if data.feature_names is not None:
        arrays["feature_names"] = np.array(data.feature_names, dtype=str)
    if data.zero_based is not None:
        arrays["zero_based"] = np.array(data.zero_based)
    text = {name: a.astype(str) if a.dtype == object else a for name, a in arrays.items()}
    with replace_when_done(path, "wb") as file:
        np.savez_compressed(file, **text)  # type: ignore[arg-type]
