"""Checks of training data: features within bounds, and queries to learn from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.matrix import is_sparse
from didyma.errors import DataError, warn
from didyma.learning.scoring import BLOCK

# Features beyond this have squares, and products with weights, that overflow in training.
LARGEST = 1e90


def all_moderate(X: Any) -> bool:
    """Whether no feature is missing, infinite or beyond `LARGEST`.

    A sum of squares bounds each of them, and is the fastest way to look at all. A sum that is too
    large in single precision says no, too.

    >>> all_moderate(np.ones((2, 3))), all_moderate(np.array([[1.0, np.nan]]))
    (True, False)
    """
    values = X.data if is_sparse(X) else X
    blocks = (values[start : start + BLOCK].reshape(-1) for start in range(0, len(values), BLOCK))
    with np.errstate(over="ignore", invalid="ignore"):
        return all(float(flat @ flat) <= LARGEST**2 for flat in blocks)


def check_magnitude(X: Any, names: Sequence[str] | None) -> None:
    """Refuse a feature that is too large to learn from, by its name or else its column."""
    if place := _too_large(X):
        row, column, value = place
        raise DataError(
            f"{value:g} in row {row} is too large to learn from, beyond {LARGEST:g}: scale it",
            field=f"feature {column if names is None else names[column]}",
        )


def _too_large(X: Any) -> tuple[int, int, float] | None:
    """Row, column and value of a feature beyond `LARGEST`, from 0, if there is one."""
    if X.dtype == np.float32:
        return None
    values = X.data if is_sparse(X) else X
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        if all_moderate(block):
            continue
        large = np.abs(block.reshape(-1)) > LARGEST
        if large.any():
            place = int(np.argmax(large))
            row, column = divmod(place, X.shape[1])
            if is_sparse(X):
                entry = start + place
                row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
                return row, int(X.indices[entry]), float(values[entry])
            return start + row, column, float(block[row, column])
    return None


def count_trainable(
    trainable: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    grades: NDArray[np.float64] | None = None,
) -> int:
    """How many queries can be learned from; warns of those that are skipped, refuses none left.

    ``weight`` has one entry per query, ``grades`` one per row.
    """
    if not np.any(trainable if weight is None else trainable & (weight > 0)):
        if grades is not None and 1 <= grades.min() < grades.max():
            low, high = grades.min(), grades.max()
            raise DataError(
                f"labels are {low:g} to {high:g}, so that all rows are relevant (y >= 1) and there "
                f'is nothing to learn from; loss="ap(rel={max(high - 1, 2):g})" counts higher ones '
                'only, loss="ndcg" learns from the grades themselves',
                field="y",
            )
        raise DataError(
            "there is nothing to learn from: every query has rows of one class only, or no "
            "weight; training needs one with a relevant row (y >= 1) and one that is not"
        )
    if skipped := int(np.sum(~trainable)):
        warn(
            f"{skipped} of {len(trainable)} queries have rows of one class only; training skips "
            "them",
            UserWarning,
        )
    return int(np.sum(trainable))


def warn_of_halving() -> None:
    """Warn if the caller is a halving search of scikit-learn that draws rows: it tears queries."""
    module = sys.modules.get("sklearn.model_selection._search_successive_halving")
    frame = sys._getframe(1)
    while module is not None and frame.f_back is not None:
        frame = frame.f_back
        search = frame.f_locals.get("self")
        if isinstance(search, module.BaseSuccessiveHalving) and search.resource == "n_samples":
            warn(
                f"{type(search).__name__} draws rows, not queries, so that early rounds rank parts "
                "of lists; give it another resource, such as 'max_iter', or use GridSearchCV",
                UserWarning,
            )
            return


def category_columns(X: Any) -> dict[int, Any]:
    """Names of a data frame's columns of categories (pandas, Polars), by their places."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return {}
    kinds = [str(dtype).partition("(")[0] for dtype in X.dtypes]
    return {
        place: name
        for place, (name, kind) in enumerate(zip(X.columns, kinds))
        if kind in ("category", "Categorical", "Enum")
    }
