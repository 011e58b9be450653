"""The form in which rerankers are given lists: a matrix of candidates for each input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from didyma.data.lists import Groups, Lists, joined
from didyma.data.matrix import Matrix, as_csr
from didyma.errors import DataError

__all__ = ["read_lists"]


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
        found = lists.X.shape[1]
        if n_features not in (None, found):
            raise DataError(f"expected {n_features} features, found {found}", field="candidates")
        return lists
    matrices = [_matrix(rows, i) for i, rows in enumerate(candidates)]
    sizes = [matrix.shape[0] for matrix in matrices]
    return Lists(
        _stacked(matrices, n_features),
        grouping=Groups.from_lists(sizes),
        losses=joined(losses, sizes, "losses"),
        scores=joined(decoder_scores, sizes, "decoder_scores"),
    )


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
    """A candidate matrix in double precision."""
    if sp.issparse(candidate):
        return as_csr(candidate, field="candidates").astype(np.float64, copy=False)
    matrix = np.asarray(candidate, dtype=np.float64)
    if matrix.ndim != 2:
        raise DataError(
            f"expected a matrix with a row per candidate in list {i}, found shape {matrix.shape}",
            field="candidates",
        )
    return matrix
