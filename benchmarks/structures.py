"""What each structure costs: microseconds for one instance of a usual size, in a batch of 32.

One thread, Gaussian scores. *Sums* are log partition and marginals, *torch* the entropy of a
`didyma.nn.StructureDistribution` and its gradient. The table stands in docs/structures.md.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import numpy as np
import torch

from benchmarks.row import Row
from benchmarks.timing import fastest, torch_threads
from didyma.nn import StructureDistribution
from didyma.polytope.sparsemap import SolverOptions, solve
from didyma.structures import (
    Chain,
    Choice,
    Constituency,
    FactorGraph,
    Forest,
    HigherOrderChain,
    JointTable,
    Knapsack,
    Matching,
    MonotoneAlignment,
    ProjectiveTree,
    Segmentation,
    ShortestPath,
    TopK,
    Tree,
)
from didyma.structures.compiled import CompiledStructure

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_recurrence.py"
BATCH = 32
SECONDS = 0.2  # of each measurement


@dataclass(frozen=True)
class Case:
    """A structure, shapes of an instance's scores, and what torch-struct calls it."""

    name: str
    structure: CompiledStructure
    shape: tuple[int, ...]
    additional: dict[str, tuple[int, ...]] = field(default_factory=dict)
    peer: str = ""


def cases() -> list[Case]:
    """Every structure once."""
    with redirect_stdout(StringIO()):
        fold = runpy.run_path(str(EXAMPLE))["Fold"]()
    at = np.arange(16).reshape(4, 4)
    across = zip(at[:, :-1].ravel().tolist(), at[:, 1:].ravel().tolist())
    down = zip(at[:-1].ravel().tolist(), at[1:].ravel().tolist())
    grid, ways = FactorGraph(16, edges=[*across, *down]), ShortestPath.grid(12, 12)
    return [
        Case("`Choice`, 100", Choice(), (100,)),
        Case("`TopK`, 5 of 50", TopK(5), (50,)),
        Case("`Knapsack`, 20 items", Knapsack([1, 2, 3, 4] * 5, 20), (20,)),
        Case("`Chain`, 25 × 5 tags", Chain(), (25, 5), {"transitions": (5, 5)}),
        Case(
            "`HigherOrderChain`, the same",
            HigherOrderChain(2),
            (25, 5),
            {"transitions": (5, 5, 5)},
        ),
        Case("`Segmentation`, 20 × 5 × 3", Segmentation(), (20, 5, 3), {"transitions": (3, 3)}),
        Case("`MonotoneAlignment`, 20 × 20", MonotoneAlignment("pairs"), (20, 20)),
        Case("`Constituency`, 12 words, 3 labels", Constituency(), (12, 12, 3)),
        Case("`ShortestPath`, grid of 12 × 12", ways, (len(ways.edges),)),
        Case("`ProjectiveTree`, 20 words", ProjectiveTree(), (21, 21)),
        Case("`Tree`, 20 words", Tree(), (21, 21)),
        Case("`Matching`, 20 × 20", Matching(), (20, 20)),
        Case("`Forest`, 20 nodes", Forest(), (20, 20)),
        Case("`FactorGraph`, grid of 4 × 4", grid, (16, 2), {"pairwise": (len(grid.edges), 2, 2)}),
        Case("`JointTable`, 8 parts", JointTable(8), (8,), {"table": (2,) * 8}),
        Case("`Recurrence`, a fold of 20", fold, (20, 20)),
    ]


def run(scale: float = 1.0) -> list[Row]:
    with torch_threads(1):
        some = cases() if scale >= 1.0 else cases()[3:4]
        return [row for case in some for row in _rows(case, min(1.0, scale))]


def _rows(case: Case, scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    structure = case.structure
    scores = rng.standard_normal((BATCH, *case.shape))
    additional = {name: rng.standard_normal(shape) for name, shape in case.additional.items()}
    layout = structure.lay_out(scores, **additional)
    theta = torch.tensor(scores, requires_grad=True)
    given = {name: torch.tensor(array) for name, array in additional.items()}

    def gradient() -> None:
        StructureDistribution(structure, theta, **given).entropy().sum().backward()

    for name, function in {
        "argmax": lambda: structure.best(layout),
        "4 best": lambda: structure.k_best(scores, 4, **additional),
        "10 samples": lambda: structure.sample(scores, 10, 0, **additional),
        "sums": lambda: structure.sums(layout),
        "torch": gradient,
        "SparseMAP": lambda: solve(layout, structure, SolverOptions(n_jobs=1)),
    }.items():
        label = f"{case.name}: {name}"
        try:
            yield Row(label, 1e6 * fastest(function, SECONDS * scale) / BATCH, "µs")
        except NotImplementedError:
            yield Row.absent(label)
