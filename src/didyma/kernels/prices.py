"""Prices of rows that couple variables, each of which is optimal by itself at given prices.

    min over lower ≤ y ≤ upper of   Φ(y) = b'y + Σ_i φ_i(x_i),   x = θ − G'y
    φ_i(x) = max over low_i ≤ u ≤ high_i of x u − q/2 u²

is the dual of max θ'u − q/2 ‖u‖² over the box, where a row G_r u ≤ b_r may be broken at a price of
``upper_r`` a unit (∞: never), and is an equation where ``lower_r`` is −∞. Φ is convex and piecewise
quadratic, with the gradient b − G u. One row at a time is minimised exactly; between such sweeps,
Newton's step for all rows whose prices are inside their bounds ends on the optimum as soon as the
piece is found. What is left of the gradient there is rounding.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["respond", "settle"]

SWEEPS = 4  # over rows, between two of Newton's steps
ROUNDING = 1e-14  # error of a row, relative to its terms, that counts as none
NEARLY = 1e-12  # error from which on rounding can be all that is left
PATIENCE = 4  # rounds without progress, then
LIMIT = 100  # rounds without progress at all
FLAT = 1e-14  # curvature that rounding can leave of none


@jit
def settle(
    start, index, g, b, lower, upper, theta, q, low, high, n_rounds, y, u, free, gap, broken, n_iter
):
    """Prices y, variables u and which rows are free, for each instance; ``y`` is where to start.

    ``gap`` is Φ(y) less the objective at u, ``broken`` the most by which u breaks a row that must
    hold. ``n_iter`` becomes −1 where Φ has no minimum: no u obeys the rows.
    """
    for instance in range(len(theta)):
        n_iter[instance] = _settle(
            start,
            index,
            g[instance],
            b[instance],
            lower,
            upper[instance],
            theta[instance],
            q,
            low[instance],
            high[instance],
            n_rounds,
            y[instance],
            u[instance],
            free[instance],
        )
        gap[instance], broken[instance] = _certify(
            start,
            index,
            g[instance],
            b[instance],
            lower,
            upper[instance],
            y[instance],
            u[instance],
        )


@jit
def _settle(start, index, g, b, lower, upper, theta, q, low, high, n_rounds, y, u, free):
    n, m = len(theta), len(b)
    x, inverse, along, every = np.empty(n), np.empty(n), np.empty(n), np.arange(n)
    gradient, step, work = np.empty(m), np.empty(m), np.empty((3, m))
    for r in range(m):
        y[r] = min(max(y[r], lower[r]), upper[r])
    least, stale, rounds = np.inf, 0, 0
    while True:
        _price(start, index, g, theta, y, x)
        for i in range(n):
            u[i], inside = _best(x[i], q, low[i], high[i])
            inverse[i] = 1.0 / q if inside else 0.0
        error = 0.0
        for r in range(m):
            value, size = b[r], abs(b[r])
            for k in range(start[r], start[r + 1]):
                value -= g[k] * u[index[k]]
                size += abs(g[k] * u[index[k]])
            gradient[r] = value
            free[r] = lower[r] < y[r] < upper[r]
            held = (y[r] == lower[r] and value > 0.0) or (y[r] == upper[r] and value < 0.0)
            if not held:
                error = max(error, abs(value) / max(size, 1.0))
        stale = 0 if error < 0.5 * least else stale + 1
        least = min(error, least)
        if error <= ROUNDING or rounds == n_rounds:
            return rounds
        if stale > (PATIENCE if error <= NEARLY else LIMIT):
            return rounds
        rounds += 1
        if rounds > 1:
            for r in range(m):
                gradient[r] = -gradient[r]
            _solve(start, index, g, inverse, free, gradient, step, work, along)
            room, slope = np.inf, 0.0
            along[:] = 0.0
            for r in range(m):
                if free[r] and step[r] != 0.0:
                    for k in range(start[r], start[r + 1]):
                        along[index[k]] += g[k] * step[r]
                    slope += b[r] * step[r]
                    wall = upper[r] if step[r] > 0.0 else lower[r]
                    room = min(room, (wall - y[r]) / step[r])
            length, finite = _march(every, along, slope, 0.0, room, x, q, low, high)
            if not finite:
                return -1
            for r in range(m):
                if free[r]:
                    y[r] = min(max(y[r] + length * step[r], lower[r]), upper[r])
            _price(start, index, g, theta, y, x)
        for _ in range(SWEEPS):
            for r in range(m):
                row = slice(start[r], start[r + 1])
                length, finite = _march(
                    index[row], g[row], b[r], lower[r] - y[r], upper[r] - y[r], x, q, low, high
                )
                if not finite:
                    return -1
                moved = min(max(y[r] + length, lower[r]), upper[r]) - y[r]
                if moved != 0.0:
                    y[r] += moved
                    for k in range(start[r], start[r + 1]):
                        x[index[k]] -= g[k] * moved


@jit
def _certify(start, index, g, b, lower, upper, y, u):
    """Every row's share of the gap is what its price would win: no sum of large terms cancels."""
    gap, broken = 0.0, 0.0
    for r in range(len(b)):
        left = b[r]
        for k in range(start[r], start[r + 1]):
            left -= g[k] * u[index[k]]
        if upper[r] < np.inf:
            gap += y[r] * left if left > 0.0 else (y[r] - upper[r]) * left
        else:
            gap += abs(y[r] * left)
            broken = max(broken, abs(left) if lower[r] == -np.inf else -left)
    return gap, broken


