"""Lists of candidates with their losses and the scores of the decoder that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.matrix import Matrix, as_csr

__all__ = ["CandidateLists", "read_lists"]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """All candidates one below the other; list i holds rows ``starts[i]`` to ``starts[i + 1] - 1``.

    ``losses`` say how bad each candidate is, ``scores`` what the decoder thought of it; either may
    be None.
    """

    rows: Matrix
    starts: Integers
    losses: Vector | None = None
    scores: Vector | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Integers:
        """The number of candidates of each list."""
        return np.diff(self.starts)

    @cached_property
    def lists(self) -> Integers:
        """The number of the list that each candidate is in."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def choose(self, values: ArrayLike) -> Integers:
        """The place in its list of the candidate of highest value, the first of several.

        An empty list has none, which −1 says. Values may have a second axis, one choice each.

        >>> lists = read_lists([np.eye(2), np.zeros((0, 2)), np.ones((3, 2))])
        >>> lists.choose([0.0, 1.0, 2.0, 2.0, 1.0])
        array([ 1, -1,  0])
        """
        values = np.asarray(values, dtype=np.float64)
        choice = np.full((len(self), *values.shape[1:]), -1, np.int64)
        full = self.sizes > 0
        if not full.any():
            return choice
        highest = np.maximum.reduceat(values, self.starts[:-1][full])
        place = np.arange(len(values)) - self.starts[:-1][self.lists]
        spread = highest[np.cumsum(full)[self.lists] - 1]
        axes = (slice(None),) + (None,) * (values.ndim - 1)
        place = np.where(values == spread, place[axes], len(values))
        choice[full] = np.minimum.reduceat(place, self.starts[:-1][full])
        return choice

    def loss_of(self, choice: Integers) -> Vector:
        """The loss of the chosen candidate of each list; 0 for a list that has none."""
        if self.losses is None:
            raise DataError("expected losses, found none", field="losses")
        if not len(self.losses):
            return np.zeros(choice.shape)
        axes = (slice(None),) + (None,) * (choice.ndim - 1)
        rows = self.starts[:-1][axes] + choice
        return np.where(choice >= 0, self.losses[np.maximum(rows, 0)], 0.0)


def read_lists(
    candidates: Sequence[Any],
    losses: Sequence[ArrayLike] | None = None,
    decoder_scores: Sequence[ArrayLike] | None = None,
    n_features: int | None = None,
) -> CandidateLists:
    """Check and stack lists: a matrix (m_i, d) of candidates, and a loss and a score for each.

    >>> lists = read_lists([np.eye(2), np.ones((1, 2))], losses=[[0, 1], [2]])
    >>> lists.starts, lists.losses
    (array([0, 2, 3]), array([0., 1., 2.]))
    """
    matrices = [_matrix(candidate, i) for i, candidate in enumerate(candidates)]
    if not matrices:
        raise DataError("expected a list of candidates at least, found none", field="candidates")
    width = matrices[0].shape[1] if n_features is None else n_features
    for i, matrix in enumerate(matrices):
        if matrix.shape[1] != width:
            raise DataError(
                f"expected {width} features in list {i}, found {matrix.shape[1]}",
                field="candidates",
            )
    sizes = [matrix.shape[0] for matrix in matrices]
    sparse = any(sp.issparse(matrix) for matrix in matrices)
    rows = sp.csr_array(sp.vstack(matrices, format="csr")) if sparse else np.vstack(matrices)
    values = rows.data if sparse else rows
    if not np.isfinite(values).all():
        raise DataError("expected finite numbers, found others", field="candidates")
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return CandidateLists(
        rows,
        starts,
        _values(losses, sizes, "losses", least=0.0),
        _values(decoder_scores, sizes, "decoder_scores"),
    )


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


def _values(
    given: Sequence[ArrayLike] | None, sizes: list[int], field: str, least: float = -np.inf
) -> Vector | None:
    """One number per candidate."""
    if given is None:
        return None
    vectors = [np.asarray(values, dtype=np.float64).reshape(-1) for values in given]
    if len(vectors) != len(sizes):
        raise DataError(f"expected {len(sizes)} lists, found {len(vectors)}", field=field)
    for i, (vector, size) in enumerate(zip(vectors, sizes)):
        if len(vector) != size:
            raise DataError(f"expected {size} values in list {i}, found {len(vector)}", field=field)
    values = np.concatenate(vectors)
    if not np.all(np.isfinite(values) & (values >= least)):
        what = "finite numbers" if least == -np.inf else f"finite numbers of {least:g} or more"
        raise DataError(f"expected {what}, found others", field=field)
    return values
