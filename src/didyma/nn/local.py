"""LocalSparseMAP as a layer: constraints and structures that share parts, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from didyma.errors import DataError
from didyma.polytope.local import LocalSolution, LocalSolver, lay_out_local
from didyma.polytope.point import LocalPoint
from didyma.structures.composition import Composition
from didyma.structures.factor_graph import FactorGraph

__all__ = ["LocalSparseMAP"]


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
    """

    def __init__(
        self, graph: Composition | FactorGraph, temperature: float = 1.0, tol: float = 1e-10
    ) -> None:
        super().__init__()
        if not isinstance(graph, (FactorGraph, Composition)):
            raise DataError(
                f"expected a FactorGraph or a Composition, found {graph!r}", field="graph"
            )
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
        if not (isinstance(scores, Tensor) and scores.is_floating_point()):
            raise DataError(f"expected a floating-point tensor, found {scores!r}", field="scores")
        given = {name: torch.as_tensor(t) for name, t in additional.items() if t is not None}
        arrays = {name: t.detach().cpu().double().numpy() for name, t in given.items()}
        flat, extra, places = lay_out_local(
            scores.detach().cpu().double().numpy(), self.graph, arrays
        )
        blocks = [scores.to("cpu", torch.float64).reshape(flat.shape)]
        at = 0
        for name, place in sorted(places.items(), key=lambda one: one[1].start):
            values = given.get(name, torch.zeros(place.shape)).to("cpu", torch.float64)
            rows = values.reshape(1 if place.shared else len(flat), place.stop - place.start)
            blocks += [torch.zeros(len(flat), place.start - at, dtype=torch.float64)]
            blocks += [rows.expand(len(flat), -1)]
            at = place.stop
        blocks += [torch.zeros(len(flat), extra.shape[1] - at, dtype=torch.float64)]
        run = _Run(LocalSolver(self.graph, places, self.temperature, self.tol), warm_start)
        found = _Marginals.apply(run, torch.cat(blocks, dim=1))
        marginals = found[:, : flat.shape[1]].reshape(scores.shape).to(scores.device, scores.dtype)
        if not return_solution:
            run.solver.solution(run.points, single=False)  # warns
            return marginals
        return marginals, run.solver.solution(run.points, scores.ndim == self.graph.ndim)

    def extra_repr(self) -> str:
        """The graph and the temperature."""
        return f"{self.graph!r}, temperature={self.temperature}"


class _Run:
    """A solve, and what its derivatives need of it."""

    def __init__(self, solver: LocalSolver, warm_start: LocalSolution | None) -> None:
        self.solver, self.warm_start = solver, warm_start
        self.points: list[LocalPoint] = []

    def solve(self, parts: Tensor) -> Tensor:
        self.points = self.solver(parts.numpy(), self.warm_start)
        return torch.from_numpy(np.array([point.parts for point in self.points]))

    def move(self, directions: Tensor) -> Tensor:
        rows = zip(self.points, directions.numpy())
        return torch.from_numpy(np.array([point.move(direction) for point, direction in rows]))


class _Marginals(torch.autograd.Function):
    """Expectations of all parts from their scores."""

    @staticmethod
    def forward(run, parts):  # type: ignore[no-untyped-def]
        return run.solve(parts)

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.run = inputs[0]

    @staticmethod
    def backward(ctx, d_found):  # type: ignore[no-untyped-def]
        return None, _Moved.apply(ctx.run, d_found)

    @staticmethod
    def jvp(ctx, _, d_parts):  # type: ignore[no-untyped-def]
        return _Moved.apply(ctx.run, d_parts)


class _Moved(torch.autograd.Function):
    """How they move along a direction: linear and symmetric, so its derivative is itself."""

    @staticmethod
    def forward(run, directions):  # type: ignore[no-untyped-def]
        return run.move(directions.contiguous())

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.run = inputs[0]

    @staticmethod
    def backward(ctx, d_moved):  # type: ignore[no-untyped-def]
        return None, _Moved.apply(ctx.run, d_moved)

    @staticmethod
    def jvp(ctx, _, d_directions):  # type: ignore[no-untyped-def]
        return _Moved.apply(ctx.run, d_directions)
