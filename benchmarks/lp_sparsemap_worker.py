"""lp-sparsemap on a batch: ``python lp_sparsemap_worker.py KIND BATCH.npz``.

It runs in an environment of its own, on one thread. A structure is solved by its own active set,
which is faster than the graph around it and more exact; a graph of several factors by ADMM with the
parameters that its layer for torch has by default. Limits of iterations are high enough to
converge. It prints the seconds of all solves, those of all vector-Jacobian products, the largest
difference from the marginals that it is given, and the norm of that from the gradients that it is
given, over theirs. Neither torch nor what is built anew for every instance is timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from lpsmap.ad3ext.sequence import PFactorSequence
from lpsmap.ad3ext.tree import PFactorTree
from lpsmap.ad3qp.factor_graph import PFactorGraph

SECONDS = 1.0
LIMIT = 10_000  # iterations; by default 10 of a structure, 1,000 of a graph


class Structure:
    """A sequence or a tree, alone."""

    def __init__(self, kind: str, scores: Any, b: int, arrays: Mapping[str, Any]) -> None:
        n, tags = arrays["shape"].tolist()
        self.scores, self.additional = scores.tolist(), []
        if kind == "sequence":
            self.factor = PFactorSequence()
            self.factor.initialize([tags] * n)
            self.additional = np.tile(arrays["transitions"].ravel(), n - 1).tolist()
        else:
            projective, roots_on_the_diagonal = False, True
            self.factor = PFactorTree()
            self.factor.initialize(projective, roots_on_the_diagonal, n)
        self.graph = PFactorGraph()  # without one a factor does not know its variables
        variables = [self.graph.create_binary_variable() for _ in self.scores]
        self.graph.declare_factor(self.factor, variables, owned_by_graph=True)
        self.graph.set_all_additionals([self.additional])  # which a product takes the number of

    def solve(self) -> Any:
        return self.factor.solve_qp(self.scores, self.additional, max_iter=LIMIT)[0]

    def gradient(self, direction: Any) -> Any:
        return self.factor.jacobian_vec(direction)[0]


class Graph:
    """Binary variables with pairs and logic."""

    def __init__(self, kind: str, scores: Any, b: int, arrays: Mapping[str, Any]) -> None:
        self.graph = PFactorGraph()
        variables = [self.graph.create_binary_variable() for _ in scores]
        for (i, j), both in zip(arrays["edges"], arrays["pairs"][b].tolist()):
            self.graph.create_factor_pair([variables[i], variables[j]], both)
        for literals, low, high in json.loads(arrays["logic"].item()):
            own = [variables[~v if v < 0 else v] for v in literals]
            negated = [v < 0 for v in literals]
            if low == 0:
                self.graph.create_factor_budget(own, high, negated)
            else:
                self.graph.create_factor_logic("XOR" if high == 1 else "OR", own, negated)
        self.graph.set_log_potentials(scores)
        self.graph.set_eta_ad3(0.1)
        self.graph.adapt_eta_ad3(True)
        self.graph.set_residual_threshold_ad3(1e-6)
        self.graph.set_max_iterations_ad3(LIMIT)

    def solve(self) -> Any:
        return self.graph.solve_qp_ad3()[1]

    def gradient(self, direction: Any) -> Any:
        out = np.empty_like(direction)
        self.graph.jacobian_vec(direction, out)
        return out


def main() -> None:
    kind, path = sys.argv[1:]
    arrays = dict(np.load(path))
    make = Graph if kind == "graph" else Structure
    forward = backward = float("inf")
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        problems = [make(kind, scores, b, arrays) for b, scores in enumerate(arrays["scores"])]
        begin = time.perf_counter()
        marginals = [problem.solve() for problem in problems]
        solved = time.perf_counter()
        gradients = [one.gradient(own) for one, own in zip(problems, arrays["directions"])]
        forward = min(forward, solved - begin)
        backward = min(backward, time.perf_counter() - solved)
    expected = arrays["gradients"]
    off = np.linalg.norm(gradients - expected) / np.linalg.norm(expected)
    print(forward, backward, np.abs(marginals - arrays["marginals"]).max(), off)


if __name__ == "__main__":
    main()
