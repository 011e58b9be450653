"""Products with binned rows: one byte says in which bin of its column a value is.

A column has a weight for each bin but bin 0. Where it *runs*, as the indicators 1[x > edge] do, a
bin counts with the weights of all bins before it: with T the running sums of w, a row's score is
Σ_j T[b_j, j], and the rows combined by coefficients are a histogram of these for each column,
summed from its end. The last bin, of missing values, and the bins of columns that do not run stand
alone.

Tables are flat, of shape (bins, columns): the columns of a bin are neighbours, and so sums over
bins vectorise. X is ``(bins, running, units, signs)``, a unit being the value of an indicator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit, jit_sum
from didyma.kernels.rows import axpy, dot, zero

__all__ = [
    "assign",
    "combine_binned",
    "count",
    "score_binned",
    "sweep",
    "sweep_thoroughly",
    "tabulate",
]

TRANSFERS = 1000  # of weight between planes, at most, in a thorough visit

answer: Any = None  # global name of the template: the oracle of a query


@jit
def tabulate(w, running, units, table):
    """The running sums of weights: what each bin of each column adds to a score."""
    d = running.shape[0]
    height = table.shape[0] // d
    for j in range(d):
        table[j] = 0.0
    for m in range(1, height - 1):
        for j in range(d):
            table[m * d + j] = running[j] * table[(m - 1) * d + j] + units[j] * w[(m - 1) * d + j]
    for j in range(d):
        table[(height - 1) * d + j] = units[j] * w[(height - 2) * d + j]


@jit_sum
def _look_up(bins, table):
    d = np.uint32(bins.shape[0])
    total = 0.0
    for j in range(d):
        total += table[np.uint32(bins[j]) * d + np.uint32(j)]
    return total


@jit
def _score(bins, rows, table, out):
    for r in range(rows.shape[0]):
        out[r] = _look_up(bins[rows[r]], table)


@jit
def count(bins, rows, coef, table):
    """Add a histogram of coefficients for each column; rows with coefficient zero are not read."""
    d = np.uint64(bins.shape[1])
    for r in range(rows.shape[0]):
        c = coef[r]
        if c != 0.0:
            row = bins[rows[r]]
            for j in range(d):
                table[np.uint64(row[j]) * d + np.uint64(j)] += c


@jit_sum
def _scale(units, own):
    """Scale the bins of one number in place; returns the sum of their squares."""
    total = 0.0
    for j in range(own.shape[0]):
        x = units[j] * own[j]
        own[j] = x
        total += x * x
    return total


@jit_sum
def _scale_and_add(running, units, behind, own):
    """The same where bins run, with the sums behind them added."""
    total = 0.0
    for j in range(own.shape[0]):
        x = running[j] * behind[j] + units[j] * own[j]
        own[j] = x
        total += x * x
    return total


@jit
def _sum_from_end(running, units, table):
    """Turn histograms into the weights' side of a product, in place; returns its squared norm."""
    d = running.shape[0]
    end = table.shape[0]
    norm = _scale(units, table[end - d :]) + _scale(units, table[end - 2 * d : end - d])
    for at in range(end - 3 * d, 0, -d):
        norm += _scale_and_add(running, units, table[at + d : at + 2 * d], table[at : at + d])
    return norm


@jit
def score_binned(X, rows, w, out):
    """`score_dense` for binned rows."""
    bins, running, units, _ = X
    table = np.empty(w.shape[0] + running.shape[0])
    tabulate(w, running, units, table)
    _score(bins, rows, table, out)


@jit
def combine_binned(X, rows, coef, out):
    """`combine_dense` for binned rows."""
    bins, running, units, _ = X
    d = running.shape[0]
    table = np.zeros(out.shape[0] + d)
    count(bins, rows, coef, table)
    _sum_from_end(running, units, table)
    for at in range(out.shape[0]):
        out[at] += table[at + d]


@jit
def _run_on(running, units, signs, w, before, table):
    """Values of bins from those of the bins before; a weight of the wrong sign counts as zero."""
    for j in range(table.shape[0]):
        x = 0.0 if w[j] * signs[j] < 0.0 else w[j]
        table[j] = running[j] * before[j] + units[j] * x


