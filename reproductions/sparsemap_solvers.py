"""Niculae, Martins, Blondel and Cardie (2018), "SparseMAP", Figure 2: how solvers converge.

    python -m reproductions.sparsemap_solvers                     the table
    python -m reproductions.sparsemap_solvers --plot figure.svg   and the figure
    python -m reproductions.sparsemap_solvers --write             put both into docs/

Random dependency trees of 20 words, Gaussian scores: suboptimality of the objective and number of
structures in the support over the number of argmax calls, for the active set and for conditional
gradients with pairwise, away and vanilla steps. Medians over instances.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.polytope.sparsemap import (
    ActiveSet,
    ConditionalGradient,
    SolverOptions,
    ToleranceWarning,
    solve,
)
from didyma.structures import Tree
from reproductions import study

FIGURE = study.ROOT / "docs" / "sparsemap_solvers.svg"

SOLVERS = {
    "active set": ActiveSet(),
    "pairwise": ConditionalGradient("pairwise"),
    "away": ConditionalGradient("away"),
    "vanilla": ConditionalGradient("vanilla"),
}
LEVELS = (1e-2, 1e-4, 1e-6, 1e-10)


@dataclass(frozen=True)
class Curve:
    """One solver: suboptimality and support after each number of calls, (calls, instances)."""

    calls: NDArray[np.int64]
    suboptimality: NDArray[np.float64]
    support: NDArray[np.int64]

    def calls_to(self, level: float) -> float:
        """Median number of calls to a suboptimality; infinite where the limit came first."""
        reached = self.suboptimality <= level
        first = np.where(reached.any(axis=0), self.calls[reached.argmax(axis=0)], np.inf)
        return float(np.median(first))

    def support_at(self, level: float) -> float:
        """Median size of the support where the level is reached first."""
        reached = self.suboptimality <= level
        sizes = np.take_along_axis(self.support, reached.argmax(axis=0)[None], axis=0)[0]
        return float(np.median(np.where(reached.any(axis=0), sizes, np.nan)))


def measure(n_words: int = 20, n_instances: int = 20, limit: int = 1000) -> dict[str, Curve]:
    """Curves of all solvers: a solver stopped after k calls shows its k-th iterate."""
    structure = Tree()
    rng = np.random.default_rng(0)
    layout = structure.lay_out(rng.standard_normal((n_instances, n_words + 1, n_words + 1)))
    best = _objective(solve(layout, structure, SolverOptions(tol=1e-13)))
    calls = np.unique(np.round(np.geomspace(1, limit, 120)).astype(np.int64))
    calls = np.unique(np.concatenate([np.arange(1, min(limit, 60) + 1), calls]))
    curves = {}
    for name, solver in SOLVERS.items():
        values, supports = [], []
        for count in calls:
            options = SolverOptions(tol=1e-13, max_iter=int(count), solver=solver)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ToleranceWarning)
                solution = solve(layout, structure, options)
            values.append(np.maximum(best - _objective(solution), 0.0))
            supports.append(solution.support_size)
        curves[name] = Curve(calls, np.array(values), np.array(supports))
    return curves


def _objective(solution: Any) -> NDArray[np.float64]:
    """η·u − ½‖u‖² of each instance."""
    u = solution.marginals.reshape(len(solution), -1)
    score = np.where(u > 0.0, solution.layout.scores, 0.0) * u  # what is forbidden scores −∞
    return np.asarray(score.sum(axis=1) - 0.5 * (u**2).sum(axis=1))


def table(curves: dict[str, Curve]) -> str:
    """Argmax calls to each level, in Markdown."""
    lines = [
        "| solver | " + " | ".join(f"to {level:.0e}" for level in LEVELS) + " | support at 1e-06 |",
        "|---|" + "---:|" * (len(LEVELS) + 1),
    ]
    for name, curve in curves.items():
        cells = []
        for level in LEVELS:
            calls = curve.calls_to(level)
            cells.append(f"{calls:.0f}" if np.isfinite(calls) else f"> {curve.calls[-1]}")
        support = curve.support_at(1e-6)
        cells.append("" if np.isnan(support) else f"{support:.0f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(curves: dict[str, Curve]) -> Any:
    """The figure: suboptimality, and support, over argmax calls."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    objective, support = figure.subplots(1, 2)
    for name, curve in curves.items():
        level = np.median(curve.suboptimality, axis=1)
        shown = np.concatenate([[True], level[:-1] > 1e-12])
        objective.plot(curve.calls[shown], np.maximum(level[shown], 1e-12), label=name)
        support.plot(curve.calls[shown], np.median(curve.support, axis=1)[shown], label=name)
    objective.set(xscale="log", yscale="log", xlabel="argmax calls", ylabel="suboptimality")
    support.set(xscale="log", xlabel="argmax calls", ylabel="structures in the support")
    for axes in (objective, support):
        axes.spines[["top", "right"]].set_visible(False)
    objective.legend(frameon=False)
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "plot")
    parser.add_argument("--words", type=int, default=20, help="length of the sentences")
    parser.add_argument("--instances", type=int, default=20, help="how many random sentences")
    parser.add_argument("--limit", type=int, default=1000, help="most argmax calls")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Measure, print the table, and write what was asked for."""
    curves = measure(options.words, options.instances, options.limit)
    for path in (options.plot, FIGURE if options.write else None):
        if path:
            study.save_figure(plot(curves), path)
    study.publish(options, {"sparsemap_solvers": table(curves)})


if __name__ == "__main__":
    raise SystemExit(main())
