"""The best point that all factors of a graph agree on, by a linear programme over their outputs."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import linprog

from didyma.polytope.active_set import project


def allowed_by(constraint):
    """A constraint as a factor: its variables, their allowed states, and no gains."""
    listed = np.array(list(product((0, 1), repeat=len(constraint.variables))))
    count = (listed != constraint.negated).sum(axis=1)
    listed = listed[(constraint.low <= count) & (count <= constraint.high)]
    return constraint.indices, listed, np.zeros(len(listed))


def projection(scores, factors):
    """Argmax of scores·u + Σ gains·p − ½‖u‖² where each factor has a distribution p over its rows.

    A factor is a scope (the places of u that it knows), 0/1 rows over the scope, and a gain of each
    row; u is the mean of the rows of each factor. Raises LookupError where there is no such point.
    """
    n = len(scores)
    c = np.concatenate([scores, *(gains for _, _, gains in factors)])
    A, b, start = [], [], n
    for scope, listed, _ in factors:
        rows = np.zeros((len(scope) + 1, len(c)))
        rows[:-1, start : start + len(listed)] = listed.T
        rows[np.arange(len(scope)), scope] = -1
        rows[-1, start : start + len(listed)] = 1
        A.append(rows)
        b += [0.0] * len(scope) + [1.0]
        start += len(listed)
    limits = [(0, 0) if gain == -np.inf else (0, 1) for gain in c]
    c = np.where(np.isneginf(c), 0.0, c)

    def oracle(u):
        gains = c.copy()
        gains[:n] -= u
        equations = (np.vstack(A), b) if A else (None, None)
        found = linprog(
            -gains, A_eq=equations[0], b_eq=equations[1], bounds=limits, method="highs-ds"
        )
        if found.status == 2:
            raise LookupError
        return found.x[:n], float(c @ found.x)

    return project(oracle, n).point
