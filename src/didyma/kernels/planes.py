"""The dual of one example over the few planes (cuts) that are remembered of it.

An example's risk is max_k b_k + g_k·w; its dual variables are weights α on the simplex over its
planes, and it contributes −s Σ α_k g_k to w, where s = C c_i. Slots of example i: ``g[i, k]``,
``b[i, k]``, ``alpha[i, k]`` and the Gram matrix ``gram[i]`` of its planes; ``size[i]`` are in use.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.rows import axpy, dot

__all__ = ["insert", "optimise", "sweep_planes"]

STEPS = 10  # pairwise steps per visit: enough for the handful of planes that matter


@jit
def optimise(i, g, b, alpha, gram, size, s, w, slack, move):
    """Pairwise Frank-Wolfe steps on one example, with its Gram matrix.

    Returns the example's gap before (the largest slack less the mean under α) and the increase of
    the dual.
    """
    n = size[i]
    before = increase = 0.0
    for k in range(n):
        slack[k] = b[i, k] + dot(g[i, k], w)
        before -= alpha[i, k] * slack[k]
        move[k] = 0.0
    best = 0
    for k in range(n):
        if slack[k] > slack[best]:
            best = k
    before += slack[best]
    for _ in range(STEPS):
        best, worst = 0, -1
        for k in range(n):
            if slack[k] > slack[best]:
                best = k
            if alpha[i, k] > 0.0 and (worst < 0 or slack[k] < slack[worst]):
                worst = k
        gap = slack[best] - slack[worst]
        if gap <= 1e-14 * (1.0 + abs(slack[best])):
            break
        curvature = s * (gram[i, best, best] + gram[i, worst, worst] - 2.0 * gram[i, best, worst])
        step = alpha[i, worst]
        if gap < step * curvature:
            step = gap / curvature
        increase += s * step * (gap - 0.5 * step * curvature)
        alpha[i, worst] = 0.0 if step == alpha[i, worst] else alpha[i, worst] - step
        alpha[i, best] += step
        move[best] += step
        move[worst] -= step
        for k in range(n):
            slack[k] -= step * s * (gram[i, k, best] - gram[i, k, worst])
    for k in range(n):
        if move[k] != 0.0:
            axpy(-s * move[k], g[i, k], w)
    return before, increase


@jit
def _fill_gram(i, g, gram, n, slot):
    for k in range(n):
        product = dot(g[i, k], g[i, slot])
        gram[i, slot, k] = product
        gram[i, k, slot] = product


@jit
def _merge(i, g, b, alpha, gram, first, second):
    """Replace two planes by their weighted mean, itself a plane; slot `first` becomes free."""
    weight = alpha[i, first] + alpha[i, second]
    share = alpha[i, first] / weight
    for f in range(g.shape[2]):
        g[i, second, f] = share * g[i, first, f] + (1.0 - share) * g[i, second, f]
    b[i, second] = share * b[i, first] + (1.0 - share) * b[i, second]
    alpha[i, first] = 0.0
    alpha[i, second] = weight
    _fill_gram(i, g, gram, g.shape[1], second)


@jit
def insert(i, g, b, alpha, gram, size, direction, loss):
    """Remember a new plane, in place of an unused one or after merging the two lightest."""
    n = size[i]
    if n < g.shape[1]:
        slot = n
        size[i] = n + 1
    else:
        light, next_light = 0, 1
        if alpha[i, 1] < alpha[i, 0]:
            light, next_light = 1, 0
        for k in range(2, n):
            if alpha[i, k] < alpha[i, light]:
                light, next_light = k, light
            elif alpha[i, k] < alpha[i, next_light]:
                next_light = k
        if alpha[i, light] > 0.0:
            _merge(i, g, b, alpha, gram, light, next_light)
        slot = light
    for f in range(g.shape[2]):
        g[i, slot, f] = direction[f]
    b[i, slot] = loss
    alpha[i, slot] = 0.0
    _fill_gram(i, g, gram, size[i], slot)


@jit
def sweep_planes(order, g, b, alpha, gram, size, scales, w):
    """One pass over remembered planes only: no oracle is called and no row is read.

    Returns the sum of the examples' gaps, each when its turn came, and the increase of the dual.
    """
    slack = np.empty(g.shape[1])
    move = np.empty(g.shape[1])
    total = increase = 0.0
    for i in order:
        gap, gain = optimise(i, g, b, alpha, gram, size, scales[i], w, slack, move)
        total += scales[i] * gap
        increase += gain
    return total, increase
