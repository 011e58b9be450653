"""Objectives for LightGBM and XGBoost: the exact subgradient of a bound of any ranking loss.

A booster fits a tree to one number for each row, the derivative by its score s_r of

    Σ_i m_i max_y [Δ_i(y) + s·(Ψ_i(y) − Ψ*_i)]       (the hinge; of the ramp, less max_y s·Ψ_i(y))

where m_i are the weights of queries: the coefficient of the row in the most violating ranking less
that in the perfect (or predicted) one, from the oracles by which linear rankers are trained. The
bound is a maximum of planes, so it has no second derivative. In its place is the magnitude |g_r| of
the derivative itself, which for the pairwise map is the weight of all pairs that the row should
change, as in LambdaMART: a leaf is the mean direction of its rows, from −1 to 1, and rows that
nothing asks to move do not hold back the others.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.data.matrix import refuse_masked
from didyma.errors import DataError, check_choice
from didyma.ranking.losses import ItemwiseLoss, parse_loss
from didyma.ranking.problem import RankingProblem
from didyma.ranking.ramp import BOUNDS, RampProblem, bound_of
from didyma.ranking.training_input import weights_of_queries

Vector = NDArray[np.float64]

LEAST = 0.1  # least second-order weight of a row, as a share of the mean


@dataclass(frozen=True)
class Objective:
    """Gradients and second-order weights of a ranking loss, as boosters ask for them."""

    loss: ItemwiseLoss
    bound: str = "hinge"

    _posed: ClassVar[tuple[Any, ...]] = ()  # the data of the last call, and their problem

    def __call__(
        self, first: Any, second: Any, weight: Any = None, group: Any = None
    ) -> tuple[Vector, Vector]:
        """Of (scores, data), as ``train`` has them, or (labels, scores, weights, group sizes)."""
        if hasattr(second, "get_label"):
            return self.derivatives(first, *_judgements(second))
        return self.derivatives(second, first, group, weight)

    def derivatives(
        self, scores: ArrayLike, y: ArrayLike, group: Any, weight: Any = None
    ) -> tuple[Vector, Vector]:
        """The gradient and the second-order weight of each row."""
        problem = self._problem(y, group, weight)
        numbers = _finite(_array(scores, "scores"), "scores")
        if len(numbers) != problem.n_rows:
            raise DataError(f"{len(numbers)} for {problem.n_rows} labels", field="scores")
        slopes, _ = problem.slopes(numbers)
        gradient = slopes * problem.multiplicity.sum()
        size = np.abs(gradient)
        return gradient, size + LEAST * size.mean() + np.finfo(np.float32).tiny

    def _problem(self, y: ArrayLike, group: Any, weight: Any) -> Any:
        """The problem of these judgements, which are read when they are not those of before."""
        if group is None or (isinstance(group, Sized) and not len(group)):
            raise DataError(
                "a ranking objective needs the size of each query: give the booster its group",
                field="group",
            )
        judgements = {"y": y, "group": group, "weight": weight}
        data = [_array(values, field) for field, values in judgements.items()]
        if not self._posed or not all(map(np.array_equal, data, self._posed)):
            posed = (*(values.copy() for values in data), self._pose(data[0], group, weight))
            object.__setattr__(self, "_posed", posed)
        return self._posed[-1]

    def _pose(self, y: NDArray[Any], group: Any, weight: Any) -> Any:
        grades = np.maximum(_finite(y, "y"), 0.0)
        groups, query_weight = Groups.from_sizes(group, len(grades)), None
        if weight is not None:
            try:
                query_weight = weights_of_queries(weight, groups)
            except DataError as error:
                raise DataError(error.problem, field="weight") from None
        kind = RampProblem if self.bound == "ramp" else RankingProblem
        features = np.zeros((len(grades), 1))  # scores are all that counts
        return kind(features, grades, groups, self.loss, query_weight=query_weight)

    def __getstate__(self) -> dict[str, Any]:
        return {"loss": self.loss, "bound": self.bound}


def objective(loss: str | ItemwiseLoss = "ndcg", *, bound: str = "hinge") -> Objective:
    """A custom objective for LightGBM and XGBoost: any of our losses, by its exact subgradient.

    It goes where these libraries take a function: ``lightgbm.train({"objective": …}, …)``,
    ``LGBMRanker(objective=…)``, ``xgboost.train(…, obj=…)``. (``XGBRanker`` takes none.) Queries
    are told to the booster as for its own rankings, by ``group`` or ``qid``; a query's weight is
    the mean of its rows'. Take a loss without cut-off, whatever is reported: the hinge of a cut-off
    hardly moves rows behind it, and trees cannot leave the start.

    >>> function = objective("ap")
    >>> gradient, weight = function(np.array([1, 0, 0]), np.array([0.0, 1.0, 0.0]), None, [3])
    >>> gradient.round(2)
    array([-2.,  1.,  1.])
    """
    check_choice(bound, BOUNDS, "bound")
    parsed = parse_loss(loss)
    return Objective(parsed, bound_of(bound, parsed))


def _judgements(data: Any) -> tuple[Any, Any, Any]:
    """Labels, group sizes and weights of a `lightgbm.Dataset` or an `xgboost.DMatrix`."""
    if hasattr(data, "get_uint_info"):
        weight = data.get_weight()
        edges = data.get_uint_info("group_ptr").astype(np.int64)
        sizes = np.diff(edges)
        if len(weight) == len(sizes) != len(data.get_label()):  # XGBoost has one for each query
            weight = np.repeat(weight, sizes)
        return data.get_label(), sizes, weight if len(weight) else None
    return data.get_label(), data.get_group(), data.get_weight()


def _array(values: Any, field: str) -> NDArray[Any]:
    refuse_masked(values, field)
    try:
        return np.asarray(values)
    except ValueError:  # parts of different lengths
        raise DataError(
            "expected an array, found parts of different lengths", field=field
        ) from None


def _finite(values: NDArray[Any], field: str) -> Vector:
    """The numbers of the rows, of which there is at least one."""
    if values.ndim != 1 or not len(values):
        raise DataError(f"expected a number for each row, found shape {values.shape}", field=field)
    try:
        if values.dtype.kind not in "biufO":
            raise TypeError
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected numbers, found {values.dtype}", field=field) from None
    if not (finite := np.isfinite(numbers)).all():
        row = int(finite.argmin())
        raise DataError(f"row {row}: expected a finite number, found {values[row]}", field=field)
    return numbers
