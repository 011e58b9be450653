"""SparseMAP on batches of 32: does it converge, and what does it cost beside its argmax calls?

The limit of a solve is the number of argmax calls times the cost of one, each measured here on one
thread. An argmax is timed twice: at the scores, and at scores − u for the points u at which the
solver calls it, where it may take several times as long. Forward is the solve, backward one
vector-Jacobian product, both on arrays and as a layer of torch in single precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.row import Row
from benchmarks.timing import cores, interleave, measure, stopwatch, torch_threads
from didyma.nn import SparseMAP
from didyma.polytope.sparsemap import SolverOptions, ToleranceWarning, solve
from didyma.structures import Chain, Matching, Tree
from didyma.structures.layout import Layout

BATCH = 32
FACE = SolverOptions(n_jobs=1, face=True)
TIMED = (
    *(("sequence", n, tags) for n, tags in ((25, 5), (25, 50), (50, 20), (100, 50))),
    *(("tree", n, 0) for n in (10, 20, 60)),
    *(("matching", n, 0) for n in (10, 50, 100)),
)
OTHER = (("sequence", 100, 5), ("sequence", 100, 20), ("tree", 40, 0), ("matching", 20, 0))
VISITED = 24  # calls of a solve at whose points an argmax is timed
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
    with torch_threads(1):
        return [*_convergence(scale), *_faces(scale), *_starts(scale), *_times(scale)]


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
        return Chain(), scores, {"transitions": draw(tags, tags)}
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
                solution = solve(layout, structure)
            converged += int((solution.gap <= 1e-9).sum())
            worst = max(worst, float(solution.gap.max()))
            total += batch
        share = 100.0 * converged / total
        yield Row.at_least(f"{kind}: {total} instances at a gap of 1e-9", share, "%", 100)
        yield Row(f"{kind}: largest gap, in units of 1e-9", worst / 1e-9, "")


def _faces(scale: float) -> Iterator[Row]:
    """How many gradients a gap of 1e-9 leaves wrong, and what it costs to end on the face."""
    for name, n, tags in (
        ("sequence", 25, 5),
        ("tree", 10, 0),
        ("tree", 20, 0),
        ("matching", 10, 0),
    ):
        for kind in ("deviation 1", "deviation 0.3"):
            structure, scores, additional = instances(
                kind, name, n, tags, max(2, round(512 * scale))
            )
            layout = structure.lay_out(scores, **additional)
            found = [
                solve(layout, structure, SolverOptions(n_jobs=1, face=face))
                for face in (False, True)
            ]
            p = np.random.default_rng(0).standard_normal(layout.scores.shape)
            gap, face = (s.apply_jacobian(p, np.zeros(s.extra_marginals.shape))[0] for s in found)
            off = np.linalg.norm(gap - face, axis=1) > 0.01 * np.linalg.norm(face, axis=1)
            label = f"{_name(name, n, tags)}, {kind}"
            yield Row(f"{label}: gradients off by 1 % at a gap of 1e-9", float(off.sum()), "")
            calls, more = (float(s.n_iter.mean()) for s in found)
            yield Row(f"{label}: calls to the face over calls to the gap", more / calls, "x")


def _starts(scale: float) -> Iterator[Row]:
    """What is left of a solve that begins where one with slightly different scores ended."""
    for name, n, tags in (("sequence", 25, 5), ("tree", 20, 0), ("matching", 20, 0)):
        structure, scores, additional = instances("deviation 1", name, n, tags, BATCH)
        before = solve(structure.lay_out(scores, **additional), structure, FACE)
        moves = np.random.default_rng(1).standard_normal(scores.shape)
        for step in (0.01, 0.1):
            layout = structure.lay_out(scores + step * moves, **additional)

            def cold(layout: Any = layout, structure: Any = structure) -> Any:
                return solve(layout, structure, FACE)

            def warm(layout: Any = layout, structure: Any = structure, old: Any = before) -> Any:
                return solve(layout, structure, FACE, old)

            cold(), warm()
            seconds = measure({"cold": cold, "warm": warm}, 7)
            label = f"{_name(name, n, tags)}, scores moved by {step:g}: warm over cold"
            yield Row(label, seconds.ratio("warm", "cold"), "x")
        if scale < 1.0:
            return


def _visited(layout: Layout, structure: Any, calls: int) -> list[Layout]:
    """Points scores − u at which the solver calls its argmax, in batches of the same size.

    They are those of its first call and of some later ones, evenly spread: each takes a solve.
    """
    points, sizes = [layout.scores], [layout.sizes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToleranceWarning)
        for limit in np.unique(np.linspace(1, calls - 1, VISITED).astype(int))[: calls - 1]:
            found = solve(layout, structure, replace(FACE, max_iter=int(limit)))
            left = ~found.converged
            points.append((layout.scores - found.marginals.reshape(layout.scores.shape))[left])
            sizes.append(layout.sizes[left])
    scores, own = np.concatenate(points), np.concatenate(sizes)
    return [
        replace(layout, scores=scores[i : i + BATCH], sizes=own[i : i + BATCH])
        for i in range(0, len(scores) - BATCH + 1, BATCH)
    ]


def _times(scale: float) -> Iterator[Row]:
    sizes = TIMED if scale >= 1.0 else TIMED[:1]
    for size in sizes:
        structure, scores, additional = instances("deviation 1", *size, BATCH)
        layout = structure.lay_out(scores, **additional)
        solution = solve(layout, structure, FACE)
        weights = np.random.default_rng(0).standard_normal(layout.scores.shape)
        nothing = np.zeros((BATCH, layout.extra.shape[1]))

        def forward(layout: Any = layout, structure: Any = structure) -> Any:
            return solve(layout, structure, FACE)

        def both(solve: Any = forward, weights: Any = weights, nothing: Any = nothing) -> None:
            solve().apply_jacobian(weights, nothing)

        def parallel(layout: Any = layout, structure: Any = structure) -> Any:
            return solve(layout, structure, replace(FACE, n_jobs=2))

        def argmax(layout: Any = layout, structure: Any = structure) -> Any:
            return structure.best(layout)

        visited = _visited(layout, structure, int(solution.n_iter.max()))
        tensor = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
        more = {key: torch.tensor(value) for key, value in additional.items()}
        upstream = torch.tensor(weights.reshape(scores.shape), dtype=torch.float32)
        layers = {jobs: SparseMAP(structure, n_jobs=jobs) for jobs in (1, 2)}

        def layer(jobs: int, layers: Any = layers, x: Any = tensor, more: Any = more) -> Any:
            return layers[jobs](x, **more)

        def network(layer: Any = layer, upstream: Any = upstream, jobs: int = 1) -> None:
            layer(jobs).backward(upstream)

        def network_parallel(network: Any = network) -> None:
            network(jobs=2)

        def argmax_visited(visited: Any = visited, structure: Any = structure) -> Any:
            return [structure.best(batch) for batch in visited]

        parallel(), both(), argmax(), network(), network_parallel(), argmax_visited()
        calls = float(solution.n_iter.mean())
        once = stopwatch(both)()
        repeats = max(1, round(0.05 * scale / once))
        seconds = interleave(
            {
                "both": stopwatch(both, repeats),
                "forward": stopwatch(forward, repeats),
                "parallel": stopwatch(parallel, repeats),
                "network": stopwatch(network, repeats),
                "network_parallel": stopwatch(network_parallel, repeats),
                "argmax": stopwatch(argmax, max(1, round(repeats * calls / 4))),
                "visited": stopwatch(argmax_visited, max(1, repeats // 4)),
            },
            7 if scale >= 1.0 else 1,
        )
        limits = {
            "at the scores": ("argmax", calls),
            "at the solver's points": ("visited", calls / len(visited)),
        }
        name = _name(*size)
        peer, scratch = MARKS[size]
        milliseconds = 1e3 * seconds.best("forward") / BATCH
        yield Row(f"{name}: argmax calls", calls, "")
        yield Row(f"{name}: structures in the support", float(solution.support_size.mean()), "")
        yield Row(f"{name}: one argmax", 1e6 * seconds.best("argmax") / BATCH, "µs")
        yield Row(
            f"{name}: forward, C++ mark {scratch:g}, other package {peer:g}", milliseconds, "ms"
        )
        yield Row(
            f"{name}: one at the solver's points",
            1e6 * seconds.best("visited") / len(visited) / BATCH,
            "µs",
        )
        for place, (limit, times) in limits.items():
            label = f"{name}: forward and backward over calls x argmax {place}"
            yield Row(label, seconds.ratio("both", limit) / times, "x")
            label, through = f"{label}, in torch", seconds.ratio("network", limit) / times
            judged = Row.at_most(label, through, "x", 2)
            yield judged if limit == "visited" else Row(label, through, "x")
        if cores() > 1:
            yield Row.at_least(
                f"{name}: two threads", seconds.ratio("forward", "parallel"), "x", 1.6
            )
            gain = seconds.ratio("network", "network_parallel")
            yield Row.at_least(f"{name}: two threads, in torch", gain, "x", 1.6)
