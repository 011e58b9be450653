"""A thousand random and degenerate instances of every structure: each SparseMAP is certified anew.

The certificate is one more argmax at the solution, by the structure's own kernel on fresh scratch
and with nothing of the solver: how far the best output stands above the mean of the support.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.structures import Case, cases
from didyma._core.polytope import products
from didyma.polytope.distributions import Distributions
from didyma.polytope.sparsemap import SolverOptions, solve
from didyma.structures.oracles import best_outputs, total

INSTANCES = 1000
KINDS = ("deviation 1", "deviation 0.1", "deviation 5", "integer", "tied", "constant")
TOLERANCE = 1e-9


def run(scale: float = 1.0) -> list[Row]:
    some = cases() if scale >= 1.0 else [case for case in cases() if "Tree`" in case.name][:1]
    return [row for case in some for row in _rows(case, max(len(KINDS), round(INSTANCES * scale)))]


def _rows(case: Case, instances: int) -> Iterator[Row]:
    certified, worst = 0, 0.0
    for number, kind in enumerate(KINDS):
        count = instances // len(KINDS) + (number < instances % len(KINDS))
        rng = np.random.default_rng(number)
        scores = _draw(kind, (count, *case.shape), rng)
        additional = {name: _draw(kind, shape, rng) for name, shape in case.additional.items()}
        layout = case.structure.lay_out(scores, **additional)
        gaps = certificates(solve(layout, case.structure, SolverOptions(face=True)))
        certified += int((gaps <= TOLERANCE).sum())
        worst = max(worst, float(gaps.max()))
    label = f"{case.name}: {instances} instances"
    yield Row.at_least(f"{label}, certified to 1e-9", 100.0 * certified / instances, "%", 100)
    yield Row(f"{label}, largest gap, in units of 1e-9", worst / TOLERANCE, "")


def certificates(solution: Distributions) -> Any:
    """Duality gap of each instance, from the scores and the marginals alone."""
    layout, structure = solution.layout, solution.structure
    u = solution.marginals.reshape(layout.scores.shape)
    at = replace(layout, scores=layout.scores - u)
    parts, extra_parts, _ = best_outputs(structure.oracle(at), at)  # type: ignore[attr-defined]
    extra = np.broadcast_to(layout.extra, (len(layout), layout.extra.shape[1]))
    highest = total(at.scores, parts) + total(extra, extra_parts)
    own, additional = np.zeros(len(layout)), np.zeros(len(layout))
    products(at.scores, u, own)
    products(layout.extra, solution.extra_marginals, additional)
    return highest - own - additional


def _draw(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    if kind == "constant":
        return np.ones(shape)
    if kind in ("integer", "tied"):
        low, high = (-3, 4) if kind == "integer" else (0, 2)
        return rng.integers(low, high, shape).astype(float)
    return float(kind.split()[-1]) * rng.standard_normal(shape)
