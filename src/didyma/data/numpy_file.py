"""NumPy archives (``.npz``) with the arrays of a `Lists` by name."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import Matrix, is_sparse, plain
from didyma.data.row_blocks import concatenate
from didyma.data.text_columns import is_text
from didyma.errors import DataError, placed
from didyma.files import PathName, check_unpacked, replace_when_done

__all__ = ["blocks", "read", "write", "write_blocks"]

SPARSE = ("data", "indices", "indptr", "shape")


def read(path: PathName) -> Lists:
    """Read X (or data, indices, indptr and shape of a CSR matrix), y and qid.

    There may also be docid, feature_names and zero_based.
    """
    arrays = _arrays(path)
    for name in ("y", "qid"):
        if name not in arrays:
            raise DataError(f"no such array among {', '.join(arrays)}", path=path, field=name)
    if "X" not in arrays and not set(SPARSE) <= set(arrays):
        raise DataError(f"no such array among {', '.join(arrays)}", path=path, field="X")
    with placed(path):
        X = arrays["X"] if "X" in arrays else _csr(*(arrays[name] for name in SPARSE))
        return Lists(
            _finite(X, "X") if isinstance(X, np.ndarray) else X,
            _finite(arrays["y"], "y").astype(np.float64),
            _texts(arrays["qid"], "qid"),
            _texts(arrays["docid"], "docid") if "docid" in arrays else None,
            _names(arrays["feature_names"]) if "feature_names" in arrays else None,
            bool(arrays["zero_based"].all()) if "zero_based" in arrays else None,
        )


def blocks(path: PathName) -> Iterator[Lists]:
    """The same as one block: an archive is unpacked as a whole."""
    yield read(path)


def _arrays(path: PathName) -> dict[str, NDArray[Any]]:
    """The arrays of an archive; objects, which only pickle could read, are refused."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as members:
                check_unpacked(sum(member.file_size for member in members.infolist()), path)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return dict(archive)
        except DataError:
            raise
        except (
            Exception
        ) as error:  # what zipfile, zlib and NumPy raise at damage has no common base
            problem = " ".join(str(error).split())
            raise DataError(f"not a readable NumPy archive ({problem})", path=path) from None


def _csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]
) -> Matrix:
    """A matrix of these parts, which `Lists` checks in full."""
    from scipy.sparse import csr_array

    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError("expected two integers", field="shape")
    native = _finite(data, "data")
    if indptr.size and int(indptr.reshape(-1)[-1]) != data.size:
        raise DataError(f"expected an indptr that rises from 0 to {data.size}", field="X")
    try:
        return csr_array((native, indices, indptr), shape=(int(shape[0]), int(shape[1])))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"expected the parts of a sparse matrix ({error})", field="X") from None


def _finite(numbers: NDArray[Any], field: str) -> NDArray[Any]:
    """An array of finite numbers, of a type that all libraries know."""
    if numbers.dtype.kind not in "biuf":
        raise DataError(f"expected numbers, found {numbers.dtype}", field=field)
    numbers = plain(numbers)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        raise DataError(f"expected finite numbers, found another in row {row + 1}", field=field)
    return numbers


def _texts(column: NDArray[Any], field: str) -> NDArray[Any]:
    """A column of texts or numbers."""
    if column.dtype.kind == "S":
        try:
            column = np.char.decode(column, "utf-8")
        except UnicodeDecodeError:
            raise DataError("expected UTF-8 text", field=field) from None
    if column.dtype.kind not in "biufU":
        raise DataError(f"expected text or numbers, found {column.dtype}", field=field)
    column = column.astype(column.dtype.newbyteorder("="), copy=False)
    if not is_text(column):
        raise DataError("expected text, found what no character has as its code", field=field)
    return column


def _names(column: NDArray[Any]) -> tuple[str, ...]:
    if column.ndim != 1:
        raise DataError("expected a list of names", field="feature_names")
    return tuple(map(str, _texts(column, "feature_names").tolist()))


def write_blocks(parts: Iterable[Lists], path: PathName) -> None:
    """Write an archive of rows that come some at a time, all of which are held meanwhile."""
    write(concatenate([*parts]), path)


def write(data: Lists, path: PathName) -> None:
    """Write a compressed archive that `read` gives back."""
    if is_sparse(data.X):
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
