"""One argmax of a structure against the fastest peer, on the same batches.

SciPy's assignment runs here, in turns with ours. lap and torch-struct live in the peers' own
environment, on one thread; what cannot be installed is reported as absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.peers import ask
from benchmarks.row import Row
from benchmarks.timing import measure, stopwatch
from didyma.structures import Chain, Matching

WORKER = Path(__file__).with_name("structure_worker.py")
BATCH = 64
ASSIGNMENTS = (10, 20, 50, 100)
SEQUENCES = ((25, 5), (100, 5), (50, 20))  # torch-struct takes minutes for more tags


def run(scale: float = 1.0) -> list[Row]:
    return [*_assignment(scale), *_viterbi(scale)]


def _assignment(scale: float) -> Iterator[Row]:
    structure = Matching()
    for n in ASSIGNMENTS if scale >= 1.0 else ASSIGNMENTS[:1]:
        scores = np.random.default_rng(n).standard_normal((BATCH, n, n))
        layout = structure.lay_out(scores)
        best = [s[linear_sum_assignment(s, maximize=True)].sum() for s in scores]
        found = structure.best(layout)
        np.testing.assert_allclose(
            np.take_along_axis(layout.scores, found, axis=1).sum(axis=1), best
        )
        repeats = max(1, round(2000 / n**1.5 * scale))
        work = {
            "ours": lambda s=structure, x=layout: s.best(x),
            "scipy": lambda x=scores: [linear_sum_assignment(s, maximize=True) for s in x],
        }
        seconds = measure(work, 7, repeats)
        yield Row(f"assignment {n}: ours", 1e6 * seconds.best("ours") / BATCH, "µs")
        yield Row.at_least(
            f"assignment {n}: SciPy over ours", seconds.ratio("scipy", "ours"), "x", 1
        )
        yield _peer(
            f"assignment {n}: lap over ours", "lap", ["lap"], seconds.best("ours"), scores=-scores
        )


def _viterbi(scale: float) -> Iterator[Row]:
    structure = Chain()
    for n, tags in SEQUENCES if scale >= 1.0 else SEQUENCES[:1]:
        rng = np.random.default_rng(n)
        scores = rng.standard_normal((BATCH, n, tags))
        transitions = rng.standard_normal((tags, tags))
        layout = structure.lay_out(scores, transitions=transitions)
        structure.best(layout)
        repeats = max(1, round(1e6 / (n * tags**2) * scale))
        ours = min(stopwatch(lambda s=structure, x=layout: s.best(x), repeats)() for _ in range(7))
        yield Row(f"Viterbi {n}x{tags}: ours", 1e6 * ours / BATCH, "µs")
        batched = min(stopwatch(lambda x=scores, t=transitions: viterbi(x, t))() for _ in range(7))
        name = f"Viterbi {n}x{tags}: NumPy over the whole batch, over ours"
        yield Row.at_least(name, batched / ours, "x", 1)
        yield _peer(
            f"Viterbi {n}x{tags}: torch-struct over ours",
            "torch_struct",
            ["torch==2.13.0", "numpy", "torch-struct"],
            ours,
            scores=scores,
            transitions=transitions,
        )


def viterbi(scores: Any, transitions: Any) -> Any:
    """Best tags of every sequence of a batch, a step of all sequences at a time."""
    batch, n, tags = scores.shape
    best, back = scores[:, 0], np.empty((n, batch, tags), np.int64)
    for t in range(1, n):
        reached = best[:, :, None] + transitions
        back[t] = reached.argmax(axis=1)
        best = np.take_along_axis(reached, back[t][:, None], axis=1)[:, 0] + scores[:, t]
    path = np.empty((n, batch), np.int64)
    path[-1] = best.argmax(axis=1)
    for t in range(n - 1, 0, -1):
        path[t - 1] = np.take_along_axis(back[t], path[t][:, None], axis=1)[:, 0]
    return path.T


def _peer(name: str, peer: str, packages: list[str], ours: float, **arrays: Any) -> Row:
    """A peer's seconds for the whole batch over ours."""
    found = ask(WORKER, packages, peer, **arrays)
    return Row.at_least(name, found[0] / ours, "x", 1) if found else Row.absent(name)
