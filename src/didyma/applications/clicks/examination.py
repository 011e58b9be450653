"""How often users look at each position of a page of results, told from where clicks fell.

A click at position k on a document of relevance γ has the chance θ_k γ: the position is looked at,
and what stands there pleases. Only documents that one query has shown at several positions tell θ
from γ, and θ only up to a factor; the first position has θ = 1 here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.clicks.log import ClickLog
from didyma.errors import check_choice

Vector: TypeAlias = NDArray[np.float64]

STEPS = 2000
CLOSE = 1e-6  # change of a logarithm by which a step may still move what has converged
CLOSE_ENOUGH = 1e-4  # the same for intervals, which are wider than that
TOP = 0.9  # of the curve where EM begins, as an examination of 1 would never change
FAR = 30.0  # of a logit, beyond which probabilities are 0 or 1 to the last bit
TINY = 1e-12
INTERVAL = (2.5, 97.5)  # per cent


@dataclass(frozen=True, eq=False)
class Examination:
    """A curve over positions, relative to the first, with an interval of 95 %.

    Attributes
    ----------
    positions : array of shape (n_positions,)
        Those of the log that can be compared with each other, rising.
    values, low, high : arrays of shape (n_positions,)
        Without a bootstrap there is no interval, and the last two are NaN.
    log_likelihood : list of float
        After each step of the estimator; it never falls.
    converged : bool
    n_documents : int
        Documents of queries that were shown at several positions, and clicked.
    """

    positions: NDArray[np.int64]
    values: Vector
    low: Vector
    high: Vector
    log_likelihood: list[float]
    converged: bool
    n_documents: int

    def at(self, positions: NDArray[np.int64]) -> Vector:
        """The values at some positions; NaN where there is none."""
        place = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        return np.where(self.positions[place] == positions, self.values[place], np.nan)


class EMResult(NamedTuple):
    """Logarithms of the curve, the log-likelihood after each step, and whether it converged."""

    log_curve: Vector
    log_likelihood: list[float]
    converged: bool


class _Cells(NamedTuple):
    """Impressions and clicks of documents at positions, both by their numbers, by document."""

    document: NDArray[np.int64]
    position: NDArray[np.int64]
    shown: Vector
    clicked: Vector

    def of_documents(self, values: Vector) -> Vector:
        """Sums over the cells of each document."""
        return sums(self.document, values, int(self.document.max()) + 1)

    def of_positions(self, values: Vector) -> Vector:
        """Sums over the cells of each position."""
        return sums(self.position, values, int(self.position.max()) + 1)


def sums(place: NDArray[np.int64], values: NDArray[Any], n: int) -> Vector:
    """The sum of the values at each of n places."""
    return np.asarray(np.bincount(place, values, n), np.float64)


def estimate(
    log: ClickLog, method: str = "swaps", *, bootstrap: int = 0, random_state: int = 0
) -> Examination:
    """The examination of each position that documents connect with the first, directly or not.

    ``bootstrap`` curves, from queries with random weights (the exponential ones of the Bayesian
    bootstrap, so that no query is ever lost), give the interval.
    """
    check_choice(method, METHODS, "method")
    cells_used = _informative(log)
    positions, place = np.unique(log.position[cells_used], return_inverse=True)
    _, first, document = np.unique(log.pair[cells_used], return_index=True, return_inverse=True)
    shown, clicked = log.impressions[cells_used].astype(float), log.clicks[cells_used].astype(float)
    # A position without clicks has θ = 0, and its logarithm no value: it is left out.
    seen = np.bincount(place, clicked) > 0
    alive, number = seen[place], np.cumsum(seen) - 1
    cells = _Cells(document[alive], number[place[alive]], shown[alive], clicked[alive])
    fitted = METHODS[method](cells, np.zeros(int(seen.sum())))
    curves = np.empty((bootstrap, int(seen.sum())))
    random = np.random.default_rng(random_state)
    query = log.query[log.pair[cells_used][first]][cells.document]
    for b in range(bootstrap):
        weight = random.standard_exponential(len(log.queries))[query]
        drawn = cells._replace(shown=weight * cells.shown, clicked=weight * cells.clicked)
        curves[b] = METHODS[method](drawn, fitted.log_curve, CLOSE_ENOUGH).log_curve
    interval = np.full((2, len(positions)), np.nan)
    if bootstrap:
        interval[:] = 0.0
        interval[:, seen] = np.exp(np.percentile(curves, INTERVAL, axis=0))
    values = np.zeros(len(positions))
    values[seen] = np.exp(fitted.log_curve)
    low, high = interval
    n_documents = int(document.max()) + 1
    return Examination(
        positions, values, low, high, fitted.log_likelihood, fitted.converged, n_documents
    )


def _informative(log: ClickLog) -> NDArray[np.int64]:
    """Cells of clicked documents that were shown at several positions, all of these connected.

    Of several sets of positions that nothing connects, the one with most clicks is kept.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    several = np.bincount(log.pair) > 1
    cells = np.flatnonzero(several[log.pair] & (np.bincount(log.pair, log.clicks) > 0)[log.pair])
    if not len(cells):
        raise DataError(
            "no document of a query was shown at two positions and clicked, so that nothing tells "
            "how much of a click rate is the position's: let some requests swap neighbours"
        )
    positions, place = np.unique(log.position[cells], return_inverse=True)
    n_documents = len(several)
    edges = (np.ones(len(cells)), (log.pair[cells], n_documents + place))
    size = n_documents + len(positions)
    _, part = connected_components(coo_array(edges, shape=(size, size)), directed=False)
    component = part[log.pair[cells]]
    cells = cells[component == np.bincount(component, log.clicks[cells]).argmax()]
    first = log.position[cells].min()
    if not log.clicks[cells[log.position[cells] == first]].any():
        raise DataError(
            f"position {first}, the first, has no click on a document that was shown elsewhere as "
            "well: there is nothing to compare the other positions with"
        )
    return cells


