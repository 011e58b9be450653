"""The argmax of a structure as tensors, which every estimate of its derivative asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from didyma.errors import DataError
from didyma.nn.autograd import conjugate, to_numpy
from didyma.nn.objective import REGULARIZERS, Objective
from didyma.polytope.sparsemap import EXACT, SolverOptions
from didyma.structure import Structure, require_structure

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


def batched(
    structure: Structure, scores: Tensor, lengths: Any, additional: Mapping[str, Any]
) -> tuple[Tensor, Any, dict[str, Any]]:
    """Scores, lengths, additional scores and data with a batch axis, also of one instance."""
    if scores.ndim != structure.ndim:
        return scores, lengths, dict(additional)
    data = {
        name: [values] if name in structure.data and values is not None else values
        for name, values in additional.items()
    }
    return scores[None], None if lengths is None else torch.as_tensor(lengths).reshape(1), data


def take(
    structure: Structure, scores: Tensor, rows: Tensor, lengths: Any, additional: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Lengths, additional scores and data of some instances of a batch, each as often as it is
    named; additional scores that all instances share stay as they are.
    """
    rows = rows.cpu()
    present = {name: values for name, values in additional.items() if values is not None}
    data = {name: present.pop(name) for name in structure.data if name in present}
    tensors = {name: torch.as_tensor(t) for name, t in present.items()}
    if tensors:
        layout = structure.lay_out(
            to_numpy(scores),
            to_numpy(lengths),
            **{name: to_numpy(t) for name, t in tensors.items()},
            **data,
        )
        tensors = {
            name: t if layout.additional[name].shared else t[rows.to(t.device)]
            for name, t in tensors.items()
        }
    objects = {name: [values[i] for i in rows.tolist()] for name, values in data.items()}
    return None if lengths is None else torch.as_tensor(lengths)[rows], {**tensors, **objects}


def as_scores(values: Any, like: Tensor, field: str, what: str) -> Tensor:
    """A tensor in the type and on the device of other scores, whose shape it must have."""
    tensor = torch.as_tensor(values, device=like.device).to(like.dtype)
    if tensor.shape != like.shape:
        raise DataError(
            f"expected the shape of the {what}, {tuple(like.shape)}, found {tuple(tensor.shape)}",
            field=field,
        )
    return tensor


def dot(scores: Tensor, parts: Tensor) -> Tensor:
    """The score of each instance's output; −inf counts only where its part is taken."""
    return torch.where(parts == 0, torch.zeros_like(scores), scores * parts).flatten(1).sum(1)


class ArgmaxModule(nn.Module):
    """A module that needs nothing of a structure but its argmax."""

    def __init__(self, structure: Structure, n_jobs: int | None = None) -> None:
        super().__init__()
        require_structure(structure)
        self.structure = structure
        self.n_jobs = n_jobs

    def _maximise(
        self, scores: Tensor, lengths: Any, additional: Mapping[str, Any]
    ) -> tuple[Tensor, Tensor]:
        return maximise(self.structure, scores, lengths, additional, self.n_jobs)

    def _parts(self, scores: Tensor, lengths: Any, additional: Mapping[str, Any]) -> Tensor:
        """Parts of the best outputs, without a derivative."""
        with torch.no_grad():
            return self._maximise(scores.detach(), lengths, additional)[1]

    def _maximise_draws(
        self, perturbed: Tensor, lengths: Any, additional: Mapping[str, Any]
    ) -> tuple[Tensor, Tensor]:
        """Values (n, B) and parts (n, B, …) of n draws of a batch, solved as one."""
        n, batch = perturbed.shape[:2]
        rows = torch.arange(batch).repeat(n)
        lengths, additional = take(self.structure, perturbed[0], rows, lengths, additional)
        value, parts = self._maximise(perturbed.flatten(0, 1), lengths, additional)
        return value.reshape(n, batch), parts.reshape(perturbed.shape)

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
