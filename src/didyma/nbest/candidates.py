"""Checked matrices: the vectors of inputs, and those of the candidates of each input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from didyma.data.groups import Groups
from didyma.data.lists import Lists, joined
from didyma.data.matrix import Matrix, as_csr
from didyma.errors import DataError


def read_lists(
    candidates: Lists | Sequence[Any],
    losses: Sequence[ArrayLike] | None = None,
    decoder_scores: Sequence[ArrayLike] | None = None,
    n_features: int | None = None,
) -> Lists:
    """Check and stack lists: a matrix (m_i, d) of candidates, and a loss and a score for each.

    What is a `Lists` already has its rows gathered, and brings losses and scores with it.

    >>> lists = read_lists([np.eye(2), np.ones((1, 2))], losses=[[0, 1], [2]])
    >>> lists.groups.sizes, lists.losses
    (array([2, 1]), array([0., 1., 2.]))
    """
    if isinstance(candidates, Lists):
        if losses is not None or decoder_scores is not None:
            raise DataError("these lists hold losses and scores of their own", field="candidates")
        lists = candidates.gathered()
        width = lists.X.shape[1]
        if n_features not in (None, width):
            raise DataError(f"expected {n_features} features, found {width}", field="candidates")
        return lists
    matrices = [_matrix(rows, i) for i, rows in enumerate(candidates)]
    sizes = [matrix.shape[0] for matrix in matrices]
    return Lists(
        _stacked(matrices, n_features),
        grouping=Groups.from_lists(sizes),
        losses=joined(losses, sizes, "losses"),
        scores=joined(decoder_scores, sizes, "decoder_scores"),
    )


def read_candidates(
    candidates: Any, losses: Any, decoder_scores: Any, n: int, n_features: int, judged: bool = True
) -> Lists:
    """The lists of n inputs; ``judged`` if losses are needed."""
    if candidates is None:
        raise DataError("expected a list of candidates for each input", field="candidates")
    n_lists = len(candidates.groups if isinstance(candidates, Lists) else candidates)
    if n_lists != n:
        raise DataError(f"expected {n} lists, one per input, found {n_lists}", field="candidates")
    lists = read_lists(candidates, losses, decoder_scores, n_features)
    if judged and lists.losses is None:
        raise DataError("expected a loss for each candidate", field="losses")
    return lists


def read_view(rows: Any, field: str, n_features: int | None = None, single: bool = False) -> Matrix:
    """A matrix with a row for each input, in double precision.

    With ``single`` there is one input, and it may be a vector.
    """
    if sp.issparse(rows):
        rows = as_csr(rows, field=field).astype(np.float64, copy=False)
    else:
        try:
            rows = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError("expected a matrix of numbers", field=field) from None
    if single and rows.ndim == 1:
        rows = rows.reshape(1, -1)
    if rows.ndim != 2:
        raise DataError(f"expected a matrix, found shape {rows.shape}", field=field)
    if single and rows.shape[0] != 1:
        raise DataError(f"expected one row, found {rows.shape[0]}", field=field)
    if 0 in rows.shape:
        raise DataError(f"expected rows and columns, found shape {rows.shape}", field=field)
    if n_features is not None and rows.shape[1] != n_features:
        raise DataError(f"expected {n_features} features, found {rows.shape[1]}", field=field)
    if not np.isfinite(rows.data if sp.issparse(rows) else rows).all():
        raise DataError("expected finite numbers, found others", field=field)
    return rows


def _stacked(matrices: Sequence[Any], n_features: int | None) -> Matrix:
    if not matrices:
        raise DataError("expected a list of candidates at least, found none", field="candidates")
    width = matrices[0].shape[1] if n_features is None else n_features
    for i, matrix in enumerate(matrices):
        if matrix.shape[1] != width:
            raise DataError(
                f"expected {width} features in list {i}, found {matrix.shape[1]}",
                field="candidates",
            )
    if any(sp.issparse(matrix) for matrix in matrices):
        return sp.csr_array(sp.vstack(matrices, format="csr"))
    rows = np.vstack(matrices)
    if not np.isfinite(rows).all():
        raise DataError("expected finite numbers, found others", field="candidates")
    return rows


def _matrix(candidate: Any, i: int) -> Any:
    if sp.issparse(candidate):
        return as_csr(candidate, field="candidates").astype(np.float64, copy=False)
    matrix = np.asarray(candidate, dtype=np.float64)
    if matrix.ndim != 2:
        raise DataError(
            f"expected a matrix with a row per candidate in list {i}, found shape {matrix.shape}",
            field="candidates",
        )
    return matrix
