"""Covariate drift: how far new queries are from those of training, feature by feature."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.model import Saved, Serialisable

QUANTILES = 33
RISK = 0.01  # that a batch like training is said to differ
SURE = 2.33  # standard errors that a mean exceeds with this risk
SLIGHT = 0.05  # mean distance of features, by importance, below which it is none to speak of
DIFFERS, FAR = 0.045, 0.25  # shares of the order that are untried
UNSURE = 0.4  # distances that a batch cannot show even if they are greater
NAMED = 3  # features in a verdict
LOOKED_AT = 16  # documents of a query, where queries are many

Vector: TypeAlias = NDArray[np.float64]


class FeatureDrift(NamedTuple):
    """A feature in a batch of queries and in training.

    ``distance`` is the greatest difference of both shares of values up to some value (Kolmogorov
    and Smirnov's), ``shift`` the chance that a value is greater than one in training less that it
    is smaller, and ``outside`` the share of values outside the range in training.
    """

    name: str
    distance: float
    shift: float
    outside: float

    def __str__(self) -> str:
        way = "higher" if self.shift > 0 else "lower"
        if abs(self.shift) < self.distance / 2:
            way = "spread otherwise"
        beyond = f", {self.outside:.0%} outside its range" if self.outside >= 0.005 else ""
        return f"{self.name} is {way} (distance {self.distance:.2f}{beyond})"


@dataclass(frozen=True)
class Drift:
    """How a batch of queries differs from those of training, by feature, and a verdict.

    What may do harm is what a reranker changes in the old order, and of that only what training has
    not tried: changes beyond those of training, and of the others the share that rests on features
    which differ,

        untried = excess + (departure − excess) · distance.

    Attributes
    ----------
    features : tuple of FeatureDrift
        Those first whose distance weighs most by their importance.
    distance : float
        Mean over features, by importance, of the distance of values or spread, whichever is more;
        what may be chance counts as 0.
    threshold : float
        Distances up to this are what so few queries show by chance.
    n_queries : int
    departure : float
        How far the order is from the old one: the mean over queries of 1 less their correlation.
    excess : float
        By how much that is more than in training; what may be chance counts as 0.
    inputs : tuple of FeatureDrift
        What probabilities rest on, those first whose distance weighs most by their importance.
    inputs_distance : float
        Mean over these of the distance of values, by their importance to probabilities.
    """

    features: tuple[FeatureDrift, ...]
    distance: float
    threshold: float
    n_queries: int
    departure: float = 1.0
    excess: float = 0.0
    inputs: tuple[FeatureDrift, ...] = ()
    inputs_distance: float = 0.0

    @property
    def untried(self) -> float:
        """The share of the order that rests on what training has not tried."""
        return self.excess + (self.departure - self.excess) * self.distance

    @property
    def is_uncalibrated(self) -> bool:
        """Whether probabilities rest on values so unlike those of training that they may be off."""
        return self.inputs_distance >= SLIGHT

    @property
    def warns(self) -> bool:
        """Whether the order may be worse than the old one, or probabilities may be off."""
        return self.untried >= DIFFERS or self.is_uncalibrated

    @property
    def level(self) -> str:
        """One of "like training", "harmless", "uncalibrated", "differs" and "far".

        The last two warn of the order, "uncalibrated" of probabilities alone.
        """
        if self.untried >= DIFFERS:
            return "differs" if self.untried < FAR else "far"
        if self.is_uncalibrated:
            return "uncalibrated"
        return "like training" if self.distance < SLIGHT else "harmless"

    @property
    def differing(self) -> tuple[FeatureDrift, ...]:
        """Features that are not as in training, if that matters in all."""
        if self.level == "like training":
            return ()
        features = self.inputs if self.level == "uncalibrated" else self.features
        return tuple(one for one in features if one.distance > self.threshold)

    @property
    def verdict(self) -> str:
        """The level, and the features that differ most."""
        if self.level == "like training":
            doubt = self.threshold > UNSURE
            return self.level + f", as far as {_queries(self.n_queries)} can tell" * doubt
        reasons = list(map(str, self.differing[:NAMED]))
        if self.excess >= 0.005:
            reasons.insert(0, f"it changes {self.excess:.0%} more of the order than in training")
        if self.level == "harmless":
            reasons.insert(0, "features differ, but the order rests little on that")
        elif self.level == "uncalibrated":
            reasons.insert(0, "the order rests little on what differs, but probabilities do")
        elif self.is_uncalibrated:
            reasons.insert(0, "order and probabilities rest on what differs")
        rest = len(self.differing) - NAMED
        return f"{self.level}: {'; '.join(reasons)}" + (f"; and {rest} more" if rest > 0 else "")

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        names = (
            "level verdict untried departure excess distance inputs_distance n_queries threshold"
        )
        return {name: getattr(self, name) for name in names.split()} | {
            name: [feature._asdict() for feature in getattr(self, name)]
            for name in ("features", "inputs")
        }


class Observed(NamedTuple):
    """Sums over queries, to be compared with `Ranges`; a sum of two is that of all their queries.

    For each thing that is looked at: ``below`` and ``upto`` are the shares of a query's values
    below and up to each edge, ``above`` those above the last. ``departed`` sums the departures of
    ``n_departures`` queries from the old order.
    """

    below: Vector
    upto: Vector
    above: Vector
    n_queries: int
    n_departures: int
    departed: float

    def __add__(self, other: Observed) -> Observed:  # type: ignore[override]
        return Observed(*map(operator.add, self, other))


@dataclass(frozen=True, eq=False)
class Ranges(Serialisable):
    """Distributions of the features in training, as quantiles.

    Looked at are the values of each feature, how much they spread within a query, and how many
    passages a query has. Each query counts as one, whatever its passages: they resemble each other.
    By the inequality of Dvoretzky, Kiefer and Wolfowitz, and as a mean of distribution functions
    varies less than a sample of one value from each, m queries from where the n of training came
    from have a distance above

        √(½ log(2 · number of features / risk) · (1/m + 1/n))

    in some feature with a chance below the risk of 1%, or little more. What such a distance means
    depends on what the feature means to the ranker: its importance. Probabilities rest on features
    in shares of their own.

    How far its order is from the old one (`departures`) is compared as well, where it is known.

    >>> random = np.random.default_rng(0)
    >>> X, groups = random.normal(size=(2000, 2)), Groups.from_sizes([10] * 200, 2000)
    >>> ranges = Ranges.fit(X, groups, ("bm25", "length"))
    >>> print(ranges.compare(random.normal(size=(500, 2)), Groups.from_sizes([10] * 50, 500)))
    like training
    >>> print(ranges.compare(X + [0.0, 2.0], groups))
    far: length is higher (distance 0.68, 11% outside its range)

    Attributes
    ----------
    names : tuple of str
        What is looked at.
    edges : array of shape (n_names, n_quantiles)
        Values in training, the least first and the greatest last.
    shares : array of shape (n_names, n_quantiles)
        Share of values in training up to each of them.
    importance : array of shape (n_features,)
        Shares of the features in what moves scores.
    inputs : array of shape (n_features,), or None
        Shares of the features in what moves probabilities, where they are known.
    n_queries : int
    departure : tuple of float
        How far the order is from the old one: mean and deviation over queries.
    """

    names: tuple[str, ...]
    edges: Annotated[NDArray[np.float32], Saved("names", QUANTILES)]
    shares: Annotated[NDArray[np.float32], Saved("names", QUANTILES)]
    importance: Annotated[Vector, Saved("features")]
    n_queries: int
    departure: tuple[float, float] = (1.0, 0.0)
    inputs: Annotated[Vector | None, Saved("features", default=None)] = None

    @classmethod
    def fit(
        cls,
        X: NDArray[Any],
        groups: Groups,
        names: Sequence[str],
        importance: Vector | None = None,
        departures: Vector | None = None,
        inputs: Vector | None = None,
    ) -> Self:
        """Look at the features of training, one row a passage; all are as important if not told.

        Without ``departures`` all of the order counts as the ranker's own; ``inputs`` are what
        probabilities rest on.
        """
        _check(X, groups, len(names))
        departed = np.ones(1) if departures is None or not len(departures) else departures
        weights = np.ones(len(names)) if importance is None else np.asarray(importance)
        columns = list(_columns(X, groups))
        edges = np.stack([_quantiles(*column) for column in columns])
        shares = np.stack([_shares(at, *column)[1] for at, column in zip(edges, columns)])
        spreads = (f"spread of {name}" for name in names)
        return cls(
            (*names, *spreads, "number of passages"),
            edges,
            shares.astype(np.float32),
            _as_shares(weights),
            int(np.count_nonzero(groups.sizes)),
            (float(departed.mean()), float(departed.std())),
            None if inputs is None else _as_shares(inputs),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """The features that are looked at."""
        return self.names[: len(self.importance)]

    def compare(self, X: NDArray[Any], groups: Groups, departures: Vector | None = None) -> Drift:
        """How far the features of a batch of queries are from those of training, and its order."""
        _check(X, groups, len(self.names) // 2)
        columns = zip(self.edges, _columns(X, groups))
        shares = [_shares(edges, values, weights) for edges, (values, weights) in columns]
        below, upto, above = map(np.array, zip(*shares))
        n_queries = int(np.count_nonzero(groups.sizes))
        departed = np.zeros(0) if departures is None else departures
        sums = n_queries * below, n_queries * upto, n_queries * above
        return self.judge(Observed(*sums, n_queries, len(departed), float(departed.sum())))

    def observe(self, X: NDArray[Any], departures: Vector) -> Observed:
        """What the features of one query are like, of many documents by some of them.

        Sums of such are compared by `judge`, as `compare` does with all queries at once.
        """
        n_rows, n_features = X.shape
        rows = _single(X)
        some = rows[:: -(-n_rows // LOOKED_AT)]
        spread = np.where(rows.min(axis=0) == rows.max(axis=0), 0.0, X.std(axis=0))
        edges = self.edges[:n_features, :, None]
        values = np.ascontiguousarray(some.T)[:, None]
        others = np.append(_single(spread), _single(np.array(n_rows)))[:, None]
        rest = self.edges[n_features:]
        return Observed(
            np.vstack([(values < edges).mean(axis=2), others < rest]),
            np.vstack([(values <= edges).mean(axis=2), others <= rest]),
            np.append((values[:, 0] > edges[:, -1]).mean(axis=1), others[:, 0] > rest[:, -1]),
            1,
            len(departures),
            float(departures.sum()),
        )

    def judge(self, observed: Observed) -> Drift:
        """How far queries are from those of training."""
        n_queries = observed.n_queries
        below, upto, above = (
            each / n_queries for each in (observed.below, observed.upto, observed.above)
        )
        numbers = zip(
            np.maximum(np.abs(upto - self.shares).max(axis=1), below[:, 0]).tolist(),
            np.mean(1 - upto - below, axis=1).tolist(),
            (below[:, 0] + above).tolist(),
        )
        drifts = [FeatureDrift(name, *figures) for name, figures in zip(self.names, numbers)]
        tests = 0.5 * np.log(2 * len(self.names) / RISK)
        threshold = float(np.sqrt(tests * (1 / n_queries + 1 / self.n_queries)))
        # The number of passages is told, but no feature.
        distances = np.array([one.distance for one in drifts[:-1]])
        worst = distances.reshape(2, -1).max(axis=0)
        mean = float(self.importance @ np.where(worst > threshold, worst, 0.0))
        order = np.argsort(-np.tile(self.importance, 2) * distances, kind="stable").tolist()
        listed = tuple(drifts[n] for n in [*order, len(order)])
        usual, deviation = self.departure
        departure = observed.departed / observed.n_departures if observed.n_departures else usual
        error = deviation * np.sqrt(1 / n_queries + 1 / self.n_queries)
        excess = departure - usual if departure - usual > SURE * error else 0.0
        drift = Drift(listed, mean, threshold, n_queries, float(departure), float(excess))
        if self.inputs is None:
            return drift
        values = distances[: len(self.inputs)]
        order = np.argsort(-self.inputs * values, kind="stable").tolist()
        weighed = tuple(drifts[n] for n in order if self.inputs[n] > 0)
        apart = float(self.inputs @ np.where(values > threshold, values, 0.0))
        return replace(drift, inputs=weighed, inputs_distance=apart)

    def _check_state(self) -> None:
        if len(self.names) != 2 * len(self.importance) + 1:
            raise ValueError(f"{len(self.importance)} features have {len(self.names)} ranges")


def _as_shares(weights: Vector) -> Vector:
    total = weights.sum()
    return weights / total if total else weights


def departures(scores: Vector, old: Vector, groups: Groups) -> Vector:
    """1 less the correlation of new and old scores, for each query that has different ones of both.

    >>> new, old = np.array([1.0, 2, 1, 2, 5, 6]), np.array([3.0, 7, 9, 4, 1, 1])
    >>> departures(new, old, Groups.from_lists([2, 2, 2])).round(9).tolist()
    [0.0, 2.0]
    """
    full = groups.sizes > 0
    starts, sizes = groups.starts[:-1][full], groups.sizes[full]

    def unit(values: Vector) -> Vector:
        """Of length 1 in each query, or 0 where all are the same."""
        rows = values[groups.rows]
        same = np.minimum.reduceat(rows, starts) == np.maximum.reduceat(rows, starts)
        away = rows - np.repeat(np.add.reduceat(rows, starts) / sizes, sizes)
        length = np.sqrt(np.add.reduceat(away**2, starts))
        return away / np.repeat(np.where(same | (length == 0), np.inf, length), sizes)

    a, b = unit(scores), unit(old)
    differ = np.logical_or.reduceat(a != 0, starts) & np.logical_or.reduceat(b != 0, starts)
    distances: Vector = 1 - np.add.reduceat(a * b, starts)[differ]
    return distances


def _columns(X: NDArray[Any], groups: Groups) -> Iterator[tuple[NDArray[np.float32], Vector]]:
    """Values to look at and their weights: each feature, its spread in each query, and sizes."""
    sizes = groups.sizes[groups.sizes > 0]
    starts = groups.starts[:-1][groups.sizes > 0]
    rows = X[groups.rows]
    in_query, by_row = np.full(len(sizes), 1 / len(sizes)), np.repeat(1 / sizes, sizes) / len(sizes)
    for values in _single(rows).T:
        yield values, by_row
    mean = np.add.reduceat(rows, starts, axis=0) / sizes[:, None]
    squares = (rows - np.repeat(mean, sizes, axis=0)) ** 2
    spread = np.sqrt(np.add.reduceat(squares, starts, axis=0) / sizes[:, None])
    # What is constant in a query would otherwise spread by its rounding.
    constant = np.minimum.reduceat(rows, starts) == np.maximum.reduceat(rows, starts)
    for values in _single(np.where(constant, 0.0, spread)).T:
        yield values, in_query
    yield _single(sizes), in_query


def _single(values: NDArray[Any]) -> NDArray[np.float32]:
    """In single precision, so that values which differ by rounding are the same."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _quantiles(values: NDArray[np.float32], weights: Vector) -> NDArray[np.float32]:
    is_number = ~np.isnan(values)
    if not is_number.any():
        return np.zeros(QUANTILES, np.float32)
    values, weights = values[is_number], weights[is_number]
    order = np.argsort(values, kind="stable")
    levels = np.linspace(0, 1, QUANTILES) * weights.sum()
    places = np.searchsorted(np.cumsum(weights[order]), levels)
    return values[order[np.minimum(places, len(order) - 1)]]


def _shares(
    edges: NDArray[np.float32], values: NDArray[np.float32], weights: Vector
) -> tuple[Vector, Vector, float]:
    """The share of values below each edge and up to it, and above the last."""
    below, upto = (
        np.bincount(np.searchsorted(edges, values, side), weights, minlength=len(edges) + 1)
        for side in ("right", "left")
    )
    return np.cumsum(below[:-1]), np.cumsum(upto[:-1]), float(weights[values > edges[-1]].sum())


def _check(X: NDArray[Any], groups: Groups, n_features: int) -> None:
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError("expected a dense matrix of numbers", field="X")
    if X.shape != (len(groups.rows), n_features):
        raise DataError(
            f"expected {len(groups.rows)} rows of {n_features} features, found shape {X.shape}",
            field="X",
        )
    if not len(X):
        raise DataError("expected at least one row", field="X")


def _queries(n: int) -> str:
    return "one query" if n == 1 else f"{n} queries"
