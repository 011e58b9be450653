"""The active set over a batch of structures: outputs as rows of part indices.

Each function here is a template over global names, like `polytope.active_set.template`:
``kernel`` is the structure's argmax, ``shared`` counts shared parts, ``solve`` is a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from didyma.execution import Executor
from didyma.kernels.jit import bind, specialise
from didyma.kernels.vertices import (
    combine,
    copy_row,
    difference,
    rooms,
    shared_aligned,
    shared_anywhere,
    totals,
)
from didyma.polytope.active_set import FULL, OPTIMAL, STALLED, template

__all__ = ["IMPOSSIBLE", "compiled_solver", "python_solver", "shards"]

ROUNDING = 4e-16  # a sum of scores is known to this, relative to its terms
CAPACITY = 32  # vertices that a solver has room for at first
IMPOSSIBLE = 4  # no output has a finite score

kernel: Any = None
shared: Any = None
solve: Any = None
oracle: Any = None
weigh: Any = None


class Instance(NamedTuple):
    """One instance and the vertices that its solver holds, one per slot."""

    scores: Any
    extra: Any
    dims: Any
    size: Any
    work: Any
    index: Any
    parts: Any
    extra_parts: Any
    counts: Any
    theta: Any
    noise: Any
    current: Any  # scores − u
    marks: Any


def vertex_argmax(problem, u, spare):  # type: ignore[no-untyped-def]
    """Best vertex at scores − u, written to slot ``spare``."""
    parts, extra_parts = problem.parts[spare], problem.extra_parts[spare]
    difference(problem.scores, u, problem.current)
    problem.counts[spare] = kernel(
        problem.current,
        problem.extra,
        problem.dims,
        problem.size,
        problem.work,
        problem.index,
        parts,
        extra_parts,
    )
    weigh(problem, spare)
    return spare


def vertex_weigh(problem, slot):  # type: ignore[no-untyped-def]
    """Score of a vertex, and what rounding may have done to it.

    Scores that are not its own have no part in that: a mask is as good as −∞.
    """
    parts, extra_parts = problem.parts[slot], problem.extra_parts[slot]
    score, magnitude = totals(problem.scores, parts)
    more, further = totals(problem.extra, extra_parts)
    problem.theta[slot] = score + more
    problem.noise[slot] = ROUNDING * (magnitude + further + problem.counts[slot])


def vertex_gram(problem, slot, active, n, out):  # type: ignore[no-untyped-def]
    """Inner products of a vertex with the active ones and with itself."""
    count = problem.counts[slot]
    shared(problem.parts, count, slot, active, n, problem.marks, out)
    return float(count)


def vertex_combine(problem, active, y, n, u, products):  # type: ignore[no-untyped-def]
    """Compute u = M y and the products M'u; returns ‖u‖²."""
    return combine(problem.parts, active, y, n, u, products)


