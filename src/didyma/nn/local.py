"""LocalSparseMAP as a layer: constraints and structures that share parts, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from didyma.nn.autograd import NO_EXPORT, Conjugate, require_scores
from didyma.polytope.local import LocalSolution, LocalSolver, lay_out_local, require_graph
from didyma.polytope.point import LocalPoint
from didyma.structures.composition import Composition
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.layout import Floats, Layout


class LocalSparseMAP(nn.Module):
    """Scores (B, …) to marginals of the same shape, over a `Composition` or a `FactorGraph`.

    Marginals are those of `didyma.local_sparsemap`: the best that all factors agree on. Gradients
    reach the scores and every tensor of additional scores; second derivatives are zero away from
    kinks.

    >>> from didyma.structures import AtMost, Choice, Composition, Factor
    >>> graph = Composition(4, [Factor(Choice(), [0, 1])], logic=[AtMost(1, [1, 2, 3])])
    >>> LocalSparseMAP(graph)(torch.tensor([0.0, 1.0, 0.9, 0.0]))
    tensor([0.3000, 0.7000, 0.3000, 0.0000])

    Solved on the CPU in float64; the result has the type and device of the scores. A solution that
    ``return_solution=True`` gave for the same instances can be the ``warm_start`` of the next call.
    `torch.func` transforms and batches of gradients work.
    """

    def __init__(
        self, graph: Composition | FactorGraph, temperature: float = 1.0, tol: float = 1e-10
    ) -> None:
        super().__init__()
        require_graph(graph)
        self.graph, self.temperature, self.tol = graph, temperature, tol

    def forward(
        self,
        scores: Tensor,
        *,
        return_solution: bool = False,
        warm_start: LocalSolution | None = None,
        **additional: Any,
    ) -> Any:
        """Marginals; additional scores (``pairwise``, those of structures) are given by name."""
        require_scores(scores)
        tensors = {name: torch.as_tensor(t) for name, t in additional.items() if t is not None}
        if torch.compiler.is_compiling() and warm_start is None and not return_solution:
            from didyma.nn.graphs import marginals_in_graph

            if (compiled := marginals_in_graph(self, scores, tensors)) is not None:
                return compiled
        inference = LocalInference(
            self.graph, tuple(tensors), self.temperature, self.tol, warm_start
        )
        single = scores.ndim == self.graph.ndim
        _, marginals, _, _ = Conjugate.apply(inference, scores, None, None, None, *tensors.values())
        solution = inference.solution(single)  # warns
        return (marginals, solution) if return_solution else marginals

    def __prepare_scriptable__(self) -> Any:
        """Called by `torch.jit.script`."""
        raise NotImplementedError(NO_EXPORT)

    def extra_repr(self) -> str:
        """The graph and the temperature."""
        return f"{self.graph!r}, temperature={self.temperature}"


@dataclass
class LocalInference:
    """What `didyma.nn.inference.Inference` is to structures, for graphs."""

    graph: Composition | FactorGraph
    names: tuple[str, ...]
    temperature: float
    tol: float
    warm_start: LocalSolution | None
    points: list[LocalPoint] = field(default_factory=list)
    layout: Layout | None = None
    curved: ClassVar[bool] = False
    as_given: ClassVar[bool] = True

    def maximise(
        self, scores: Floats, lengths: None, gold: None, mask: None, additional: Sequence[Floats]
    ) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Values (B,), parts (B, d), additional parts (B, f), and numbers of the instances."""
        flat, extra, places = lay_out_local(scores, self.graph, dict(zip(self.names, additional)))
        extra = np.broadcast_to(extra, (len(flat), extra.shape[1]))
        self.layout = Layout(flat, self.graph.score_shape, 0, extra, places)
        all_scores = np.hstack([flat, extra])
        points = self._solver(all_scores, self.warm_start)
        numbers = len(self.points) + np.arange(len(points))
        self.points += points
        parts = np.array([point.parts for point in points]).reshape(all_scores.shape)
        u, v = np.split(parts, [flat.shape[1]], axis=1)
        return np.array([point.value for point in points]), u, v, numbers

    def apply_jacobian(
        self, numbers: NDArray[np.int64], p: Floats, p_extra: Floats
    ) -> tuple[Floats, Floats]:
        """How parts and additional parts move along each row."""
        directions = np.hstack([p, p_extra])
        moved = [self.points[i].move(one) for i, one in zip(numbers.tolist(), directions)]
        out, out_extra = np.split(np.array(moved).reshape(directions.shape), [p.shape[1]], axis=1)
        return np.ascontiguousarray(out), np.ascontiguousarray(out_extra)

    def solution(self, single: bool) -> LocalSolution:
        """What the last solve found; warns of what is not the optimum."""
        assert self.layout is not None
        parts = np.hstack([self.layout.scores, self.layout.extra])
        return self._solver.solution(parts, self.points[-len(parts) :], single)

    @property
    def _solver(self) -> LocalSolver:
        assert self.layout is not None
        return LocalSolver(self.graph, self.layout.additional, self.temperature, self.tol)
