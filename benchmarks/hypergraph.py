"""One argmax over a plan against a kernel that was written by hand, on the same batches."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from ctypes import c_int64, c_void_p
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import compiled, measure
from didyma.structures import Chain, ProjectiveTree, TopK
from didyma.structures.compiled import CompiledStructure
from didyma.structures.hypergraph import Planned
from didyma.structures.layout import Layout

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_recurrence.py"
BATCH = 32
FOLDS = (20, 60)
SEQUENCES = ((25, 5), (50, 20))
SENTENCES = (10, 30)


class Plans(Planned):
    """The kernel of all plans, for batches that are laid out already."""

    def plan(self, shape: Any) -> Any:
        raise NotImplementedError


def run(scale: float = 1.0) -> list[Row]:
    return [*_folds(scale), *_kernels(scale)]


def _folds(scale: float) -> Iterator[Row]:
    """The example of a user's recurrence, and its dynamic programme as one would write it."""
    with redirect_stdout(StringIO()):
        fold = runpy.run_path(str(EXAMPLE))["Fold"]()
    by_hand = compiled(Path(__file__).with_name("fold.cpp")).fold_all
    by_hand.argtypes = [c_void_p, c_int64, c_int64, c_void_p, c_void_p]
    by_hand.restype = None
    for n in FOLDS if scale >= 1.0 else FOLDS[:1]:
        scores = np.random.default_rng(n).standard_normal((BATCH, n, n))
        layout = fold.lay_out(scores)
        parts, values = np.full((BATCH, n // 2), -1), np.zeros((2, n + 2, n + 2))
        arguments = scores.ctypes.data, BATCH, n, values.ctypes.data, parts.ctypes.data
        by_hand(*arguments)
        for one, other in zip(fold.best(layout), parts):
            assert set(one[one >= 0].tolist()) == set(other[other >= 0].tolist())
        repeats = max(1, round(2e6 / n**3 * scale))
        work = {
            "plan": lambda x=layout: fold.best(x),
            "hand": lambda own=arguments: by_hand(*own),
        }
        seconds = measure(work, 9, repeats)
        yield Row(f"fold of {n}: recurrence", 1e6 * seconds.best("plan") / BATCH, "µs")
        over = seconds.ratio("plan", "hand")
        yield Row.at_most(f"fold of {n}: recurrence over a kernel by hand", over, "x", 3)


def _kernels(scale: float) -> Iterator[Row]:
    """What the kernels gain that a structure has besides its plan."""
    rng = np.random.default_rng(0)
    cases: list[tuple[str, CompiledStructure, Layout]] = []
    for n, tags in SEQUENCES if scale >= 1.0 else SEQUENCES[:1]:
        batch = rng.standard_normal((BATCH, n, tags))
        transitions = rng.standard_normal((tags, tags))
        sequence = Chain()
        cases.append(
            (f"sequence {n}x{tags}", sequence, sequence.lay_out(batch, transitions=transitions))
        )
    for n in SENTENCES if scale >= 1.0 else SENTENCES[:1]:
        tree = ProjectiveTree()
        batch = rng.standard_normal((BATCH, n + 1, n + 1))
        cases.append((f"projective tree {n}", tree, tree.lay_out(batch)))
    sets = TopK(5)
    cases.append(("5 of 50", sets, sets.lay_out(rng.standard_normal((BATCH, 50)))))
    for name, structure, layout in cases:
        planned = structure.planned(layout)
        assert planned is not None
        plans = Plans()
        own, other = structure.best(layout), plans.best(planned)
        np.testing.assert_array_equal(np.sort(own, axis=1), np.sort(other, axis=1))
        repeats = max(1, round(3e7 * scale / (BATCH * planned.dims.size)))
        work = {
            "kernel": lambda s=structure, x=layout: s.best(x),
            "plan": lambda s=plans, x=planned: s.best(x),
        }
        seconds = measure(work, 9, repeats)
        yield Row(f"{name}: plan over its kernel", seconds.ratio("plan", "kernel"), "x")