@jit
def respond(start, index, g, q, low, high, u, free, d_theta, d_u):
    """How u moves with θ on the face where it lies, and free rows hold: a symmetric map."""
    n, m = u.shape[1], free.shape[1]
    inverse, along = np.empty(n), np.empty(n)
    right, step, work = np.empty(m), np.empty(m), np.empty((3, m))
    for instance in range(len(u)):
        row_g, row_free = g[instance], free[instance]
        for i in range(n):
            inside = low[instance, i] < u[instance, i] < high[instance, i]
            inverse[i] = 1.0 / q if inside else 0.0
        for r in range(m):
            right[r] = 0.0
            for k in range(start[r], start[r + 1]):
                right[r] += row_g[k] * inverse[index[k]] * d_theta[instance, index[k]]
        _solve(start, index, row_g, inverse, row_free, right, step, work, along)
        for i in range(n):
            along[i] = d_theta[instance, i]
        for r in range(m):
            if row_free[r]:
                for k in range(start[r], start[r + 1]):
                    along[index[k]] -= row_g[k] * step[r]
        for i in range(n):
            d_u[instance, i] = inverse[i] * along[i]


@jit
def _best(x, q, low, high):
    """The variable that is optimal at x, and whether it lies inside its bounds."""
    if x <= q * low:
        return low, False
    if x >= q * high:
        return high, False
    return x / q, True


@jit
def _price(start, index, g, theta, y, x):
    x[:] = theta
    for r in range(len(y)):
        for k in range(start[r], start[r + 1]):
            x[index[k]] -= g[k] * y[r]


@jit
def _march(index, g, b, least, most, x, q, low, high):
    """The step in [least, most] that minimises Φ along a direction, and whether there is one.

    The derivative b − Σ g u(x − step g) never falls, and is linear from one place where a variable
    meets a bound to the next.
    """
    derivative = b
    for k in range(len(index)):
        i = index[k]
        derivative -= g[k] * _best(x[i], q, low[i], high[i])[0]
    if derivative == 0.0:
        return 0.0, True
    way = -1.0 if derivative > 0.0 else 1.0
    limit = -least if way < 0.0 else most
    step = 0.0
    while True:
        bend, end = 0.0, np.inf
        for k in range(len(index)):
            i, speed = index[k], -way * g[k]
            if speed == 0.0:
                continue
            enters, leaves = (q * low[i] - x[i]) / speed, (q * high[i] - x[i]) / speed
            if speed < 0.0:
                enters, leaves = leaves, enters
            if enters > step:
                end = min(end, enters)
            elif leaves > step:
                end = min(end, leaves)
                bend += g[k] * g[k] / q
        wanted = step + abs(derivative) / bend if bend > 0.0 else np.inf
        if wanted <= min(end, limit):
            return way * wanted, True
        if end >= limit:
            return way * limit, limit < np.inf
        derivative += way * bend * (end - step)
        if derivative * way >= 0.0:  # rounding has gone past the minimum
            return way * end, True
        step = end


@jit
def _solve(start, index, g, inverse, free, right, step, work, along):
    """G D G' step = right over free rows, D = diag(inverse), by conjugate gradients.

    A direction without curvature is taken as it is if it is the first.
    """
    m = len(right)
    residual, direction, product = work[0], work[1], work[2]
    norm, n_free, stiffest = 0.0, 0, 0.0
    for r in range(m):
        step[r] = product[r] = 0.0
        residual[r] = right[r] if free[r] else 0.0
        direction[r] = residual[r]
        norm += residual[r] * residual[r]
        n_free += free[r]
    for i in range(len(inverse)):
        stiffest = max(stiffest, inverse[i])
    first = norm
    if norm == 0.0:
        return
    for iteration in range(2 * n_free + 10):
        along[:] = 0.0
        for r in range(m):
            if free[r]:
                for k in range(start[r], start[r + 1]):
                    along[index[k]] += g[k] * direction[r]
        size, bend = 0.0, 0.0
        for i in range(len(along)):
            size += along[i] * along[i]
            along[i] *= inverse[i]
        for r in range(m):
            if free[r]:
                product[r] = 0.0
                for k in range(start[r], start[r + 1]):
                    product[r] += g[k] * along[index[k]]
                bend += product[r] * direction[r]
        if bend <= FLAT * size * stiffest:
            if iteration == 0:
                step[:] = direction
            return
        length, before = norm / bend, norm
        norm = 0.0
        for r in range(m):
            step[r] += length * direction[r]
            residual[r] -= length * product[r]
            norm += residual[r] * residual[r]
        if norm <= 1e-30 * first:
            return
        for r in range(m):
            direction[r] = residual[r] + norm / before * direction[r]