@jit
def _step(size, running, units, signs, direction, v, table):
    """V −= size · direction, which is cleared; the table becomes that of v's feasible part.

    ``signs`` are 1 and −1 for columns whose weights must not be negative, or positive. Loops over
    few arrays each, as one over many is not vectorised.
    """
    d = running.shape[0]
    axpy(-size, direction[d:], v)
    zero(direction)
    end = v.shape[0]
    for at in range(0, end - d, d):
        _run_on(
            *(running, units, signs, v[at : at + d]),
            *(table[at : at + d], table[at + d : at + 2 * d]),
        )
    for j in range(d):
        table[end + j] = units[j] * v[end - d + j]


@jit
def _slot(planes, losses, alpha, own):
    """A free place among the planes of a query; the two lightest are merged if there is none."""
    light, next_light = 0, 1
    if alpha[1] < alpha[0]:
        light, next_light = 1, 0
    for k in range(2, alpha.shape[0]):
        if alpha[k] < alpha[light]:
            light, next_light = k, light
        elif alpha[k] < alpha[next_light]:
            next_light = k
    if alpha[light] > 0.0:
        weight = alpha[light] + alpha[next_light]
        share = alpha[light] / weight
        for r in range(own.shape[0]):
            plane = planes[own[r]]
            plane[next_light] = share * plane[light] + (1.0 - share) * plane[next_light]
        losses[next_light] = share * losses[light] + (1.0 - share) * losses[next_light]
        alpha[next_light] = weight
        alpha[light] = 0.0
    return light


@jit
def _slacks(planes, losses, own, scores, slack):
    """The value of each plane of a query."""
    for k in range(slack.shape[0]):
        slack[k] = losses[k]
    for r in range(own.shape[0]):
        plane = planes[own[r]]
        for k in range(slack.shape[0]):
            slack[k] += plane[k] * scores[r]


@jit
def _leave(alpha, slack, new, leaving):
    """How much weight each plane may give to the new one: all of it, if it is the least tight.

    Returns the gap of the query and the slope of the dual along that change.
    """
    gap = worst = slope = 0.0
    for k in range(alpha.shape[0]):
        short = slack[new] - slack[k]
        gap += alpha[k] * short
        if alpha[k] > 0.0 and short > worst:
            worst = short
    for k in range(alpha.shape[0]):
        short = slack[new] - slack[k]
        leaving[k] = alpha[k] * short / worst if short > 0.0 and worst > 0.0 else 0.0
        slope += leaving[k] * short
    return gap, slope


def sweep(problem, order, planes, losses, alpha, scales, gaps, v, table):
    """One pass of block-coordinate Frank-Wolfe, in the space of rows.

    The planes of query i are columns of coefficients of its rows, with losses, and with weights α
    on the simplex. A visit moves weight to the most violated cut, from each plane in proportion to
    what it lacks of that cut's value; how far is told by one histogram of what would change.
    """
    (bins, running, units, signs), (rows, starts, _), _ = problem
    direction = np.empty(table.shape[0])
    slack = np.empty(planes.shape[1])
    leaving = np.empty(planes.shape[1])
    zero(direction)
    for i in order:
        own = rows[starts[i] : starts[i + 1]]
        scores = np.empty(own.shape[0])
        coef = np.empty(own.shape[0])
        _score(bins, own, table, scores)
        new = _slot(planes, losses[i], alpha[i], own)
        losses[i, new] = answer(problem, i, scores, coef)
        for r in range(own.shape[0]):
            planes[own[r], new] = coef[r]
        _slacks(planes, losses[i], own, scores, slack)
        gap, slope = _leave(alpha[i], slack, new, leaving)
        gaps[i] = scales[i] * gap
        if slope <= 0.0:
            continue
        for r in range(own.shape[0]):
            plane = planes[own[r]]
            change = 0.0
            for k in range(plane.shape[0]):
                change += leaving[k] * (plane[new] - plane[k])
            coef[r] = change
        count(bins, own, coef, direction)
        curvature = scales[i] * _sum_from_end(running, units, direction)
        size = slope / curvature if slope < curvature else 1.0
        for k in range(leaving.shape[0]):
            alpha[i, k] -= size * leaving[k]
            alpha[i, new] += size * leaving[k]
        _step(scales[i] * size, running, units, signs, direction, v, table)


