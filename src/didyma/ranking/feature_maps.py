"""Joint feature maps of a ranking as values: how much each row counts by the place it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.ranking.losses import check_cutoff

__all__ = ["FeatureMap", "Pairwise", "Positional", "TopMean", "Truncated", "parse_feature_map"]


LARGEST_WEIGHT = 1e9  # of a rank: larger ones say nothing that C cannot


@dataclass(frozen=True)
class FeatureMap:
    """Ψ(ranking) = Σ coefficient(place) · φ(item)."""

    name: ClassVar[str]
    kind: ClassVar[str]  # of the map, in the core

    def weights_for(self, n: int) -> NDArray[np.float64]:
        """Weights v_1..v_n of the ranks, where the map has any."""
        return np.empty(0)

    def described(self, longest: int) -> Any:
        """The map as the core knows it, for queries of at most so many rows."""
        from didyma._core.ranking import feature_map

        return feature_map(self.kind, self.weights_for(longest))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pairwise(FeatureMap):
    """Yue et al. 2007: the mean of ±(φ_positive − φ_negative) over all pairs."""

    name = kind = "pairwise"


@dataclass(frozen=True)
class Positional(FeatureMap):
    """Haponchyk & Moschitti 2019: Σ_r v_r φ(item at rank r), with non-increasing v.

    ``weights`` is "reciprocal" (1/r), "discount" (1/log2(1 + r)), or a sequence v_1, v_2, …
    """

    name = kind = "positional"

    weights: str | Sequence[float] = "reciprocal"

    def __post_init__(self) -> None:
        if isinstance(self.weights, str) and self.weights in ("reciprocal", "discount"):
            return
        try:
            numbers = () if isinstance(self.weights, str) else tuple(map(float, self.weights))
        except (TypeError, ValueError):
            numbers = ()
        if not numbers:
            raise DataError(
                f"expected 'reciprocal', 'discount' or numbers, found {self.weights!r}",
                field="weights",
            )
        if not np.all(np.abs(numbers) <= LARGEST_WEIGHT):
            raise DataError(f"expected no weight beyond {LARGEST_WEIGHT:g}", field="weights")
        if np.any(np.diff(numbers) > 0):
            # Sorting within each class is optimal only then, and with it every oracle here.
            raise DataError("rank weights must be non-increasing", field="weights")
        object.__setattr__(self, "weights", numbers)

    def weights_for(self, n: int) -> NDArray[np.float64]:
        """v_1..v_n; a sequence that is too short goes on with zeros."""
        ranks = np.arange(1, n + 1)
        if self.weights == "reciprocal":
            return 1.0 / ranks
        if self.weights == "discount":
            return 1.0 / np.log2(1.0 + ranks)
        weights = np.asarray(self.weights, dtype=np.float64)
        if len(weights) >= n:
            return weights[:n].copy()
        if weights[-1] < 0.0:
            raise DataError(f"{len(weights)} rank weights for a query of {n} rows", field="weights")
        return np.concatenate([weights, np.zeros(n - len(weights))])

    def __str__(self) -> str:
        if self.weights == "reciprocal":
            return self.name
        if isinstance(self.weights, str):
            return f"{self.name}:{self.weights}"
        return f"{self.name}:{','.join(map(repr, self.weights))}"


@dataclass(frozen=True)
class Truncated(Positional):
    """`Positional` over the first P ranks only, P being the number of positives."""

    name = kind = "truncated"


@dataclass(frozen=True)
class TopMean(FeatureMap):
    """Yu & Joachims 2009: the mean of φ over the first k ranks."""

    name = "top"
    kind = "positional"

    k: int = 10

    def __post_init__(self) -> None:
        check_cutoff(self.k)

    def weights_for(self, n: int) -> NDArray[np.float64]:
        """1/k for the first k ranks."""
        return np.where(np.arange(n) < self.k, 1.0 / self.k, 0.0)

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"


def parse_feature_map(name: str | FeatureMap) -> FeatureMap:
    """The feature map that a name stands for: the inverse of ``str``.

    >>> parse_feature_map("positional:discount")
    Positional(weights='discount')
    >>> parse_feature_map("top@5")
    TopMean(k=5)
    """
    if isinstance(name, FeatureMap):
        return name
    kind, _, rest = str(name).strip().lower().partition(":")
    try:
        if kind == "pairwise" and not rest:
            return Pairwise()
        if kind in ("positional", "truncated"):
            cls = Positional if kind == "positional" else Truncated
            if rest in ("", "reciprocal", "discount"):
                return cls(rest or "reciprocal")
            return cls(tuple(float(value) for value in rest.split(",")))
        if kind.startswith("top@") and not rest:
            return TopMean(int(kind[4:]))
    except ValueError as error:
        if isinstance(error, DataError):
            problem = f"{error.problem} in {name!r}"
            raise DataError(problem, field="feature_map") from None
    raise DataError(
        f"unknown feature map {name!r}; expected 'pairwise', 'positional', 'positional:discount', "
        "'positional:1,0.5,0.2', 'truncated' or 'top@10'",
        field="feature_map",
    )
