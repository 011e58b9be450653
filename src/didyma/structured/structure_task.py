"""StructureTask: learners over any structure, from features of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.learning.problem import Cut
from didyma.structure import Structure, require_structure
from didyma.structured.task import Task, TaskProblem
from didyma.structures.layout import Layout
from didyma.structures.oracles import best_outputs

Vector = NDArray[np.float64]


class StructureTask(Task):
    """Outputs of a structure whose parts have features: part p of x scores w·f_p(x).

        Ψ(x, output) = Σ over its parts p of f_p(x)        Δ(y, output) = Hamming distance

    The distance of 0/1 outputs is the number of parts that only one of the two has. Of outputs that
    are numbers (tags, heads, columns) it is half of that, so that a wrong tag counts 1. Inference
    with the loss is an argmax then, too: parts of y score less, and others more.

    >>> from didyma import StructuredSVM
    >>> from didyma.structures import Matching
    >>> def distances(x):  # of each row to each column
    ...     return np.abs(np.subtract.outer(*x))[..., None]
    >>> task = StructureTask(Matching(), distances, n_features=1)
    >>> x = np.array([0.0, 1.0, 2.0]), np.array([1.1, 2.1, 0.1])
    >>> learner = StructuredSVM(task, C=10.0).fit([x], [np.array([2, 0, 1])])
    >>> learner.predict([(np.array([5.0, 3.0]), np.array([3.0, 5.0]))])
    [array([1, 0])]

    Args:
        structure: of `didyma.structures`, of `didyma.solvers`, or your own.
        features: ``features(x)`` returns an array of the shape of the scores with one more axis, of
            n_features numbers, or a pair of it and a dictionary: features of additional scores by
            name (``transitions`` of tags), ``lengths``, and what `Structure.data` names.
        n_features: length of w.

    Examples x are anything that ``features`` takes; outputs are as `Structure.predict` gives them.
    """

    def __init__(
        self, structure: Structure, features: Callable[[Any], Any], n_features: int
    ) -> None:
        require_structure(structure)
        self.structure, self.features_of, self.n_features = structure, features, n_features

    def features(self, x: Any, output: Any) -> Vector:
        """The sum of the features of the output's parts."""
        instance = self._instance(x, np.zeros(self.n_features))
        return instance.sum(instance.encode(output))

    def argmax(self, w: Vector, x: Any) -> Any:
        """The best output of the structure."""
        instance = self._instance(x, w)
        return instance.decode(instance.best())

    def loss(self, y: Any, output: Any) -> float:
        """Entries that differ; half, if one of the two has no part there (−1)."""
        y, output = np.asarray(y), np.asarray(output)
        differs = y != output
        if y.dtype == np.bool_ or output.dtype == np.bool_:
            return float(differs.sum())
        return float(np.where(differs, np.where((y < 0) | (output < 0), 0.5, 1.0), 0.0).sum())

    def loss_augmented(self, w: Vector, x: Any, y: Any, scale: float = 1.0) -> Any:
        """The output of the largest score and loss together."""
        instance = self._instance(x, w)
        return instance.decode(instance.best(instance.encode(y)[0], scale))

    def problem(
        self, examples: Sequence[Any], labels: Sequence[Any], weights: Vector, **options: Any
    ) -> TaskProblem:
        """The same, with outputs known by their parts."""
        return _StructureProblem(self, examples, labels, weights, **options)

    def _instance(self, x: Any, w: Vector) -> _Instance:
        features = self.features_of(x)
        parts, more = features if isinstance(features, tuple) else (features, {})
        arrays = {
            name: self._checked(values, name)
            for name, values in more.items()
            if name != "lengths" and name not in self.structure.data
        }
        parts = self._checked(parts, "features")
        if parts.ndim != self.structure.ndim + 1:
            raise DataError(
                f"expected {self.structure.ndim + 1} axes, those of the scores of one instance and "
                f"one of features, found shape {parts.shape}",
                field="features",
            )
        scores = {name: array @ w for name, array in arrays.items()}
        layout = self.structure.lay_out(parts @ w, **{**more, **scores})
        return _Instance(self.structure, layout, parts, arrays)

    def _checked(self, values: Any, name: str) -> Vector:
        array = np.asarray(values, np.float64)
        if array.shape[-1:] != (self.n_features,):
            raise DataError(
                f"expected a last axis of {self.n_features} features, found shape {array.shape}",
                field=name,
            )
        return array

    def __repr__(self) -> str:
        return f"StructureTask({self.structure!r}, n_features={self.n_features})"


Indicators = tuple[Vector, Vector]  # of parts and of additional parts


class _Instance:
    """An example at some weights, laid out."""

    def __init__(
        self, structure: Structure, layout: Layout, parts: Vector, more: Mapping[str, Vector]
    ) -> None:
        self.structure, self.layout = structure, layout
        n_features = parts.shape[-1]
        self.parts = parts.reshape(-1, n_features)
        self.more = np.zeros((layout.extra.shape[1], n_features))
        for name, array in more.items():
            place = layout.additional[name]
            self.more[place.start : place.stop] = array.reshape(-1, n_features)

    def best(self, gold: Vector | None = None, scale: float = 1.0) -> Indicators:
        """The argmax; with the loss against gold parts, times the scale, if these are given."""
        layout = self.layout
        if gold is not None:
            layout = layout.select([0])
            layout.scores = layout.scores + scale * self.share * (1.0 - 2.0 * gold)
        parts, extra_parts, possible = best_outputs(self.structure.oracle(layout), layout)
        if not possible[0]:
            raise DataError("every output contains a part with score -inf", field="features")
        return self._indicators(parts[0], extra_parts[0])

    def encode(self, output: Any) -> Indicators:
        """An output as people know it."""
        parts, extra_parts = self.structure.encode(np.asarray(output), self.layout)
        return self._indicators(parts[0], extra_parts[0])

    def decode(self, output: Indicators) -> Any:
        """The output as people know it."""
        parts = np.full((1, self.layout.n_parts), -1, np.int32)
        indices = np.flatnonzero(output[0])
        parts[0, : len(indices)] = indices
        return self.structure.decode(parts, self.layout)[0]

    def sum(self, output: Indicators) -> Vector:
        """Features of the parts together."""
        return np.asarray(output[0] @ self.parts + output[1] @ self.more)

    @property
    def share(self) -> float:
        """What a part counts that only one of two outputs has."""
        empty = self.structure.decode(np.full((1, self.layout.n_parts), -1, np.int32), self.layout)
        return 1.0 if np.asarray(empty).dtype == np.bool_ else 0.5

    def _indicators(self, parts: NDArray[np.int32], extra_parts: NDArray[np.int32]) -> Indicators:
        u, v = np.zeros(len(self.parts)), np.zeros(len(self.more))
        u[parts[parts >= 0]] = 1.0
        np.add.at(v, extra_parts[extra_parts >= 0], 1.0)
        return u, v


class _StructureProblem(TaskProblem):
    """Cuts without a detour by outputs as people know them."""

    task: StructureTask

    def cut(self, w: Vector, i: int) -> Cut:
        """Features of the most violating output less those of the gold one, and its loss."""
        instance = self.task._instance(self.examples[i], w)
        gold, _ = instance.encode(self.labels[i])
        output = instance.best(gold, self.loss_scale) if self.augmented else instance.best()
        distance = instance.share * float(np.abs(output[0] - gold).sum())
        return Cut(instance.sum(output) - self._gold_features[i], self.loss_scale * distance)
