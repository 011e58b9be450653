"""SparseMAP as a layer: marginals of the sparse posterior over structures, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from didyma.nn.autograd import NO_EXPORT, conjugate, infer
from didyma.nn.objective import SQUARED_NORM, Objective
from didyma.polytope.distributions import Distribution, Distributions
from didyma.polytope.sparsemap import EXACT, SolverOptions
from didyma.structure import Structure, require_structure


def sparsemap(
    scores: Tensor,
    structure: Structure,
    *,
    lengths: Any = None,
    return_solution: bool = False,
    tol: float = 1e-9,
    max_iter: int | None = None,
    temperature: float = 1.0,
    warm_start: Distributions | Sequence[Distribution | None] | None = None,
    n_jobs: int | None = None,
    **additional: Any,
) -> Any:
    """Marginals of the sparse posterior over structures: `didyma.sparsemap` for tensors.

    Gradients reach the scores and every tensor of additional scores. The marginals are piecewise
    affine in the scores, so second derivatives are exact as well: zero away from kinks.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> scores = torch.tensor([1.0, 0.8, 0.0], requires_grad=True)
    >>> sparsemap(scores, Choice())[0].backward()
    >>> scores.grad
    tensor([ 0.5000, -0.5000,  0.0000])

    Scores of any floating-point type and device are moved to the CPU and solved there in float64;
    the marginals come back in the type and on the device of the scores. `torch.func` transforms
    work; a graph that `torch.compile` makes has this call as one operator, unless it is asked for
    the solution or given one to start from, which graphs cannot hold.

    Arguments are those of `didyma.sparsemap`. A gap above ``tol`` is warned of; the solver goes on
    to the face that the optimum lies on, since a small gap is not enough for derivatives.
    """
    # No default is left out: `torch.compile` knows objects by their names alone.
    options = SolverOptions(temperature, tol, max_iter, n_jobs, True, EXACT)
    objective = Objective(structure, options, SQUARED_NORM, 0.0, warm_start)
    arguments = objective, scores, lengths, None, None, additional, True
    if not return_solution and warm_start is None:
        _, marginals = conjugate(*arguments)
        return marginals.to(scores.device, scores.dtype)
    _, marginals, _, inference = infer(*arguments)
    return (marginals, inference.solutions[-1]) if return_solution else marginals


class StructureModule(nn.Module):
    """A module over a structure, with the options of its solver as attributes."""

    def __init__(
        self,
        structure: Structure,
        temperature: float,
        tol: float,
        max_iter: int | None,
        n_jobs: int | None,
    ) -> None:
        super().__init__()
        require_structure(structure)
        self.structure = structure
        self.temperature = temperature
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def __prepare_scriptable__(self) -> Any:
        """Called by `torch.jit.script`."""
        raise NotImplementedError(NO_EXPORT)


class SparseMAP(StructureModule):
    """The layer: scores (B, …) to marginals of the same shape; see `sparsemap`.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> SparseMAP(Choice(), temperature=2.0)(torch.tensor([1.0, 0.8, 0.0]))
    tensor([0.5333, 0.4333, 0.0333])
    """

    def __init__(
        self,
        structure: Structure,
        temperature: float = 1.0,
        tol: float = 1e-9,
        max_iter: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure, temperature, tol, max_iter, n_jobs)

    def forward(
        self,
        scores: Tensor,
        lengths: Any = None,
        warm_start: Distributions | Sequence[Distribution | None] | None = None,
        **additional: Any,
    ) -> Any:
        """Marginals; additional scores are given by name."""
        return sparsemap(
            scores,
            self.structure,
            lengths=lengths,
            temperature=self.temperature,
            tol=self.tol,
            max_iter=self.max_iter,
            warm_start=warm_start,
            n_jobs=self.n_jobs,
            **additional,
        )

    def extra_repr(self) -> str:
        """The structure and the temperature."""
        return f"{self.structure!r}, temperature={self.temperature}"