def _swaps(cells: _Cells, start: Vector, close: float = CLOSE) -> EMResult:
    """From where the clicks of each document fell, given how many it had.

    Given that, relevance says nothing: a click of document d was at position k with probability
    n_dk θ_k / Σ_j n_dj θ_j, where n are impressions. That likelihood (of clicks as Poisson counts)
    is maximal where each position has as many clicks as expected, and the step

        θ_k ← Σ_d c_dk / Σ_d c_d n_dk / Σ_j n_dj θ_j

    never lowers it. Nothing is estimated for a single document, so that many with few impressions
    each do no harm.
    """
    clicks_of_document = cells.of_documents(cells.clicked)
    clicks_of_position = cells.of_positions(cells.clicked)

    def expected(x: Vector) -> tuple[Vector, Vector]:
        each = cells.shown * np.exp(x)[cells.position]
        return each, cells.of_documents(each)

    def value(x: Vector) -> float:
        each, total = expected(x)
        return float(cells.clicked @ np.log(each / total[cells.document]))

    def step(x: Vector) -> Vector:
        rate = (clicks_of_document / expected(x)[1])[cells.document]
        log_curve = np.log(clicks_of_position / cells.of_positions(rate * cells.shown))
        return log_curve - log_curve[0]

    return _accelerated(start, step, value, lambda x: x, close)


def _em(cells: _Cells, start: Vector, close: float = CLOSE) -> EMResult:
    """The likelihood of clicks and of their absence, by EM over what was looked at.

    Of impressions without a click, (1 − γ) θ / (1 − θ γ) were looked at, and (1 − θ) γ / (1 − θ γ)
    would have pleased; with clicks, these make the next θ and γ. It begins where `_swaps` ends.
    Each document has a γ of its own, which is wrong by much if it was shown a few times only, and
    draws θ along.
    """
    begin = _swaps(cells, start).log_curve
    curve = TOP * np.exp(begin - begin.max())
    expected = cells.of_documents(cells.shown * curve[cells.position])
    relevance = np.minimum(cells.of_documents(cells.clicked) / expected, TOP)
    n, passed = len(start), cells.shown - cells.clicked
    shown_at, shown_of = cells.of_positions(cells.shown), cells.of_documents(cells.shown)

    def chances(x: Vector) -> tuple[Vector, Vector]:
        both = 1.0 / (1.0 + np.exp(-np.clip(x, -FAR, FAR)))
        return both[:n][cells.position], both[n:][cells.document]

    def value(x: Vector) -> float:
        theta, gamma = chances(x)
        return float(cells.clicked @ np.log(theta * gamma) + passed @ np.log1p(-theta * gamma))

    def step(x: Vector) -> Vector:
        theta, gamma = chances(x)
        missed = passed / (1.0 - theta * gamma)
        looked = cells.of_positions(cells.clicked + missed * theta * (1.0 - gamma)) / shown_at
        pleased = cells.of_documents(cells.clicked + missed * gamma * (1.0 - theta)) / shown_of
        return _logit(np.concatenate([looked, pleased]))

    def logarithms(x: Vector) -> Vector:
        log_curve: Vector = -np.log1p(np.exp(-x[:n]))
        return log_curve - log_curve[0]

    begin = _logit(np.concatenate([curve, relevance]))
    return _accelerated(begin, step, value, logarithms, close)


def _logit(chance: Vector) -> Vector:
    with np.errstate(divide="ignore"):
        return np.clip(np.log(chance) - np.log1p(-chance), -FAR, FAR)


def _accelerated(
    x: Vector,
    step: Callable[[Vector], Vector],
    value: Callable[[Vector], float],
    curve: Callable[[Vector], Vector],
    close: float,
) -> EMResult:
    """Repeat EM steps, which never lower the value, until the curve stays where it is (SQUAREM).

    Two steps tell where many would lead if each did the same share of what is left; from there
    one more is taken, and kept if it is no worse than the two.
    """
    values = [value(x)]
    for _ in range(STEPS):
        once = step(x)
        twice = step(once)
        if np.abs(curve(twice) - curve(once)).max() <= close:
            values.append(value(twice))
            return EMResult(curve(twice), values, True)
        moved, bent = once - x, twice - 2.0 * once + x
        length = max(1.0, float(np.linalg.norm(moved)) / max(float(np.linalg.norm(bent)), TINY))
        ahead = step(x + 2.0 * length * moved + length**2 * bent)
        reached, plain = value(ahead), value(twice)
        x = ahead if reached >= plain else twice
        values.append(max(reached, plain))
    return EMResult(curve(x), values, False)


METHODS: dict[str, Callable[..., EMResult]] = {"swaps": _swaps, "em": _em}
