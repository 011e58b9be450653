"""Composition: structures that share parts, and constraints on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structure import Structure, require_structure
from didyma.structures.batches import as_batch, check_scores, lay_out_additional
from didyma.structures.layout import Additional, Floats, Layout
from didyma.structures.logic import Cardinality, acyclic, check_edges, check_logic
from didyma.values import as_array


@dataclass(frozen=True, eq=False)
class Factor:
    """A structure over some of the variables: ``variables`` says which one each of its parts is.

    It has the shape of the structure's scores; −1 stands for a part that cannot be. Additional
    scores of the structure have its own names, after ``name_`` where several factors have a name.

    >>> import didyma
    >>> from didyma.structures import Choice
    >>> shared = Composition(3, [Factor(Choice(), [0, 1]), Factor(Choice(), [1, 2])])
    >>> didyma.local_sparsemap([0.0, 3.0, 0.0], shared).marginals.round(2)
    array([0., 1., 0.])
    """

    structure: Structure
    variables: ArrayLike
    name: str = ""

    def __post_init__(self) -> None:
        require_structure(self.structure)
        variables = as_array(self.variables)
        if variables.ndim != self.structure.ndim or variables.dtype.kind not in "iu":
            raise DataError(
                f"expected whole numbers with {self.structure.ndim} axes, as the scores of "
                f"{self.structure!r}, found {variables.dtype} of shape {variables.shape}",
                field="variables",
            )
        used = variables[variables >= 0]
        if len(np.unique(used)) < len(used) or variables.min(initial=0) < -1:
            raise DataError("expected different variables, or -1 for none", field="variables")
        object.__setattr__(self, "variables", variables.astype(np.int64))

    def key(self, name: str) -> str:
        """How additional scores of this name are called."""
        return f"{self.name}_{name}" if self.name else name

    def lay_out(self, flat: Floats, additional: Mapping[str, Any]) -> Layout:
        """The structure's own batch, from the scores of all variables (B, n)."""
        variables = np.ravel(self.variables)
        scores = np.where(variables >= 0, flat[:, variables], -np.inf)
        return self.structure.lay_out(
            scores.reshape(len(flat), *self.shape), **self._own_scores(additional)
        )

    def allows(self, output: NDArray[np.bool_], additional: Mapping[str, Any]) -> bool:
        """Whether the structure has an output of exactly these variables; −∞ forbids parts."""
        variables = np.ravel(self.variables)
        chosen = (variables >= 0) & output[variables]
        scores = np.where(chosen, 1.0, -np.inf).reshape(self.shape)
        try:
            parts = np.asarray(self.structure.argmax(scores, **self._own_scores(additional)))
        except DataError:
            return False
        best = parts[(parts >= 0) & (parts < chosen.size)]
        return np.array_equal(np.sort(best), np.flatnonzero(chosen))

    def _own_scores(self, additional: Mapping[str, Any]) -> dict[str, Any]:
        """Additional scores by the names that the structure knows."""
        prefix = self.key("")
        return {
            key.removeprefix(prefix): values
            for key, values in additional.items()
            if key.startswith(prefix)
        }

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the scores of an instance."""
        return np.shape(self.variables)


@dataclass(frozen=True)
class Composition:
    """Parts that are there or not, such that every factor is an output of its structure.

        score(x) = Σ scores[i] x_i + Σ_e pairwise[e] x_i x_j + additional scores of the structures

    Scores (B, n_variables) count where a variable is there, as in any structure; ``pairwise``
    (n_edges) or (B, n_edges) counts where both of an edge are. Constraints are those of
    `FactorGraph`. The best marginals that all of these agree on are found by
    `didyma.local_sparsemap` or `didyma.nn.LocalSparseMAP`.

    >>> import didyma
    >>> from didyma.structures import AtMost, Choice
    >>> either_one = Composition(4, [Factor(Choice(), [0, 1]), Factor(Choice(), [2, 3])])
    >>> didyma.local_sparsemap([1.0, 0.2, 0.9, 0.0], either_one).marginals.round(2)
    array([0.9 , 0.1 , 0.95, 0.05])
    >>> at_most = Composition(4, either_one.factors, logic=[AtMost(1, [0, 2])])
    >>> didyma.local_sparsemap([1.0, 0.2, 0.9, 0.0], at_most).marginals.round(3)
    array([0.475, 0.525, 0.525, 0.475])
    """

    n_variables: int
    factors: Sequence[Factor] = ()
    edges: Sequence[tuple[int, int]] = ()
    logic: Sequence[Cardinality] = ()

    ndim: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.n_variables < 1:
            raise DataError("expected at least one variable", field="n_variables")
        object.__setattr__(self, "factors", tuple(self.factors))
        object.__setattr__(self, "edges", check_edges(self.edges, self.n_variables))
        object.__setattr__(self, "logic", check_logic(self.logic, self.n_variables))
        for factor in self.factors:
            if not isinstance(factor, Factor):
                raise DataError(f"expected a Factor, found {factor!r}", field="factors")
            if np.max(factor.variables, initial=0) >= self.n_variables:
                highest = np.max(factor.variables)
                raise DataError(
                    f"expected variables below {self.n_variables}, found {highest}", field="factors"
                )

    @property
    def score_shape(self) -> tuple[int, ...]:
        """Shape of the scores of an instance."""
        return (self.n_variables,)

    @cached_property
    def is_forest(self) -> bool:
        """Whether no two factors are joined in two ways."""
        scopes = [[v for v in np.ravel(one.variables).tolist() if v >= 0] for one in self.factors]
        scopes += [list(edge) for edge in self.edges]
        return acyclic(self.n_variables, [*scopes, *(one.indices for one in self.logic)])

    def check(
        self, scores: ArrayLike, **additional: ArrayLike | None
    ) -> tuple[Floats, Floats, dict[str, Additional]]:
        """Scores (B, n), additional ones (1 or B, f) as flat arrays, and where each stands.

        Pairs come first, then what each factor has.
        """
        flat = check_scores(as_batch(scores, 1), "scores")
        if flat.shape[1:] != self.score_shape:
            raise DataError(
                f"expected {self.n_variables} variables, found shape {flat.shape[1:]}",
                field="scores",
            )
        arrays = {name: array for name, array in additional.items() if array is not None}
        shape = (len(self.edges),)
        pairs = arrays.pop("pairwise", np.zeros(shape)) if self.edges else None
        extra, places = lay_out_additional(len(flat), {"pairwise": (pairs, shape)})
        blocks = [extra]
        for factor, share in zip(self.factors, self.shares(arrays)):
            layout = factor.lay_out(np.zeros((len(flat), self.n_variables)), share)
            start = sum(block.shape[1] for block in blocks)
            for name, place in layout.additional.items():
                places[factor.key(name)] = replace(
                    place, start=start + place.start, stop=start + place.stop
                )
            blocks.append(layout.extra)
        rows = max(len(block) for block in blocks)
        return flat, np.hstack([np.broadcast_to(b, (rows, b.shape[1])) for b in blocks]), places

    def shares(self, additional: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Which additional scores go to which factor: to the one whose name they begin with."""
        shares: list[dict[str, Any]] = [{} for _ in self.factors]
        for key, values in additional.items():
            named = [k for k, f in enumerate(self.factors) if f.name and key.startswith(f.key(""))]
            owners = named or [k for k, factor in enumerate(self.factors) if not factor.name]
            if len(owners) != 1:
                raise DataError(
                    "no factor has these scores"
                    if not owners
                    else "several factors could have these "
                    "scores: give each a name, and its scores after it",
                    field=key,
                )
            shares[owners[0]][key] = values
        return shares