def solve_batch(  # type: ignore[no-untyped-def]
    scores,
    extra,
    dims,
    sizes,
    n_work,
    n_index,
    n_parts,
    n_extra,
    start,
    start_parts,
    start_extra,
    start_weights,
    tol,
    stop,
    max_iter,
    marginals,
    gaps,
    iterations,
    statuses,
    support,
):
    """Solve each instance; returns the vertices of all, one after the other, and their weights.

    Rows ``start[b]:start[b + 1]`` of the start arrays are where instance b begins; none means at
    its argmax. A solver ends at a gap of ``stop``; one that can go no further is content with
    ``tol``. One that runs out of slots goes on with twice as many; the next instance begins
    with as few as the first, so that no instance notices the others.
    """
    n_instances, dimension = scores.shape
    work = np.zeros(n_work)
    index = np.zeros(n_index, np.int64)
    current = np.empty(dimension)
    marks = np.zeros(dimension, np.uint8)
    capacity = CAPACITY
    parts, extra_parts, counts, theta, noise, active, y = rooms(capacity, n_parts, n_extra)
    room = 4 * n_instances + capacity
    found_parts = np.empty((room, n_parts), np.int32)
    found_extra = np.empty((room, n_extra), np.int32)
    found_weights = np.empty(room)
    n_found = 0
    for b in range(n_instances):
        instance_extra = extra[b if extra.shape[0] > 1 else 0]
        u = marginals[b]
        for i in range(n_work):
            work[i] = 0.0
        for i in range(n_index):
            index[i] = 0
        if capacity > CAPACITY:
            capacity = CAPACITY
            parts, extra_parts, counts, theta, noise, active, y = rooms(capacity, n_parts, n_extra)
        for i in range(capacity + 1):  # what a longer instance left behind
            for j in range(n_parts):
                parts[i, j] = -1
            for j in range(n_extra):
                extra_parts[i, j] = -1
        n = 0
        position = start[b]
        total_iterations = 0
        restarted = False
        while True:
            if n + start[b + 1] - position + 1 > capacity:
                # more slots: the active vertices move to the first ones
                capacity = 2 * max(capacity, n + start[b + 1] - position)
                old_parts, old_extra, old_counts, old_theta = parts, extra_parts, counts, theta
                old_noise, old_active, old_y = noise, active, y
                parts, extra_parts, counts, theta, noise, active, y = rooms(
                    capacity, n_parts, n_extra
                )
                for i in range(n):
                    slot = old_active[i]
                    copy_row(old_parts, slot, parts, i)
                    copy_row(old_extra, slot, extra_parts, i)
                    counts[i] = old_counts[slot]
                    theta[i] = old_theta[slot]
                    noise[i] = old_noise[slot]
                    active[i] = i
                    y[i] = old_y[i]
            problem = Instance(
                scores[b],
                instance_extra,
                dims,
                sizes[b],
                work,
                index,
                parts,
                extra_parts,
                counts,
                theta,
                noise,
                current,
                marks,
            )
            while position < start[b + 1]:  # vertices to begin with, if they are still possible
                copy_row(start_parts, position, parts, n)
                copy_row(start_extra, position, extra_parts, n)
                counts[n] = 0
                for j in range(n_parts):
                    counts[n] += parts[n, j] >= 0
                weigh(problem, n)
                active[n] = n
                y[n] = start_weights[position]
                position += 1
                if theta[n] > -np.inf:
                    n += 1
            if n == 0:
                for i in range(dimension):
                    u[i] = 0.0
                oracle(problem, u, 0)
                total_iterations = 1
                active[0] = 0
                y[0] = 1.0
                n = 1
                if counts[0] < 0 or theta[0] == -np.inf:
                    n = 0
                    statuses[b] = IMPOSSIBLE
                    break
            n, _, gap, calls, status = solve(
                problem,
                theta,
                noise,
                active,
                y,
                n,
                u,
                max(1.0, float(counts[active[0]])),
                stop,
                max_iter - total_iterations,
            )
            total_iterations += calls
            gaps[b] = gap
            statuses[b] = OPTIMAL if gap <= tol and status != FULL else status
            if status == FULL:
                continue
            if statuses[b] == STALLED and not restarted:
                restarted = True  # rounding may have spoilt the factor: try once with a fresh one
                continue
            break
        iterations[b] = total_iterations
        support[b] = n
        if n_found + n > room:
            room = 2 * (n_found + n)
            kept_parts, kept_extra, kept_weights = found_parts, found_extra, found_weights
            found_parts = np.empty((room, n_parts), np.int32)
            found_extra = np.empty((room, n_extra), np.int32)
            found_weights = np.empty(room)
            for i in range(n_found):
                copy_row(kept_parts, i, found_parts, i)
                copy_row(kept_extra, i, found_extra, i)
                found_weights[i] = kept_weights[i]
        for i in range(n):
            slot = active[i]
            copy_row(parts, slot, found_parts, n_found)
            copy_row(extra_parts, slot, found_extra, n_found)
            found_weights[n_found] = y[i]
            n_found += 1
    return found_parts[:n_found], found_extra[:n_found], found_weights[:n_found]


@cache
def compiled_solver(structure_kernel: Any, aligned: bool, method: Callable[..., Any]) -> Any:
    """`solve_batch` compiled for one structure's kernel and one solver's template."""
    name = f"{method.__module__.rpartition('.')[2]}_{method.__name__}_{structure_kernel.__name__}"
    weighed = specialise(vertex_weigh, f"{name}_weigh")
    argmax = specialise(vertex_argmax, f"{name}_argmax", kernel=structure_kernel, weigh=weighed)
    gram = specialise(
        vertex_gram, f"{name}_gram", shared=shared_aligned if aligned else shared_anywhere
    )
    combined = specialise(vertex_combine, f"{name}_combine")
    solver = specialise(method, name, argmax=argmax, gram=gram, combine=combined)
    return specialise(solve_batch, f"{name}_batch", solve=solver, oracle=argmax, weigh=weighed)


def python_solver(kernel: Callable[..., int], method: Callable[..., Any] = template) -> Any:
    """The same around an argmax in plain Python."""
    argmax = bind(vertex_argmax, "argmax", kernel=kernel, weigh=vertex_weigh)
    gram = bind(vertex_gram, "gram", shared=shared_anywhere)
    solver = bind(method, "solver", argmax=argmax, gram=gram, combine=vertex_combine)
    return bind(solve_batch, "batch", solve=solver, oracle=argmax, weigh=vertex_weigh)


def shards(n: int, executor: Executor) -> list[slice]:
    """The instances below n in one run for each thread of an executor: each costs microseconds.

    >>> from didyma.execution import serial
    >>> shards(3, serial)
    [slice(0, 3, None)]
    """
    count = max(min(n, getattr(executor, "n_jobs", 1)), 1)
    bounds = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]
