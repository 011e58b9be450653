"""Tables of the study of decisions: regrets by loss and cell, tests over seeds, costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from didyma.metrics import wilcoxon
from didyma.metrics.significance import holm
from didyma.report.table import markdown
from reproductions import study
from reproductions.decisions_training import PROBLEMS, Problem

N_TEST = 1000
TWO_STAGE, SPO, PEER_SPO = "squared error", "SPO+", "PyEPO SPO+"
SMOOTHED = ("smoothed SPO+, SparseMAP", "smoothed SPO+, entropy")
PEER_CORE = (PEER_SPO, "PyEPO PFYL", "PyEPO DBB", "PyEPO NID")
PEER_OTHERS = (
    *("PyEPO RFYL", "PyEPO DPO", "PyEPO I-MLE", "PyEPO AI-MLE", "PyEPO NCE", "PyEPO CMAP"),
    *("PyEPO LTR pairwise", "PyEPO LTR listwise"),
)
PUBLISHED = {  # PyEPO 2.2.7, notebook 03: test regret in per cent
    PEER_SPO: 7.59,
    "PyEPO PFYL": 7.29,
    "PyEPO RFYL": 7.79,
    "PyEPO DBB": 15.12,
    "PyEPO NID": 8.90,
    "PyEPO I-MLE": 12.07,
    "PyEPO AI-MLE": 7.24,
    "PyEPO NCE": 10.29,
}


@dataclass(frozen=True)
class Cell:
    """A problem, how its data are drawn, and how many instances there are to train on."""

    problem: str
    degree: int
    noise: float
    n: int

    def draw(self, seed: int) -> Problem:
        """Instances for training, validation and test, in this order."""
        n = self.n + self.n // 4 + N_TEST
        return PROBLEMS[self.problem](n, self.degree, self.noise, seed)

    @property
    def name(self) -> str:
        """As columns are called."""
        return f"degree {self.degree}, noise {self.noise:g}"


Results = Mapping[Cell, Mapping[str, Sequence[float]]]


def regret_table(results: Results) -> str:
    """Mean test regret in per cent by method and cell; the lowest of a column is marked."""
    methods = list(dict.fromkeys(name for found in results.values() for name in found))
    means = {
        cell: {name: 100 * float(np.mean(values)) for name, values in found.items()}
        for cell, found in results.items()
    }
    rows = []
    for name in methods:
        cells = [
            ""
            if name not in found
            else f"{found[name]:.2f}{'*' * (found[name] == min(found.values()))}"
            for found in means.values()
        ]
        rows.append([name, *cells])
    return markdown(["loss", *(cell.name for cell in results)], rows)


def best_peer(results: Results) -> str | None:
    """PyEPO's loss with the lowest mean over all cells, of those that every cell has."""
    everywhere = set.intersection(*(set(found) for found in results.values()))
    peers = [name for name in PEER_CORE + PEER_OTHERS if name in everywhere]
    return min(
        peers, key=lambda name: np.mean([found[name] for found in results.values()]), default=None
    )


def tests_table(results: Results) -> str:
    """Smoothed SPO+ against SPO+ and the best peer: Wilcoxon's test over seeds, Holm over cells."""
    rows = []
    opponents = [name for name in (SPO, best_peer(results)) if name]
    for smooth, opponent in product(SMOOTHED, opponents):
        cells = [found for found in results.values() if {smooth, opponent} <= set(found)]
        if not cells:
            continue
        pairs = [(np.array(found[smooth]), np.array(found[opponent])) for found in cells]
        lower = np.array([(a - b).mean() < 0 for a, b in pairs])
        significant = holm([wilcoxon(a, b) for a, b in pairs]) < 0.05
        over_cells = [np.mean([pair[k] for pair in pairs], axis=0) for k in (0, 1)]
        difference = 100 * float((over_cells[0] - over_cells[1]).mean())
        rows.append(
            [
                smooth,
                opponent,
                f"{lower.sum()} of {len(pairs)}",
                f"{(lower & significant).sum()}",
                f"{(~lower & significant).sum()}",
                f"{difference:+.3f}",
                f"{wilcoxon(*over_cells):.3f}",
            ]
        )
    head = ["loss", "against", "lower", "significantly", "significantly higher"]
    return markdown([*head, "mean difference", "p of the mean"], rows)


def agreement(results: Results) -> str:
    """How closely our SPO+ and PyEPO's agree, run by run."""
    pairs = [
        abs(a - b)
        for found in results.values()
        if {SPO, PEER_SPO} <= set(found)
        for a, b in zip(found[SPO], found[PEER_SPO])
    ]
    equal = sum(difference < 1e-9 for difference in pairs)
    return f"Our SPO+ and PyEPO's have the same test regret in {equal} of {len(pairs)} runs."


def sections_of(results: Results) -> dict[str, str]:
    """A section for each problem."""
    sections = {}
    for problem in dict.fromkeys(cell.problem for cell in results):
        own = {cell: found for cell, found in results.items() if cell.problem == problem}
        parts = []
        for n in sorted({cell.n for cell in own}):
            table = regret_table({cell: found for cell, found in own.items() if cell.n == n})
            parts.append(f"n = {n:,}:\n\n{table}")
        parts += [agreement(own), tests_table(own)]
        sections[f"decisions_{problem.replace(' ', '_')}"] = "\n\n".join(parts)
    return sections


def warm_up_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Published figures beside those of PyEPO here and of ours, the lowest first."""
    order = sorted(results, key=lambda name: np.mean(results[name]["regret"]))
    rows = [
        [name, study.percent(results[name]["regret"]), f"{PUBLISHED.get(name, '')}"]
        for name in order
    ]
    return markdown(["loss", "test regret", "published"], rows)


def cost_table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Argmaxes for an instance and milliseconds of a step."""
    rows = []
    for name, found in results.items():
        calls = "" if math.isnan(found["calls"]) else f"{found['calls']:.1f}"
        rows.append([name, calls, f"{found['ms']:.2f}"])
    return markdown(["loss", "argmaxes for an instance", "ms a step"], rows)
