"""Solutions of SparseMAP: sparse distributions over structures, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma._core import polytope as core
from didyma.errors import DataError
from didyma.structure import Structure
from didyma.structures.batches import flatten
from didyma.structures.layout import Additional, Floats, Layout, Parts
from didyma.values import aligned


@dataclass(frozen=True)
class Distribution:
    """One instance: structures with their probabilities, most probable first.

    ``structures`` has one row per structure, in the form of the structure's outputs (tags, heads,
    columns, ...); ``gap`` bounds the distance from the optimum in objective, and over the
    temperature in ‖u − u*‖².

    >>> from didyma import sparsemap
    >>> from didyma.structures import Choice
    >>> _, solution = sparsemap([[1.0, 0.5, -1.0]], Choice(), return_solution=True)
    >>> solution[0].structures.tolist(), solution[0].probabilities.tolist()
    ([0, 1], [0.75, 0.25])
    """

    structures: NDArray[Any]
    probabilities: Floats
    marginals: Floats
    gap: float
    converged: bool
    n_iter: int
    parts: Parts
    extra_parts: Parts
    structure: Structure | None = None
    dims: tuple[int, ...] = ()
    """Lengths of the instance and the number of additional scores: a warm start shares them."""

    @property
    def support_size(self) -> int:
        """Number of structures with positive probability."""
        return len(self.probabilities)


@dataclass(eq=False)
class Distributions:
    """A batch: arrays with one entry per instance, `solution[b]` for all there is about one.

    ``marginals`` has the shape of the scores, batch axis first. ``gap`` is certified: no output
    scores better by more at the solution. The vertices of all instances stand one after the other
    in ``parts``; those of instance b are rows ``offsets[b]:offsets[b + 1]``.

    >>> from didyma import sparsemap
    >>> from didyma.structures import Choice
    >>> _, solution = sparsemap([[1.0, 0.5], [3.0, 0.0]], Choice(), return_solution=True)
    >>> [len(distribution.structures) for distribution in solution]
    [2, 1]
    """

    structure: Structure
    layout: Layout
    temperature: float
    flat_marginals: Floats
    gap: Floats
    n_iter: NDArray[np.int64]
    status: NDArray[np.int64]
    offsets: NDArray[np.int64]
    parts: Parts
    extra_parts: Parts
    weights: Floats
    factors: Floats
    """The solver's Cholesky factors of the vertices, one after the other, for derivatives.

    Empty where it was not asked for a solution that is to be differentiated.
    """

    def __len__(self) -> int:
        return len(self.layout)

    def __iter__(self) -> Iterator[Distribution]:
        return (self[b] for b in range(len(self)))

    def __getitem__(self, b: int) -> Distribution:
        b = range(len(self))[b]
        rows = slice(self.offsets[b], self.offsets[b + 1])
        order = np.argsort(-self.weights[rows], kind="stable")
        parts, extra_parts = self.parts[rows][order], self.extra_parts[rows][order]
        return Distribution(
            self.structure.decode(parts, self.layout),
            self.weights[rows][order],
            self.marginals[b],
            float(self.gap[b]),
            bool(self.converged[b]),
            int(self.n_iter[b]),
            parts,
            extra_parts,
            self.structure,
            (*self.layout.sizes[b].tolist(), self.layout.extra.shape[1]),
        )

    @property
    def marginals(self) -> Floats:
        """Expectation of each part, (B, …) in the shape of the scores."""
        return self.flat_marginals.reshape(len(self), *self.layout.shape)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether the gap is within the tolerance, per instance."""
        return self.status == core.OPTIMAL

    @property
    def support_size(self) -> NDArray[np.int64]:
        """Number of structures with positive probability, per instance."""
        return np.diff(self.offsets)

    @property
    def structures(self) -> list[NDArray[Any]]:
        """Structures of each instance, most probable first."""
        return [instance.structures for instance in self]

    @property
    def probabilities(self) -> list[Floats]:
        """Probabilities of each instance's structures, in descending order."""
        return [instance.probabilities for instance in self]

    @cached_property
    def extra_marginals(self) -> Floats:
        """Expectations of all additional parts, flat: (B, f)."""
        out = np.zeros((len(self), self.layout.extra.shape[1]))
        core.expectation(self.offsets, self.extra_parts, self.weights, out)
        return out

    @property
    def additional(self) -> dict[str, Floats]:
        """Expectations of the additional parts, by name, one array per instance."""
        return {
            name: place.of(self.extra_marginals) for name, place in self.layout.additional.items()
        }

    def jvp(self, d_scores: ArrayLike, **d_additional: ArrayLike) -> Floats:
        """How the marginals move when the scores move along a direction.

        A tangent of additional scores has their own shape.
        """
        tangent = self._flat_additional(d_additional, of_scores=True)
        moved, _ = self.apply_jacobian(self._flat(d_scores, "d_scores"), tangent)
        return moved.reshape(self.marginals.shape)

    def vjp(
        self, d_marginals: ArrayLike, **d_additional: ArrayLike
    ) -> tuple[Floats, dict[str, Floats]]:
        """Gradients with respect to the scores, and to each array of additional scores by name.

        ``d_marginals`` is the gradient with respect to the marginals; gradients with respect to the
        expectations of additional parts may be given by name, one array per instance.
        """
        gradient = self._flat_additional(d_additional, of_scores=False)
        d_scores, d_extra = self.apply_jacobian(self._flat(d_marginals, "d_marginals"), gradient)
        named = {}
        for name, place in self.layout.additional.items():
            named[name] = place.of(d_extra).sum(axis=0) if place.shared else place.of(d_extra)
        return d_scores.reshape(self.marginals.shape), named

    def apply_jacobian(self, p: Floats, p_extra: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]:
        """The Jacobian of all marginals by all scores, times [p; p_extra]; it is symmetric.

        Rows stand for instances, as ``offsets`` has them; columns for the flat scores.
        """
        shape = (len(self.offsets) - 1, self.layout.scores.shape[1])
        if p.shape != shape or p_extra.shape != (shape[0], self.layout.extra.shape[1]):
            raise DataError(f"expected flat arrays of {shape[0]} instances, found {p.shape}")
        vertices = self.offsets, self.parts, self.extra_parts, self.factors
        out, out_extra = apply_derivative(self.structure, *vertices, p, p_extra, n_jobs)
        if self.temperature != 1.0:
            out /= self.temperature
            out_extra /= self.temperature
        return out, out_extra

    def _flat(self, array: ArrayLike, name: str) -> Floats:
        values = np.asarray(array, dtype=np.float64)
        if values.shape == self.marginals.shape[1:]:
            values = values[None]
        if values.shape != self.marginals.shape:
            raise DataError(
                f"expected the scores' shape {self.marginals.shape}, found {np.shape(array)}",
                field=name,
            )
        return aligned(flatten(values))

    def _flat_additional(self, named: Mapping[str, ArrayLike], of_scores: bool) -> Floats:
        """Directions (B, f), from those of the scores, or of the expectations, of each name."""
        flat = np.zeros((len(self), self.layout.extra.shape[1]))
        for name, values in named.items():
            place = place_of(name, self.layout.additional)
            array = np.asarray(values, dtype=np.float64)
            shared = of_scores and place.shared
            expected = place.shape if shared else (len(self), *place.shape)
            if array.shape != expected:
                raise DataError(f"expected shape {expected}, found {array.shape}", field=name)
            flat[:, place.columns] = array.reshape(-1, place.stop - place.start)
        return flat


def place_of(name: str, places: Mapping[str, Additional]) -> Additional:
    """Where the additional scores of this name stand, which must have been given."""
    if name not in places:
        names = ", ".join(places) or "none"
        raise DataError(f"no additional scores of this name (given: {names})", field=name)
    return places[name]


def apply_derivative(
    structure: Structure,
    offsets: NDArray[np.int64],
    parts: Parts,
    extra_parts: Parts,
    factors: Floats,
    p: Floats,
    p_extra: Floats,
    n_jobs: int = 1,
) -> tuple[Floats, Floats]:
    """The Jacobian at temperature 1 of marginals on these vertices, times [p; p_extra].

    Without the solver's factors (an empty array) the vertices are factored again.
    """
    if structure.closed_form:
        return structure.closed_form[1](offsets, parts, p), np.zeros(p_extra.shape)
    moved: tuple[Floats, Floats] = core.apply_derivative(
        offsets, parts, extra_parts, factors, structure.aligned, p, p_extra, n_jobs
    )
    return moved
