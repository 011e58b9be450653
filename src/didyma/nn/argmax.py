"""The argmax of a structure as tensors, which every estimate of its derivative asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from didyma.errors import DataError
from didyma.nn.autograd import conjugate
from didyma.nn.objective import REGULARIZERS, Objective
from didyma.polytope.sparsemap import EXACT, SolverOptions
from didyma.structure import Structure, check_structure

__all__ = ["ArgmaxModule", "check_positive", "dot", "maximise", "repeated"]

ZERO = REGULARIZERS["perceptron"]


def maximise(
    structure: Structure,
    scores: Tensor,
    lengths: Any = None,
    additional: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The highest score of each instance, and the parts that have it: 0 or 1, shaped as the scores.

    Gradients reach scores and additional scores through the value, and nothing through the parts,
    which are constant between ties.
    """
    options = SolverOptions(1.0, 0.0, None, n_jobs, False, EXACT)
    objective = Objective(structure, options, ZERO)
    value, parts = conjugate(objective, scores, lengths, None, None, additional, True)
    return value.to(scores.device, scores.dtype), parts.to(scores.device, scores.dtype)


def repeated(
    structure: Structure, scores: Tensor, times: int, lengths: Any, additional: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Lengths, additional scores and data of a batch that stands there several times over.

    Additional scores that all instances share stay as they are.
    """

    def repeat(array: Any) -> Tensor:
        tensor = torch.as_tensor(array)
        return tensor.repeat(times, *[1] * (tensor.ndim - 1))

    data = {name: additional[name] for name in structure.data if name in additional}
    tensors = {
        name: torch.as_tensor(t)
        for name, t in additional.items()
        if t is not None and name not in data
    }
    if tensors:
        layout = structure.lay_out(
            scores.detach().double().cpu().numpy(),
            None if lengths is None else torch.as_tensor(lengths).cpu().numpy(),
            **{name: t.detach().double().cpu().numpy() for name, t in tensors.items()},
            **data,
        )
        tensors = {
            name: t if layout.additional[name].shared else repeat(t) for name, t in tensors.items()
        }
    copies = {name: [*values] * times for name, values in data.items()}
    return (None if lengths is None else repeat(lengths)), {**tensors, **copies}


def dot(scores: Tensor, parts: Tensor) -> Tensor:
    """The score of each instance's output; −inf counts only where its part is taken."""
    return torch.where(parts == 0, torch.zeros_like(scores), scores * parts).flatten(1).sum(1)


class ArgmaxModule(nn.Module):
    """A module that needs nothing of a structure but its argmax."""

    def __init__(self, structure: Structure, n_jobs: int | None = None) -> None:
        super().__init__()
        check_structure(structure)
        self.structure = structure
        self.n_jobs = n_jobs

    def _batch(self, scores: Tensor) -> Tensor:
        """Scores with a batch axis."""
        return scores[None] if scores.ndim == self.structure.ndim else scores

    def _maximise(
        self, scores: Tensor, lengths: Any, additional: Mapping[str, Any]
    ) -> tuple[Tensor, Tensor]:
        return maximise(self.structure, scores, lengths, additional, self.n_jobs)

    def _parts(self, scores: Tensor, lengths: Any, additional: Mapping[str, Any]) -> Tensor:
        """Parts of the best outputs, without a derivative."""
        with torch.no_grad():
            return self._maximise(scores.detach(), lengths, additional)[1]

    @staticmethod
    def _refuse_gradients(additional: Mapping[str, Any]) -> None:
        """Say that the layer has no derivative by additional scores."""
        for name, array in additional.items():
            if isinstance(array, Tensor) and array.requires_grad:
                raise DataError(
                    "expected scores that need no gradient: this layer has derivatives by the "
                    "scores alone; SparseMAP and the losses have all",
                    field=name,
                )

    def extra_repr(self) -> str:
        """The structure."""
        return repr(self.structure)


def check_positive(name: str, value: float) -> float:
    """The value as a float, which must be positive and finite."""
    number = float(value)
    if not 0.0 < number < float("inf"):
        raise DataError(f"expected a positive number, found {value}", field=name)
    return number
