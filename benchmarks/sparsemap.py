"""SparseMAP on batches of 32: does it converge, and what does it cost beside its argmax calls?

The limit of a solve is the number of argmax calls times the cost of one, each measured here on one
thread. Forward is the solve, backward one vector-Jacobian product.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import cores, interleave, ratio, stopwatch
from didyma.execution import on_threads, serial
from didyma.polytope.sparsemap import ToleranceWarning, solve
from didyma.structures import Matching, Sequence, Tree

BATCH = 32
TIMED = (
    *(("sequence", n, tags) for n, tags in ((25, 5), (25, 50), (50, 20), (100, 50))),
    *(("tree", n, 0) for n in (10, 20, 60)),
    *(("matching", n, 0) for n in (10, 50, 100)),
)
OTHER = (("sequence", 100, 5), ("sequence", 100, 20), ("tree", 40, 0), ("matching", 20, 0))
KINDS = ("deviation 0.1", "deviation 1", "deviation 5", "integer", "tied", "weak unaries")
# Milliseconds of the best other package and of a C++ active set with a Cholesky factor, single
# instances, Gaussian scores of deviation 1, on another machine: coarse marks, not run here.
MARKS = {
    ("sequence", 25, 5): (0.245, 0.047),
    ("sequence", 25, 50): (9.65, 0.887),
    ("sequence", 50, 20): (8.0, 0.83),
    ("sequence", 100, 50): (403.0, 20.0),
    ("tree", 10, 0): (0.170, 0.111),
    ("tree", 20, 0): (1.23, 0.59),
    ("tree", 60, 0): (68.0, 8.0),
    ("matching", 10, 0): (0.051, 0.018),
    ("matching", 50, 0): (48.0, 5.2),
    ("matching", 100, 0): (615.0, 45.0),
}


def run(scale: float = 1.0) -> list[Row]:
    return [*_convergence(scale), *_times(scale)]


def instances(
    kind: str, structure: str, n: int, tags: int, batch: int
) -> tuple[Any, Any, dict[str, Any]]:
    """A structure, scores of a batch and additional scores."""
    rng = np.random.default_rng(n)

    def draw(*shape: int) -> Any:
        if kind == "integer":
            return rng.integers(-3, 4, shape).astype(float)
        if kind == "tied":
            return rng.integers(0, 2, shape).astype(float)
        return float(kind.split()[-1]) * rng.standard_normal(shape)

    weak = kind == "weak unaries"
    kind = "deviation 1" if weak else kind
    if structure == "sequence":
        scores = draw(batch, n, tags) * (0.1 if weak else 1.0)
        return Sequence(), scores, {"transitions": draw(tags, tags)}
    if structure == "tree":
        return Tree(), draw(batch, n + 1, n + 1) * (0.01 if weak else 1.0), {}
    return Matching(), draw(batch, n, n) * (0.01 if weak else 1.0), {}


def _name(structure: str, n: int, tags: int) -> str:
    return f"{structure} {n}x{tags}" if tags else f"{structure} {n}"


def _convergence(scale: float) -> Iterator[Row]:
    sizes = TIMED + OTHER if scale >= 1.0 else TIMED[:1] + TIMED[4:5] + TIMED[7:8]
    batch = max(2, round(BATCH * scale))
    for kind in KINDS:
        converged, worst, total = 0, 0.0, 0
        for size in sizes:
            structure, scores, additional = instances(kind, *size, batch)
            layout = structure.lay_out(scores, **additional)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ToleranceWarning)
                solution = solve(layout, structure, executor=on_threads())
            converged += int((solution.gap <= 1e-9).sum())
            worst = max(worst, float(solution.gap.max()))
            total += batch
        share = 100.0 * converged / total
        yield Row.at_least(f"{kind}: {total} instances at a gap of 1e-9", share, "%", 100)
        yield Row(f"{kind}: largest gap, in units of 1e-9", worst / 1e-9, "")


def _times(scale: float) -> Iterator[Row]:
    sizes = TIMED if scale >= 1.0 else TIMED[:1]
    for size in sizes:
        structure, scores, additional = instances("deviation 1", *size, BATCH)
        layout = structure.lay_out(scores, **additional)
        solution = solve(layout, structure, executor=serial)
        weights = np.random.default_rng(0).standard_normal(layout.scores.shape)
        nothing = np.zeros((BATCH, layout.extra.shape[1]))

        def forward(layout: Any = layout, structure: Any = structure) -> Any:
            return solve(layout, structure, executor=serial)

        def both(solve: Any = forward, weights: Any = weights, nothing: Any = nothing) -> None:
            solve().apply_jacobian(weights, nothing)

        def parallel(layout: Any = layout, structure: Any = structure) -> Any:
            return solve(layout, structure, executor=on_threads(2))

        def argmax(layout: Any = layout, structure: Any = structure) -> Any:
            return structure._argmax(layout)

        parallel(), both(), argmax()
        calls = float(solution.n_iter.mean())
        once = stopwatch(both)()
        repeats = max(1, round(0.05 * scale / once))
        seconds = interleave(
            {
                "both": stopwatch(both, repeats),
                "forward": stopwatch(forward, repeats),
                "parallel": stopwatch(parallel, repeats),
                "argmax": stopwatch(argmax, max(1, round(repeats * calls / 4))),
            },
            7 if scale >= 1.0 else 1,
        )
        limit = [calls * s for s in seconds["argmax"]]
        name = _name(*size)
        peer, scratch = MARKS[size]
        milliseconds = 1e3 * min(seconds["forward"]) / BATCH
        yield Row(f"{name}: argmax calls", calls, "")
        yield Row(f"{name}: structures in the support", float(solution.support_size.mean()), "")
        yield Row(f"{name}: one argmax", 1e6 * min(seconds["argmax"]) / BATCH, "µs")
        yield Row(
            f"{name}: forward, C++ mark {scratch:g}, other package {peer:g}", milliseconds, "ms"
        )
        yield Row.at_most(
            f"{name}: forward and backward over calls x argmax",
            ratio(seconds["both"], limit),
            "x",
            2,
        )
        if cores() > 1:
            yield Row.at_least(
                f"{name}: two threads", ratio(seconds["forward"], seconds["parallel"]), "x", 1.6
            )
