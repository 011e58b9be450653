"""Variable elimination as a circuit of maxima of sums (see `didyma.structures.elimination`).

``dims`` is ``[n_states, n_tables]``, five integers per table (outputs, terms, first value, place,
whether it is a root) and the tables' entries. At ``place`` stand the table that each term comes
from (−1 for scores), where each output's rows begin, and the rows: indices of values to be added.
Values are the scores, the additional scores and then the outputs of the tables.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["elimination"]

HEADER = 2
FIELDS = 5


@jit
def _read(scores, extra, values):
    """Scores and additional scores are the first values."""
    for i in range(scores.shape[0]):
        values[i] = scores[i]
    for i in range(extra.shape[0]):
        values[scores.shape[0] + i] = extra[i]


@jit
def _value(values, dims, at):
    """The value named at ``at``; unsigned indices need no test for negative ones."""
    return values[np.uint64(dims[np.uint64(at)])]


@jit
def _add(values, dims, at, n_terms):
    """Sum of one row."""
    total = _value(values, dims, at)
    for t in range(1, n_terms):
        total += _value(values, dims, at + t)
    return total


@jit
def _highest(values, dims, start, stop, n_terms):
    """The highest sum of the rows from ``start`` to ``stop``."""
    best = -np.inf
    if n_terms == 2:  # the common case, without a loop over terms
        for at in range(start, stop, 2):
            total = _value(values, dims, at) + _value(values, dims, at + 1)
            best = total if total > best else best
    else:
        for at in range(start, stop, n_terms):
            total = _add(values, dims, at, n_terms)
            best = total if total > best else best
    return best


@jit
def elimination(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.FactorGraph`: max-sum upwards, then the best rows downwards."""
    d, f = scores.shape[0], extra.shape[0]
    n_states, n_tables = dims[0], dims[1]
    _read(scores, extra, work)
    for table in range(n_tables):
        field = HEADER + FIELDS * table
        n_out, n_terms, out, place = dims[field], dims[field + 1], dims[field + 2], dims[field + 3]
        first = place + n_terms
        rows = first + n_out + 1
        for o in range(n_out):
            start = rows + dims[first + o] * n_terms
            stop = rows + dims[first + o + 1] * n_terms
            work[out + o] = _highest(work, dims, start, stop, n_terms)
        if dims[field + 4] and work[out] == -np.inf:
            return -1
        index[table] = 0
    for table in range(n_tables - 1, -1, -1):
        field = HEADER + FIELDS * table
        n_out, n_terms, out, place = dims[field], dims[field + 1], dims[field + 2], dims[field + 3]
        first = place + n_terms
        o = index[table]  # the output that the table above has used
        at = first + n_out + 1 + dims[first + o] * n_terms
        while _add(work, dims, at, n_terms) < work[out + o]:
            at += n_terms
        for t in range(n_terms):
            term, source = dims[at + t], dims[place + t]
            if term < d:
                parts[term // n_states] = term
            elif term < d + f:
                extra_parts[(term - d) // (n_states * n_states)] = term - d
            else:
                index[source] = term - dims[HEADER + FIELDS * source + 2]
    return d // n_states
