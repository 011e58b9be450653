"""What is asked of rows, weights and queries before a ranker learns from them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.data.matrix import is_sparse, refuse_masked
from didyma.errors import DataError, warn
from didyma.learning.scoring import BLOCK

# Features beyond this have squares, and products with weights, that overflow in training.
LARGEST = 1e90


def weights_of_queries(sample_weight: ArrayLike, groups: Groups) -> NDArray[np.float64]:
    """Mean weight of each query's rows."""
    refuse_masked(sample_weight, "sample_weight")
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        problem = f"expected a number for each row, found {sample_weight!r:.40}"
        raise DataError(problem, field="sample_weight") from None
    if weight.shape != groups.rows.shape:
        raise DataError(
            f"expected {len(groups.rows)} weights, found shape {weight.shape}",
            field="sample_weight",
        )
    if not np.all((weight >= 0) & (weight <= LARGEST)):
        raise DataError(
            f"expected finite weights of 0 or more, none beyond {LARGEST:g}", field="sample_weight"
        )
    if not weight.any():
        raise DataError("all weights are zero", field="sample_weight")
    return np.bincount(groups.codes, weights=weight, minlength=len(groups)) / groups.sizes


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


def check_numbers(
    X: Any, names: Sequence[str] | None, *, missing: bool, largest: float = LARGEST
) -> None:
    """Refuse a feature that is not finite, or too large to learn from, by its row and its name.

    NaN may stand for values that are ``missing``.
    """
    values = X.data if is_sparse(X) else X
    for start in range(0, len(values), BLOCK):
        part = values[start : start + BLOCK]
        bad = ~np.isfinite(part) | (np.abs(part) > np.float64(largest))
        wrong = np.argwhere(bad & ~np.isnan(part) if missing else bad)
        if len(wrong):
            row, column = start + int(wrong[0, 0]), int(wrong[0, -1])
            value = values[row] if is_sparse(X) else values[row, column]
            if is_sparse(X):  # the number of an entry, up to here
                row, column = int(np.searchsorted(X.indptr, row, "right")) - 1, X.indices[row]
            problem = (
                f"{value:g} in row {row} is too large to learn from, beyond {LARGEST:g}: scale it"
            )
            if not np.isfinite(value):
                shown = "NaN" if np.isnan(value) else value
                problem = f"expected a finite number, found {shown} in row {row}"
            raise DataError(problem, field=f"feature {column if names is None else names[column]}")


def count_trainable(trainable: NDArray[np.bool_], weight: NDArray[np.float64] | None) -> int:
    """How many queries can be learned from; warns of those that are skipped, refuses none left.

    ``weight`` has one entry per query.
    """
    if not np.any(trainable if weight is None else trainable & (weight > 0)):
        raise DataError(
            "there is nothing to learn from: every query has rows of one class only, or no weight"
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
