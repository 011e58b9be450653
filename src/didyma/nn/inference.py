"""The solutions of one call of a layer or loss, kept for its derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.execution import n_threads
from didyma.nn.objective import Gibbs, Objective
from didyma.polytope.distributions import Distributions
from didyma.structures.layout import Floats, Layout


@dataclass
class Inference:
    """An objective, the names of its additional scores, and what derivatives need.

    Instances are numbered through all solves of one call (there are several under `vmap`), so that
    a tensor of numbers can say to which solution a gradient belongs.
    """

    objective: Objective
    names: tuple[str, ...] = ()
    as_given: bool = False  # marginals have the type and device of the scores
    data: Mapping[str, Any] = field(default_factory=dict)  # what instances have beside scores
    solutions: list[Distributions | Gibbs] = field(default_factory=list)
    firsts: list[int] = field(default_factory=lambda: [0])  # number of each solution's first
    layout: Layout | None = None

    @property
    def curved(self) -> bool:
        """Whether the Jacobian depends on the scores; SparseMAP's is constant between kinks."""
        return self.objective.regularizer.curved

    def maximise(
        self,
        scores: Floats,
        lengths: NDArray[Any] | None,
        gold: NDArray[Any] | None,
        mask: NDArray[np.bool_] | None,
        additional: Sequence[Floats],
    ) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Values (B,), parts (B, d), additional parts (B, f), and numbers of the instances.

        Scores may be those of one instance, without a batch axis. With gold outputs g the value is
        the loss, and the parts are u − g. Instances that are masked out have value 0, parts 0 and
        number −1.
        """
        data = self.data
        if mask is not None:  # what does not count may hold anything: put something valid there
            if scores.ndim == self.objective.structure.ndim:
                data = {name: [value] for name, value in data.items()}
            scores = scores.reshape(len(mask), *scores.shape[-self.objective.structure.ndim :])
            if mask.any():
                counted = np.where(mask, np.arange(len(mask)), np.argmax(mask))
                scores = scores[counted]
                lengths = None if lengths is None else lengths[counted]
                data = {name: [values[b] for b in counted] for name, values in data.items()}
            else:
                scores, lengths = np.zeros_like(scores), None
        layout = self.objective.structure.lay_out(
            scores, lengths, **dict(zip(self.names, additional)), **data
        )
        self.layout = layout
        if mask is not None:
            layout = layout.select(mask)
            gold = gold if gold is None else gold[mask]
        if gold is None:
            maximum = self.objective.maximise(layout)
        else:
            maximum = self.objective.loss(layout, gold)
        first, stop = self.firsts[-1], self.firsts[-1] + len(layout)
        self.solutions.append(maximum.solution)
        self.firsts.append(stop)
        numbers = np.arange(first, stop)
        if mask is None:
            return maximum.value, maximum.u, maximum.v, numbers
        all_numbers = np.full(len(mask), -1)
        all_numbers[mask] = numbers
        return *maximum.spread(mask), all_numbers

    def apply_jacobian(
        self, numbers: NDArray[np.int64], p: Floats, p_extra: Floats
    ) -> tuple[Floats, Floats]:
        """J [p; p_extra], row by row; rows with number −1 have J = 0."""
        return self._by_solution("apply_jacobian", numbers, p, p_extra)

    def second_derivative(
        self, numbers: NDArray[np.int64], p: Floats, p_extra: Floats, r: Floats, r_extra: Floats
    ) -> tuple[Floats, Floats]:
        """How J [p; p_extra] moves along r, where it does: where the objective is `curved`."""
        return self._by_solution("second_derivative", numbers, p, p_extra, r, r_extra)

    def _by_solution(
        self, method: str, numbers: NDArray[np.int64], *directions: Floats
    ) -> tuple[Floats, Floats]:
        n_jobs = n_threads(self.objective.options.n_jobs) if len(numbers) > 1 else 1
        if len(self.solutions) == 1 and len(numbers) == self.firsts[-1]:
            moved: tuple[Floats, Floats] = getattr(self.solutions[0], method)(*directions, n_jobs)
            return moved
        out, out_extra = np.zeros_like(directions[0]), np.zeros_like(directions[1])
        for solution, first, stop in zip(self.solutions, self.firsts, self.firsts[1:]):
            rows = np.flatnonzero((numbers >= first) & (numbers < stop))
            instances = _instances(solution, numbers[rows] - first)
            moved = getattr(instances, method)(*(d[rows] for d in directions), n_jobs)
            out[rows], out_extra[rows] = moved
        return out, out_extra


def _instances(solution: Distributions | Gibbs, b: NDArray[np.int64]) -> Distributions | Gibbs:
    """The solutions of some instances, in this order; an instance may come several times."""
    if isinstance(solution, Gibbs):
        return solution.select(b)
    offsets, rows = _select_runs(solution.offsets, b)
    factors = solution.factors
    if factors.size:
        size = solution.support_size
        triangles = np.concatenate([[0], np.cumsum(size * (size + 1) // 2)])
        factors = factors[_select_runs(triangles, b)[1]]
    return replace(
        solution,
        offsets=offsets,
        parts=solution.parts[rows],
        extra_parts=solution.extra_parts[rows],
        factors=factors,
    )


def _select_runs(
    offsets: NDArray[np.int64], b: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and places of some of the runs offsets[b]:offsets[b + 1], one after the other."""
    sizes = np.diff(offsets)[b]
    selected = np.concatenate([[0], np.cumsum(sizes)])
    return selected, np.repeat(offsets[b] - selected[:-1], sizes) + np.arange(selected[-1])
