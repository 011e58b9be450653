"""Matrices of features: dense or sparse rows, what their columns are, and checks for the core."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.categories import Vocabularies, renumbered
from didyma.data.text_columns import check_distinct
from didyma.errors import DataError, placed
from didyma.files import PathName
from didyma.values import kind_of

if TYPE_CHECKING:
    import scipy.sparse as sp

    from didyma.data.lists import Lists

BLOCK = 1 << 22  # entries that are looked at at a time
CHECKED = "_didyma_checked"  # an attribute of sparse matrices that `as_csr` has seen

Matrix: TypeAlias = "NDArray[Any] | sp.csr_array"


def is_sparse(X: object) -> bool:
    """Whether this is a sparse matrix of SciPy, which is not imported to tell."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def dense(X: Any) -> NDArray[Any]:
    """X as an array, whether it is sparse or not."""
    return X.toarray() if is_sparse(X) else np.asarray(X)


def plain(X: Any) -> Any:
    """The same matrix, of numbers that all libraries know; only what has too many digits is cut.

    >>> plain(np.ones((1, 1), np.float16)).dtype, plain(np.ones((1, 1), bool)).dtype
    (dtype('float32'), dtype('uint8'))
    """
    common = {np.dtype("?"): "u1", np.dtype("e"): "f4", np.dtype("g"): "f8"}
    native = X.dtype.newbyteorder("=")
    dtype = np.dtype(common.get(native, native))
    if X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        return X.astype(dtype)


