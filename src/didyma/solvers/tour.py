"""Tour: round trips through all nodes, the travelling salesman's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.solvers.cp_sat import CpSat, cp_model
from didyma.structures.layout import Floats


class Tour(CpSat):
    """Tours through n nodes, each visited once, by the circuit constraint of CP-SAT.

    Scores (B, n, n) of going from i to j, or with ``directed=False`` of the edge between i and j,
    read at [i, j] with i < j; outputs boolean of the same shape. For the shortest tour give
    negative lengths. The problem is NP-hard: tens of nodes are a matter of seconds.

    >>> import numpy as np
    >>> square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> lengths = np.linalg.norm(square[:, None] - square, axis=-1)
    >>> np.argwhere(Tour(4, directed=False).predict(-lengths)).tolist()
    [[0, 1], [0, 3], [1, 2], [2, 3]]

    Args:
        n_nodes: number of nodes, at least 3.
        directed: whether scores of both directions are told apart.
        time_limit, n_workers: as for `CpSat`.
    """

    ndim: ClassVar[int] = 2

    def __init__(
        self,
        n_nodes: int,
        directed: bool = True,
        *,
        time_limit: float | None = None,
        n_workers: int = 1,
    ) -> None:
        if n_nodes < 3:
            raise DataError(f"expected 3 nodes or more, found {n_nodes}", field="n_nodes")
        self.n_nodes, self.directed = n_nodes, directed
        model = cp_model().CpModel()
        arcs = {
            (i, j): model.new_bool_var("") for i in range(n_nodes) for j in range(n_nodes) if i != j
        }
        model.add_circuit([(i, j, literal) for (i, j), literal in arcs.items()])
        literals = arcs
        if not directed:
            literals = {edge: model.new_bool_var("") for edge in arcs if edge[0] < edge[1]}
            for (i, j), edge in literals.items():
                model.add(arcs[i, j] + arcs[j, i] == edge)
        self._cells = np.array([i * n_nodes + j for i, j in literals])
        super().__init__(model, [*literals.values()], time_limit=time_limit, n_workers=n_workers)

    def _flat(self, scores: Floats) -> Floats:
        if scores.shape != (self.n_nodes, self.n_nodes):
            raise DataError(
                f"expected shape {(self.n_nodes, self.n_nodes)}, found {scores.shape}",
                field="scores",
            )
        return scores.ravel()[self._cells]

    def _places(self, held: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._cells[held]

    def __repr__(self) -> str:
        return f"Tour({self.n_nodes}, directed={self.directed})"
