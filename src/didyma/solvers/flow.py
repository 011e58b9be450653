"""Flow: sets of edges that carry given supplies to where they are needed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from didyma.errors import DataError
from didyma.solvers.graphs import edges_of, nodes_of
from didyma.solvers.milp import Milp


class Flow(Milp):
    """Flows of 0 or 1 along directed edges: what leaves a node less what enters it is its supply.

    Scores (B, n_edges), outputs boolean of the same shape. Scores may have any sign: a flow may run
    in circles where that is worth it. Its linear programme has whole solutions only, so that HiGHS
    never branches. With supplies 1 and −1 of two nodes it is a path between them, and such circles.

    >>> flow = Flow([("a", "b"), ("a", "c"), ("b", "c")], {"a": 2, "c": -2})
    >>> flow.predict([-1.0, -1.0, -1.0])
    array([ True,  True,  True])

    Args:
        graph: edges as pairs of nodes, or a graph of networkx.
        supply: units that nodes bring along (negative: need); 0 for nodes that are not named.
        time_limit: as for `Milp`.
    """

    def __init__(
        self, graph: Any, supply: Mapping[Hashable, int], time_limit: float | None = None
    ) -> None:
        from scipy.sparse import csr_array

        self.edges = edges_of(graph)
        number = {node: i for i, node in enumerate(nodes_of(self.edges))}
        if missing := [node for node in supply if node not in number]:
            raise DataError(f"no edge has the node {missing[0]!r}", field="supply")
        if total := sum(supply.values()):
            raise DataError(f"expected supplies that add up to 0, found {total}", field="supply")
        n = len(self.edges)
        rows = [number[a] for a, _ in self.edges] + [number[b] for _, b in self.edges]
        values = np.repeat([1.0, -1.0], n)
        A = csr_array((values, (rows, [*range(n)] * 2)), shape=(len(number), n))
        balance = np.array([float(supply.get(node, 0)) for node in number])
        super().__init__(A, balance, balance, time_limit=time_limit)