@jit
def _transfer(alpha, slack, gram, scale, move):
    """Move weight from the least tight plane in use to the tightest, as often as that pays."""
    n = alpha.shape[0]
    for k in range(n):
        move[k] = 0.0
    for _ in range(TRANSFERS):
        best, worst = 0, -1
        for k in range(n):
            if slack[k] > slack[best]:
                best = k
            if alpha[k] > 0.0 and (worst < 0 or slack[k] < slack[worst]):
                worst = k
        gap = slack[best] - slack[worst]
        if gap <= 1e-14 * (1.0 + abs(slack[best])):
            break
        curvature = scale * (gram[best, best] + gram[worst, worst] - 2.0 * gram[best, worst])
        size = alpha[worst] if gap >= alpha[worst] * curvature else gap / curvature
        alpha[worst] -= size
        alpha[best] += size
        move[worst] -= size
        move[best] += size
        for k in range(n):
            slack[k] -= size * scale * (gram[k, best] - gram[k, worst])


def sweep_thoroughly(problem, order, planes, losses, alpha, scales, gaps, v, table):
    """The same pass with all planes of a query weighed against each other, by their Gram matrix.

    It costs a histogram for each plane. Few queries need it, most of all one that is alone.
    """
    (bins, running, units, signs), (rows, starts, _), _ = problem
    n_planes = planes.shape[1]
    d = running.shape[0]
    direction = np.empty(table.shape[0])
    image_table = np.empty(table.shape[0])
    slack = np.empty(n_planes)
    move = np.empty(n_planes)
    gram = np.empty((n_planes, n_planes))
    zero(direction)
    for i in order:
        own = rows[starts[i] : starts[i + 1]]
        n = own.shape[0]
        scores = np.empty(n)
        coef = np.empty(n)
        image = np.empty(n)
        _score(bins, own, table, scores)
        new = _slot(planes, losses[i], alpha[i], own)
        losses[i, new] = answer(problem, i, scores, coef)
        for r in range(n):
            planes[own[r], new] = coef[r]
        _slacks(planes, losses[i], own, scores, slack)
        gaps[i] = 0.0
        for k in range(n_planes):
            gaps[i] += scales[i] * alpha[i, k] * (slack[new] - slack[k])
            for r in range(n):
                coef[r] = planes[own[r], k]
            zero(direction)
            count(bins, own, coef, direction)
            _sum_from_end(running, units, direction)
            tabulate(direction[d:], running, units, image_table)
            _score(bins, own, image_table, image)
            for m in range(n_planes):
                gram[k, m] = 0.0
                for r in range(n):
                    gram[k, m] += image[r] * planes[own[r], m]
        _transfer(alpha[i], slack, gram, scales[i], move)
        for r in range(n):
            coef[r] = dot(planes[own[r]], move)
        zero(direction)
        count(bins, own, coef, direction)
        _sum_from_end(running, units, direction)
        _step(scales[i], running, units, signs, direction, v, table)


@jit
def assign(X, edges, guesses, low, scale, out):
    """The number of edges below each value of X; a missing one (NaN) gets the number of all edges.

    ``edges[j]`` ascend to infinity. ``guesses[j]`` are lower bounds for values in the cells of an
    even grid that begins at ``low[j]`` and has ``scale[j]`` cells a unit; one more look decides
    nearly always.
    """
    n_edges, n_cells = edges.shape[1], guesses.shape[1]
    for r in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[r, j]
            if x != x:
                out[r, j] = n_edges
                continue
            cell = (x - low[j]) * scale[j]
            cell = cell if cell > 0.0 else 0.0
            cell = cell if cell < n_cells - 1.0 else n_cells - 1.0
            m = np.uint64(guesses[j, np.int64(cell)])
            m = m + np.uint64(1) if x > edges[j, m] else m
            while x > edges[j, m]:
                m += np.uint64(1)
            out[r, j] = m
