"""Calibration of scores: the probability that a passage is relevant, across queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.model import Saved, Serialisable
from didyma.text.guarantees import Guarantees, check_share

FOLDS = 5
BINS = 10  # of reliability
FEWEST = 10  # passages above a threshold that its precision is read off
POINTS = 512  # of the held-out curve that thresholds are read off
TIE = 2.0**-14  # what tells equal probabilities apart
CELL = 28  # bits of a score that are not looked at: 24 of its fraction remain
CHOSEN = "chosen"
BLOCK = 64  # passages of one product
GREATEST = 1e300  # scores beyond are as good as this one
LEAST = 1e-290  # scores that are all below have no slope: it would overflow

Vector: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
T = TypeVar("T")


class Reliability(NamedTuple):
    """Held-out passages of about one score: their share of relevant ones should be that score.

    ``low`` and ``high`` are Wilson's 95% interval of the share.
    """

    passages: int
    score: float
    share: float
    low: float
    high: float


class HeldOutError(NamedTuple):
    """How far calibrated scores p of held-out passages are from their relevance y.

    log_loss    mean of −y log p − (1 − y) log(1 − p)
    brier       mean of (p − y)²
    error       expected calibration error: mean |p − y| of the means in ten bins, which have
                equally many passages, by ascending scores
    """

    kind: str
    log_loss: float
    brier: float
    error: float

    @classmethod
    def of(cls, kind: str, image: Vector, share: Vector) -> Self:
        """The errors of these scores."""
        order = np.argsort(image, kind="stable")
        bins = np.array_split(order, BINS)
        apart = sum(abs(float((image[bin] - share[bin]).sum())) for bin in bins)
        brier = float(np.mean((image - share) ** 2))
        return cls(kind, _log_loss(image, share), brier, apart / len(image))


class Threshold(NamedTuple):
    """A score to cut rankings at, and what that did to held-out queries.

    Of the ``passages`` that reach ``score``, the share ``precision`` is relevant (``low`` and
    ``high`` are Wilson's 95% interval); they are the share ``recall`` of all relevant passages, and
    the share ``answered`` of queries has one at least.
    """

    score: float
    precision: float
    low: float
    high: float
    recall: float
    answered: float
    passages: int


@dataclass(frozen=True, eq=False)
class Calibration(Serialisable):
    """A rising function from raw scores into (0, 1): the chance that a passage is relevant.

        platt       1 / (1 + exp(−slope (s − centre) − intercept)), slope ≥ 0
        isotonic    lines between knots, the centres of what pooling adjacent violators pools

    Whichever has the lower log loss on held-out queries is taken. Raw scores that differ in single
    precision have different images in the same order, so that ranks by either are equal: where the
    function is flat, or too steep for doubles near 1, a part of 2⁻¹⁴ of the image, which counts up
    with the score, tells them apart. (Of all doubles a quarter is in (0, 1), so no function can
    tell all of them apart.)

    >>> scores, labels = [3.0, 1.0, 2.5, 0.5, 2.0, 1.5], [1, 0, 1, 0, 1, 0]
    >>> calibration = Calibration.fit(scores, labels, Groups.from_sizes([2, 2, 2], 6))
    >>> calibration([-9.0, 1.0, 2.5, 9.0]).round(2).tolist()
    [0.0, 0.24, 0.76, 1.0]

    Attributes
    ----------
    kind : {"platt", "isotonic"}
    parameters : array
        Centre, slope and intercept, or knots above their values.
    log_losses : by kind
        On held-out queries, by which the kind is chosen; empty if there is but one query.
    curve : array of shape (4, n_points)
        Held-out scores, descending, and how many passages, relevant passages and queries with a
        passage reach each.
    relevant, n_queries
        How many of them there are.
    bins : tuple of Reliability
        Of held-out passages, by their scores in steps of .1.
    held_out : tuple of HeldOutError
        Of each kind, and of the "chosen" one: for each query, the kind that others have chosen.
    guarantees : Guarantees or None
        Thresholds that held-out queries certify; None in files of before 0.3.
    """

    kind: str
    parameters: Vector
    log_losses: dict[str, float]
    curve: Annotated[Vector, Saved(4, "points")]
    relevant: float
    n_queries: int
    bins: tuple[Reliability, ...]
    held_out: Annotated[tuple[HeldOutError, ...], Saved(default=())] = ()
    guarantees: Annotated[Guarantees | None, Saved(default=None)] = None

    @classmethod
    def fit(cls, scores: ArrayLike, relevance: ArrayLike, groups: Groups) -> Self:
        """Learn from raw scores of models that did not see the query.

        ``relevance`` is 1 or 0 for each row, or between where a teacher is not sure: the image of a
        score is the mean that is to be expected.
        """
        raw, share = _numbers(scores, "scores"), _numbers(relevance, "relevance")
        if not len(raw) == len(share) == len(groups.rows) > 0:
            raise DataError(
                f"expected as many scores as labels and rows, found {len(raw)}, {len(share)} and "
                f"{len(groups.rows)}",
                field="scores",
            )
        if share.min() < 0 or share.max() > 1:
            raise DataError("expected numbers from 0 to 1", field="relevance")
        values = _Cells.of(raw).values
        fold = _folds(groups)
        relevant, n_queries = float(share.sum()), len(groups)
        if not fold.any():  # but one query
            platt = _fit_platt(values, share)
            return cls("platt", platt, {}, np.zeros((4, 0)), relevant, n_queries, ())

        def learn(train: Mask) -> list[tuple[str, Vector]]:
            return [(kind, fit(values[train], share[train])) for kind, fit in FITS.items()]

        def loss(learned: tuple[str, Vector], test: Mask) -> float:
            return _log_loss(_image(*learned, raw[test]), share[test]) * float(test.sum())

        choice = nested_choice(learn, loss, fold)
        images = {kind: np.empty(len(values)) for kind in (*FITS, CHOSEN)}
        for n, (chosen, settings) in enumerate(zip(choice.held_out, choice.settings)):
            test = fold == n
            for kind, learned in zip(images, (*settings, chosen)):
                images[kind][test] = _image(*learned, raw[test])
        errors = [HeldOutError.of(kind, image, share) for kind, image in images.items()]
        losses = {error.kind: error.log_loss for error in errors[:-1]}
        kind = min(losses, key=losses.__getitem__)
        image = images[CHOSEN]
        return cls(
            kind,
            FITS[kind](values, share),
            losses,
            _curve(image, share, groups),
            relevant,
            n_queries,
            tuple(_reliabilities(image, share)),
            tuple(errors),
            Guarantees.of(image, share, groups),
        )

    def __call__(self, scores: ArrayLike) -> Vector:
        """Calibrated scores, strictly between 0 and 1."""
        return _image(self.kind, self.parameters, _numbers(scores, "scores"))

    @property
    def error(self) -> float:
        """Expected calibration error of held-out passages, as `HeldOutError` has it.

        Files of 0.2 have only ``bins``, whose mean distance of score and share it is then.
        """
        if self.held_out:
            return self.held_out[-1].error
        passages = sum(bin.passages for bin in self.bins)
        distance = sum(bin.passages * abs(bin.score - bin.share) for bin in self.bins)
        return distance / max(passages, 1)

    def threshold(self, precision: float) -> Threshold:
        """The least score above which held-out passages are relevant as often as is asked."""
        check_share(precision, "precision")
        score, count, relevant, queries = self.curve[:, self.curve[1] >= FEWEST]
        if not len(score):
            raise DataError(
                f"a threshold needs at least {FEWEST} held-out passages of two queries, found "
                f"{int(self.curve[1].max(initial=0))}"
            )
        precisions = relevant / count
        if not np.any(precisions >= precision):
            raise DataError(
                f"no threshold reaches {precision:g}: the greatest precision that {FEWEST} or more "
                f"held-out passages have is {precisions.max():.3f}",
                field="precision",
            )
        last = int(np.flatnonzero(precisions >= precision)[-1])
        low, high = wilson(relevant[last], count[last])
        return Threshold(
            score=float(score[last]),
            precision=float(precisions[last]),
            low=low,
            high=high,
            recall=float(relevant[last] / self.relevant) if self.relevant else 0.0,
            answered=float(queries[last] / self.n_queries),
            passages=int(count[last]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Kind, losses and reliability, ready for JSON."""
        return {
            "kind": self.kind,
            "log_losses": self.log_losses,
            "expected_calibration_error": self.error,
            "held_out": [error._asdict() for error in self.held_out],
            "bins": [bin._asdict() for bin in self.bins],
        }

    def _check_state(self) -> None:
        shapes = {"platt": (3,), "isotonic": (2, self.parameters.size // 2)}
        if self.parameters.shape != shapes.get(self.kind):
            raise ValueError(f"a calibration has parameters of {self.parameters.shape}")


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share.

    >>> low, high = wilson(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    z2 = 1.959963984540054**2
    middle = (successes + z2 / 2) / (trials + z2)
    spread = np.sqrt(z2 * (successes * (1 - successes / trials) + z2 / 4)) / (trials + z2)
    return max(0.0, float(middle - spread)), min(1.0, float(middle + spread))


class _Cells(NamedTuple):
    """Scores to single precision, and their places among all such numbers, in (0, 1)."""

    values: Vector
    places: Vector

    @classmethod
    def of(cls, scores: Vector) -> _Cells:
        bits = np.abs(scores).view(np.int64) >> CELL
        values = np.copysign((bits << CELL).view(np.float64), scores) + 0.0
        half = 2.0 ** (63 - CELL)
        places = (half + np.where(scores < 0, -bits, bits) + 0.5) / (2 * half)
        return cls(np.clip(values, -GREATEST, GREATEST), places)


def _image(kind: str, parameters: Vector, scores: Vector) -> Vector:
    cells = _Cells.of(scores)
    if kind == "platt":
        centre, slope, intercept = parameters
        with np.errstate(over="ignore"):  # as far out as that, all is one
            image = _logistic(slope * (cells.values - centre) + intercept)
    else:
        image = np.interp(cells.values, *parameters)
    return (1 - TIE) * image + TIE * cells.places


def _fit_isotonic(scores: Vector, share: Vector) -> Vector:
    """Mean score and mean share of each pool, as two rows.

    One relevant passage is imagined below all and one that is not above all, so that no score means
    that something is certain.
    """
    from sklearn.isotonic import isotonic_regression

    scores = np.concatenate([[scores.min()], scores, [scores.max()]])
    share = np.concatenate([[1.0], share, [0.0]])
    distinct, place = np.unique(scores, return_inverse=True)
    weight = np.bincount(place)
    pooled = isotonic_regression(
        np.bincount(place, share) / weight, sample_weight=weight.astype(np.float64)
    )
    pool = np.cumsum(np.diff(pooled, prepend=pooled[0]) > 0)
    total = np.bincount(pool, weight)
    # Weighted by shares of a pool, that huge scores do not overflow.
    centre = np.bincount(pool, distinct * (weight / total[pool]))
    value = np.bincount(pool, pooled * (weight / total[pool]))
    apart = np.concatenate([[True], np.diff(centre) > 0])
    return np.stack([centre[apart], np.maximum.accumulate(value[apart])])


def _fit_platt(scores: Vector, share: Vector) -> Vector:
    """Centre, slope and intercept of a logistic regression on Platt's smoothed targets."""
    size = max(np.abs(scores).max(), LEAST)
    unit = scores / size
    centre, deviation = unit.mean(), unit.std()
    target = platt_targets(share)
    base = np.log(target.mean() / (1 - target.mean()))
    flat = np.array([centre * size, 0.0, base])
    if deviation < 1e-12:
        return flat
    columns = np.stack([(unit - centre) / deviation, np.ones(len(unit))])
    w = least_logistic_loss(columns, target, np.array([0.0, base]), np.zeros(2))
    return np.array([centre * size, w[0] / (deviation * size), w[1]]) if w[0] > 0 else flat


def platt_targets(share: Vector) -> Vector:
    """A relevant passage counts as (N₊ + 1) / (N₊ + 2), any other as 1 / (N₋ + 2)."""
    relevant = share.sum()
    high, low = (relevant + 1) / (relevant + 2), 1 / (len(share) - relevant + 2)
    return low + (high - low) * share


def least_logistic_loss(
    columns: Vector, target: Vector, w: Vector, penalty: Vector, tolerance: float = 1e-14
) -> Vector:
    """Weights of the least Σ log(1 + exp z) − target · z + ½ Σ_j penalty_j w_j² of z = w·columns.

    By Newton's method, from ``w``, until a step would change the loss by less than the tolerance.
    """

    def loss(w: Vector) -> float:
        z = w @ columns
        return float(np.sum(np.logaddexp(0, z) - target * z) + 0.5 * penalty @ w**2)

    value = loss(w)
    for _ in range(100):
        p = _logistic(w @ columns)
        gradient = columns @ (p - target) + penalty * w
        hessian = _products(columns, p * (1 - p)) + np.diag(penalty)
        step = np.linalg.solve(hessian + 1e-12 * np.trace(hessian) * np.eye(len(w)), gradient)
        if gradient @ step <= tolerance * (1 + value):
            break
        size = 1.0
        while loss(w - size * step) > value - 1e-4 * size * (gradient @ step) and size > 1e-9:
            size /= 2
        w = w - size * step
        value = loss(w)
    return w


def _products(columns: Vector, weights: Vector) -> Vector:
    """Σ_n weights_n x_n x_nᵀ over columns x_n.

    Blocks are so small that BLAS uses one thread: on a busy machine many are slower by far.
    """
    width, n = columns.shape
    whole = n - n % BLOCK
    weighted = columns * weights
    first, second = (
        rows[:, :whole].reshape(width, -1, BLOCK).transpose(1, 0, 2) for rows in (weighted, columns)
    )
    blocks = first @ second.transpose(0, 2, 1)
    sums: Vector = blocks.sum(axis=0) + weighted[:, whole:] @ columns[:, whole:].T
    return sums


FITS: dict[str, Callable[[Vector, Vector], Vector]] = {
    "platt": _fit_platt,
    "isotonic": _fit_isotonic,
}


def _logistic(z: Vector) -> Vector:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))


def _folds(groups: Groups) -> NDArray[np.int64]:
    """The fold of each row, by its query; all are 0 if but one query has rows."""
    present = np.flatnonzero(groups.sizes)
    fold = np.zeros(len(groups), np.int64)
    fold[present] = np.random.default_rng(0).permutation(len(present)) % FOLDS
    return fold[groups.codes]


def _log_loss(image: Vector, share: Vector) -> float:
    return float(-np.mean(share * np.log(image) + (1 - share) * np.log1p(-image)))


def _curve(image: Vector, share: Vector, groups: Groups) -> Vector:
    """The attribute `curve`; its points are closest together at the top."""
    order = np.argsort(-image, kind="stable")
    ranked = image[order]
    last = np.flatnonzero(np.diff(ranked, append=-1.0))  # of equal scores
    best = np.zeros(len(groups))
    np.maximum.at(best, groups.codes, image)
    wanted = np.unique(np.geomspace(1, len(last), POINTS).astype(np.int64)) - 1
    last = last[wanted]
    return np.stack(
        [
            ranked[last],
            last + 1.0,
            np.cumsum(share[order])[last],
            len(best) - np.searchsorted(np.sort(best), ranked[last]).astype(np.float64),
        ]
    )


def _reliabilities(image: Vector, share: Vector) -> Iterator[Reliability]:
    place = np.minimum((image * BINS).astype(np.int64), BINS - 1)
    for number in range(BINS):
        in_bin = place == number
        if count := int(in_bin.sum()):
            relevant = float(share[in_bin].sum())
            low, high = wilson(relevant, count)
            yield Reliability(count, float(image[in_bin].mean()), relevant / count, low, high)


def _numbers(values: ArrayLike, field: str) -> Vector:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError("expected numbers", field=field) from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise DataError("expected a list of finite numbers", field=field)
    return numbers


class NestedChoice(NamedTuple, Generic[T]):
    """What was learned without each fold, by the setting that the other folds chose.

    ``settings`` are what each setting has learned without each fold. Their ``losses`` are summed
    over all folds; by these ``best`` is the setting for what is learned from all of them.
    """

    held_out: list[T]
    settings: list[Sequence[T]]
    losses: NDArray[np.float64]
    best: int


def nested_choice(
    learn: Callable[[Mask], Sequence[T]],
    loss: Callable[[T, Mask], float],
    fold: NDArray[np.int64],
) -> NestedChoice[T]:
    """Choose among the settings that ``learn`` tries on some rows, by the loss on others.

    ``fold`` is that of each row, from 0. Two folds leave nothing to choose by: the first setting is
    taken for each.

    >>> y, fold = np.array([1.0, 3.0, 2.0, 2.0, 1.0, 3.0]), np.array([0, 0, 1, 1, 2, 2])
    >>> means = lambda rows: [0.0, float(y[rows].mean())]
    >>> squares = lambda mean, rows: float(((y[rows] - mean) ** 2).sum())
    >>> choice = nested_choice(means, squares, fold)
    >>> choice.held_out, choice.losses.tolist(), choice.best
    ([2.0, 2.0, 2.0], [28.0, 4.0], 1)
    """
    n_folds = int(fold.max()) + 1
    outer = [learn(fold != n) for n in range(n_folds)]
    losses = np.array([[loss(learned, fold == n) for learned in outer[n]] for n in range(n_folds)])
    inner = np.zeros_like(losses)  # of each fold, the losses of others without it
    if n_folds > 2:
        for first in range(n_folds):
            for second in range(first):
                learned = learn((fold != first) & (fold != second))
                inner[first] += [loss(one, fold == second) for one in learned]
                inner[second] += [loss(one, fold == first) for one in learned]
    chosen = [learned[int(np.argmin(sums))] for learned, sums in zip(outer, inner)]
    return NestedChoice(chosen, outer, losses.sum(axis=0), int(np.argmin(losses.sum(axis=0))))