def refuse_masked(values: object, field: str) -> None:
    """Refuse an array that hides values behind a mask, which nothing here would look at.

    >>> refuse_masked(np.ma.array([1.0, 2.0], mask=[False, True]), "y")
    Traceback (most recent call last):
    didyma.errors.DataError: y: has masked values, which would count: fill or leave them out
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError("has masked values, which would count: fill or leave them out", field=field)


def as_csr(X: Any, *, field: str = "X") -> sp.csr_array:
    """A sparse matrix as CSR, in place if it is CSR already, with 32-bit indices if these suffice.

    SciPy and compiled loops trust the parts of a sparse matrix. Here everything that they rely on
    is checked: shapes and types, that each row's entries lie within the arrays and each column
    within the matrix, and that values are finite.

    >>> import scipy.sparse as sp
    >>> rows = sp.csr_array(np.eye(2))
    >>> rows.indices[1] = 7
    >>> as_csr(rows)
    Traceback (most recent call last):
    didyma.errors.DataError: X: expected column indices from 0 to 1, found 7
    """
    if getattr(X, CHECKED, False):
        return X
    if X.ndim != 2:
        raise DataError(f"expected a matrix, found shape {X.shape}", field=field)
    if X.dtype.kind not in "biuf":
        raise DataError(f"expected numbers, found {X.dtype}", field=field)
    if X.format in ("csr", "csc"):
        n_lists, width = X.shape if X.format == "csr" else X.shape[::-1]
        _check_compressed(X.data, X.indices, X.indptr, n_lists, width, field)
    elif X.format == "bsr":
        block = X.data.shape[1:]
        if len(block) != 2 or 0 in block:
            raise DataError(f"expected blocks, found shape {X.data.shape}", field=field)
        _check_compressed(
            *(X.data, X.indices, X.indptr), X.shape[0] // block[0], X.shape[1] // block[1], field
        )
    elif X.format == "coo":
        for indices, bound, kind in zip((X.row, X.col), X.shape, ("row", "column")):
            _check_indices(indices, bound, kind, field)
            if indices.shape != X.data.shape:
                raise DataError(
                    f"{indices.size} {kind} indices for {X.data.size} values", field=field
                )
    import scipy.sparse as sp

    rows = sp.csr_array(_signed(plain(X)))
    if X.format not in ("csr", "csc", "bsr", "coo"):  # of lists, dictionaries or diagonals
        _check_compressed(rows.data, rows.indices, rows.indptr, X.shape[0], X.shape[1], field)
    for values in _pieces(rows.data):
        if not np.isfinite(values).all():
            raise DataError("expected finite numbers, found others", field=field)
    n_entries = int(rows.indptr[-1])
    index = np.int32 if max(n_entries, *rows.shape) < 2**31 else np.int64
    if len(rows.data) > n_entries or any(p.dtype != index for p in (rows.indices, rows.indptr)):
        parts = rows.data[:n_entries], rows.indices[:n_entries].astype(index)
        rows = sp.csr_array((*parts, rows.indptr.astype(index)), shape=rows.shape)
    setattr(rows, CHECKED, True)  # what is mapped from a disk should be read once
    return rows


def _signed(X: Any) -> Any:
    """The same without unsigned indices, about which SciPy warns."""
    if X.format not in ("csr", "csc", "bsr") or X.indices.dtype.kind == X.indptr.dtype.kind == "i":
        return X
    parts = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return type(X)(parts, shape=X.shape)


def _pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """An array in parts, so that what is computed of each is small."""
    return (array[start : start + BLOCK] for start in range(0, len(array), BLOCK))


def _check_compressed(
    values: NDArray[Any],
    indices: NDArray[Any],
    starts: NDArray[Any],
    n_lists: int,
    width: int,
    field: str,
) -> None:
    if starts.shape != (n_lists + 1,) or starts.dtype.kind not in "iu":
        raise DataError(
            f"expected an indptr of {n_lists + 1} integers, found {starts.dtype} of shape "
            f"{starts.shape}",
            field=field,
        )
    if len(values) != len(indices):
        raise DataError(f"{len(indices)} indices for {len(values)} values", field=field)
    if starts[0] != 0 or np.any(starts[1:] < starts[:-1]) or starts[-1] > len(indices):
        raise DataError(f"expected an indptr that rises from 0 to {len(indices)}", field=field)
    _check_indices(indices[: int(starts[-1])], width, "column", field)


def _check_indices(indices: NDArray[Any], bound: int, kind: str, field: str) -> None:
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise DataError(f"expected {kind} indices, found {indices.dtype}", field=field)
    for piece in _pieces(indices):
        wrong = (piece < 0) | (piece >= bound)
        if wrong.any():
            raise DataError(
                f"expected {kind} indices from 0 to {bound - 1}, found {piece[wrong.argmax()]}",
                field=field,
            )


def widened(X: Matrix, width: int) -> Matrix:
    """The same rows with columns of zeros in the end."""
    n_rows, present = X.shape
    if present == width:
        return X
    if isinstance(X, np.ndarray):
        return np.pad(X, ((0, 0), (0, width - present)))
    import scipy.sparse as sp

    return sp.csr_array((X.data, X.indices, X.indptr), shape=(n_rows, width))


@dataclass(frozen=True)
class Columns:
    """What the columns of a matrix are: how many, their names, and the index of the first.

    ``zero_based`` says whether a LETOR file calls the first column 0 or 1. It is None where columns
    never had an index, as those of a table. ``categories`` are the texts of columns that have codes
    for texts (`didyma.data.categories`), None if there are no such columns.

    >>> from didyma.data.lists import Lists
    >>> train = Lists(np.eye(2), np.ones(2), np.zeros(2), feature_names=("bm25", "age"))
    >>> test = Lists(np.eye(2), np.ones(2), np.zeros(2), feature_names=("age", "bm25"))
    >>> train.features.arrange(test).X.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    count: int
    names: tuple[str, ...] | None = None
    zero_based: bool | None = None
    categories: Vocabularies | None = None

    @classmethod
    def of(cls, owner: Any) -> Columns:
        """The features of judged results, or those that a fitted estimator or pipeline asks for."""
        if isinstance(owner, Columns):
            return owner
        if isinstance(getattr(owner, "features", None), Columns):
            return owner.features
        first = owner.steps[0][1] if hasattr(owner, "steps") else owner
        if not hasattr(first, "n_features_in_"):
            raise DataError(
                f"expected judged results or a fitted model, found {kind_of(owner)}",
                field="like",
            )
        names = getattr(first, "feature_names_in_", None)
        return cls(
            int(first.n_features_in_),
            None if names is None else tuple(map(str, names)),
            getattr(first, "zero_based_in_", None),
            getattr(first, "categories_in_", None),
        )

    @property
    def labels(self) -> list[str]:
        """What to call each column: its name, or its index as in a file."""
        first = 0 if self.zero_based else 1
        return list(self.names or map(str, range(first, first + self.count)))

    def places(self, labels: Iterable[str], field: str | None = None) -> tuple[int, ...]:
        """The columns of some of the `labels`; ``field`` is what an error names.

        >>> Columns(3, zero_based=False).places(["3", "1"])
        (2, 0)
        """
        place_of = {label: place for place, label in enumerate(self.labels)}
        wanted = tuple(labels)
        for label in wanted:
            if label not in place_of:
                raise DataError(f"there is no feature {label!r}", field=field)
        return tuple(place_of[label] for label in wanted)

    @property
    def coded(self) -> dict[int, str]:
        """The labels of columns that have codes for texts, by their places."""
        labels = self.labels if self.categories else []
        return {place: labels[place] for place, texts in enumerate(self.categories or ()) if texts}

    def remember(self, estimator: Any) -> None:
        """Make these the features that a fitted estimator asks for."""
        estimator.n_features_in_ = self.count
        estimator.zero_based_in_ = self.zero_based
        estimator.categories_in_ = self.categories
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_

    def arrange(self, data: Lists, path: PathName | None = None) -> Lists:
        """The same rows with these columns: by name where both have names, by place otherwise.

        Data with indices may lack the last columns, as a LETOR file does that never lists them.
        Texts that are categories are numbered as they are here. ``path`` is what errors name.
        """
        if data.features == self:
            return data
        with nullcontext() if path is None else placed(path):
            return renumbered(self._placed(data, path), self.categories, self.labels)

    def _placed(self, data: Lists, path: PathName | None) -> Lists:
        """The same rows with these columns, whose categories are those of the data."""
        if self.names is not None and data.feature_names is not None:
            for names in (self.names, data.feature_names):
                check_distinct(names, "feature", path=path)
            place = {name: k for k, name in enumerate(data.feature_names)}
            if missing := [name for name in self.names if name not in place]:
                raise DataError(f"expected also the features {', '.join(missing)}", path=path)
            places = [place[name] for name in self.names]
            texts = data.categories and tuple(data.categories[k] for k in places)
            columns = data.X[:, places]
            return replace(data, items=columns, feature_names=self.names, categories=texts)
        if None not in (self.zero_based, data.zero_based) and self.zero_based != data.zero_based:
            raise DataError(
                f"expected features that count from {int(not self.zero_based)}, found some that "
                f"count from {int(not data.zero_based)}: read the file with like= the other data",
                path=path,
            )
        width = data.X.shape[1]
        if width > self.count or (width < self.count and data.zero_based is None):
            raise DataError(f"expected {self.count} features, found {width}", path=path)
        return replace(
            data,
            items=widened(data.X, self.count),
            feature_names=self.names,
            zero_based=data.zero_based if self.zero_based is None else self.zero_based,
        )


class MappedFiles:
    """The files that a matrix is mapped from, which must stay as they are while it is in use.

    One that is replaced or removed does no harm: what was mapped remains. One that is written into
    changes what is learned from, in the midst of it.
    """

    def __init__(self, X: Any) -> None:
        parts = [X.data, X.indices, X.indptr] if is_sparse(X) else [X]
        paths = {path for part in parts if (path := _mapped(part)) is not None}
        self._known = {path: _stamp(path) for path in paths}

    def check(self) -> None:
        """Refuse to go on with a file that has changed since."""
        for path, (file_then, contents) in self._known.items():
            now, contents_now = _stamp(path)
            if now == file_then and contents_now != contents:
                raise DataError("has changed while it was learned from: begin anew", path=path)


def _mapped(array: Any) -> str | None:
    """The path of the file that an array is mapped from."""
    while array is not None:
        if isinstance(array, np.memmap) and array.filename is not None:
            return os.fspath(array.filename)
        array = getattr(array, "base", None)
    return None


def _stamp(path: str) -> tuple[Any, Any]:
    """Which file a path names, and when and how long it was written."""
    try:
        status = os.stat(path)
    except OSError:
        return None, None
    return (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
