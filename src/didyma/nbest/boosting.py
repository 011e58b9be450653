"""`BoostingReranker`: one feature at a time, by how much it lowers an exponential loss.

Collins, M. and Koo, T. (2005). Discriminative reranking for natural language parsing.
Computational Linguistics 31. The ridge is our reading of Huang, Harper and Wang (2007).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from didyma._core.nbest import bounds, choose, choose_again, differences, move, ridge_step, tally
from didyma.checkpoints import maybe_save, resume
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.model import Savable, Saved
from didyma.nbest.candidates import read_lists
from didyma.protocol import Estimator, check_is_fitted
from didyma.stateful import Stateful, record_of

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
CandidateVectors = Sequence[Any] | Lists
Values = Sequence[ArrayLike] | None
Judged = tuple[CandidateVectors, Values, Values] | Lists

NOTHING = 1e-14  # share of the first loss below which a gain is rounding, or all pairs are right


@dataclass(frozen=True)
class BoostingRound:
    """What one round did: a step of one weight, the objective and the held-out loss after it."""

    n_iter: int
    feature: int
    step: float
    value: float
    loss: float | None
    seconds: float


@dataclass(eq=False, repr=False)
class BoostingReranker(Savable, Estimator):
    """Boosting of binary features over the log-probability of a decoder.

        F(x) = a₀ log p(x) + Σ_k a_k h_k(x),    loss = Σ_i Σ_j S_ij exp(F(x_ij) − F(x_i*))

    where h_k(x) is 1 if entry k of a candidate's vector is positive (for counts at least c, give
    columns of their own), x_i* the candidate of least loss (among equals the one the decoder
    prefers, then the first) and S_ij by how much candidate j is worse. First a₀ is set by an exact
    line search. Then each round takes the feature of largest |√W⁺ − √W⁻|, where W± are the weights
    of the pairs in which it speaks for and against x_i*, and moves its weight by
    ½ log((W⁺ + εZ) / (W⁻ + εZ)), Z being the loss. An inverted index finds the few pairs that
    change.

    Lists that are empty, of one candidate or of equal losses have no pairs: they teach nothing, and
    any list can be reranked. The reference need not be in its list.

    Parameters
    ----------
    n_rounds : int
        Rounds at most; with an ``eval_set`` the best number of them on it is kept.
    smoothing : float
        ε > 0, which keeps steps finite. Not used with a ridge.
    ridge : float, optional
        R > 0 adds R Σ_k a_k² to the loss: a round takes the feature whose best step lowers the sum
        most, and makes that step.
    patience : int, optional
        Stop after so many rounds without a better held-out loss.
    callback : callable, optional
        Called with a `BoostingRound` after each round; True stops.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    decoder_weight_ : float
        a₀; 0 if `fit` saw no decoder scores, ±1 if pairs never contradict each other about it, as
        the loss then has no minimum.
    n_rounds_ : int
        Rounds that ``coef_`` is made of.
    history_ : list of dict
        n_iter, feature, step, value, loss (mean held-out loss, or None) and seconds of each round;
        the first record, without a feature (-1), is the decoder alone.

    >>> lists = [np.array([[1, 0], [0, 1]]), np.array([[0, 1], [1, 0]])]
    >>> reranker = BoostingReranker(10).fit(lists, [[0, 1], [1, 0]])
    >>> reranker.rerank(lists).tolist()
    [0, 1]
    """

    n_rounds: int = 1000
    smoothing: float = 1e-3
    ridge: float | None = None
    _: KW_ONLY
    patience: int | None = None
    callback: Callable[[BoostingRound], bool | None] | None = None

    coef_: Annotated[Vector, Saved("n_features")] = field(init=False)
    decoder_weight_: Annotated[float, Saved()] = field(init=False)
    n_rounds_: Annotated[int, Saved()] = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    interrupted_: bool = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("callback",)

    def fit(
        self,
        candidates: CandidateVectors,
        losses: Values = None,
        decoder_scores: Values = None,
        eval_set: Judged | None = None,
    ) -> Self:
        """Learn from lists of candidates.

        Parameters
        ----------
        candidates : sequence of n arrays or sparse matrices of shape (m_i, n_features)
            Vectors of which only the sign of each entry is used. Here and below, `Lists`
            bring losses and scores with them.
        losses : sequence of n arrays of shape (m_i,)
            How bad each candidate is, from 0 up.
        decoder_scores : sequence of n arrays of shape (m_i,), optional
            Log-probabilities of the decoder.
        eval_set : (candidates, losses, decoder_scores), optional
            Held-out lists, by whose mean loss the number of rounds is chosen (the first of the
            best).
        """
        self._check_parameters()
        if self.patience is not None and eval_set is None:
            raise DataError("expected an eval_set to watch", field="patience")
        lists = read_lists(candidates, losses, decoder_scores)
        if lists.losses is None:
            raise DataError("expected a loss for each candidate, found none", field="losses")
        held_out = None if eval_set is None else self._read_held_out(eval_set, lists)
        features = _binary(lists)
        better, worse = _pairs(lists)
        if not len(better):
            raise DataError(
                "there is nothing to learn from: no list has candidates of different losses",
                field="losses",
            )
        quality = lists.losses[worse] - lists.losses[better]
        margin = np.zeros(len(better))
        self.decoder_weight_ = 0.0
        if lists.scores is not None:
            margin = lists.scores[better] - lists.scores[worse]
            self.decoder_weight_ = _decoder_weight(margin, quality)
        weight = quality * np.exp(-self.decoder_weight_ * margin)
        watched = None if held_out is None else _HeldOut(held_out, self.decoder_weight_)
        self.n_features_in_ = features.shape[1]
        course = _Rounds(self.n_features_in_)

        def boost() -> bool:
            ridge = 0.0 if self.ridge is None else float(self.ridge)
            state = _Boosting(features, better, worse, weight, ridge, self.smoothing)
            return self._boost(course, state, watched)

        settings = f"{self.n_rounds} rounds, smoothing {self.smoothing}, ridge {self.ridge}"
        name = f"boosting by {settings} on {len(better)} × {self.n_features_in_}"
        self.interrupted_ = resume(name, course, boost)
        self.history_ = course.records
        rounds = self.history_[1 : course.best + 1]
        self.n_rounds_ = len(rounds)
        self.coef_ = np.zeros(self.n_features_in_)
        steps = np.array([record["step"] for record in rounds])
        np.add.at(self.coef_, [record["feature"] for record in rounds], steps)
        return self

    def _boost(self, course: _Rounds, state: _Boosting, watched: _HeldOut | None) -> bool:
        """Go on with a course; returns whether Ctrl-C ended it."""
        try:
            for done in self._rounds(course, state, watched):
                course.note(done)
                if self.callback is not None and self.callback(done):
                    break
                if self.patience is not None and done.n_iter - course.best >= self.patience:
                    break
                maybe_save()
        except KeyboardInterrupt:  # keep what was learned so far
            return True
        return False

    def _rounds(
        self, course: _Rounds, state: _Boosting, watched: _HeldOut | None
    ) -> Iterator[BoostingRound]:
        """The decoder alone, then one round after the other until no feature helps."""
        before = course.records
        start = time.perf_counter() - (before[-1]["seconds"] if before else 0.0)
        loss = None if watched is None else watched.loss
        if not before:
            yield BoostingRound(0, -1, 0.0, state.value, loss, time.perf_counter() - start)
        for record in before[1:]:  # steps that are known need only be made
            state.move(record["feature"], record["step"])
            if watched is not None:
                loss = watched.move(record["feature"], record["step"])
        for n_iter in range(len(course.records), self.n_rounds + 1):
            feature, step = state.choose()
            if step == 0.0:
                return
            state.move(feature, step)
            if watched is not None:
                loss = watched.move(feature, step)
            seconds = time.perf_counter() - start
            yield BoostingRound(n_iter, feature, step, state.value, loss, seconds)

    def score_candidates(
        self, candidates: CandidateVectors, decoder_scores: Values = None
    ) -> list[Vector]:
        """F of each candidate of each list; decoder scores are needed if `fit` had them."""
        lists, scores = self._score(candidates, decoder_scores)
        return np.split(scores, lists.groups.starts[1:-1])

    def rerank(self, candidates: CandidateVectors, decoder_scores: Values = None) -> Integers:
        """The place of the best candidate of each list, the first among equals; −1 if empty."""
        lists, scores = self._score(candidates, decoder_scores)
        return lists.groups.choose(scores)

    def _score(self, candidates: CandidateVectors, decoder_scores: Values) -> tuple[Lists, Vector]:
        check_is_fitted(self)
        lists = read_lists(candidates, None, decoder_scores, self.n_features_in_)
        scores = _binary(lists) @ self.coef_
        if self.decoder_weight_ == 0:
            return lists, scores
        if lists.scores is None:
            raise DataError("expected them, as in fit; found none", field="decoder_scores")
        return lists, scores + self.decoder_weight_ * lists.scores

    def _read_held_out(self, eval_set: Judged, lists: Lists) -> Lists:
        if isinstance(eval_set, Lists):
            eval_set = (eval_set, None, None)
        if len(eval_set) != 3:
            raise DataError("expected (candidates, losses, decoder_scores)", field="eval_set")
        held_out = read_lists(*eval_set, n_features=lists.X.shape[1])
        if held_out.losses is None:
            raise DataError("expected losses, found none", field="eval_set")
        if (held_out.scores is None) != (lists.scores is None):
            raise DataError("expected decoder_scores here too, or nowhere", field="eval_set")
        return held_out


class _Rounds(Stateful):
    """The rounds so far, and the first of the best."""

    _changing: ClassVar[tuple[str, ...]] = ("records", "best", "best_loss")

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.records: list[dict[str, Any]] = []
        self.best, self.best_loss = 0, np.inf

    def check_state(self) -> None:
        """Refuse rounds that are out of order, features that are not there, a best that is none."""
        rounds = [record_of(BoostingRound, record) for record in self.records]
        for number, done in enumerate(rounds):
            if done.n_iter != number or (number and not 0 <= done.feature < self.n_features):
                raise ValueError(f"round {number} should be of one of {self.n_features} features")
            if not np.isfinite(done.step):
                raise ValueError(f"the step of round {number} should be finite")
        if not 0 <= self.best < max(len(rounds), 1):
            raise ValueError(f"best should be one of {len(rounds)} rounds, but is {self.best}")

    def note(self, done: BoostingRound) -> None:
        """Add a round."""
        self.records.append(vars(done))
        if done.loss is None or done.loss < self.best_loss:
            self.best, self.best_loss = done.n_iter, np.inf if done.loss is None else done.loss


class _Boosting:
    """Weights of pairs and features as rounds go by.

    ``rows`` are pairs by the features they differ in, ``columns`` features by such pairs.
    """

    def __init__(
        self,
        features: sp.csr_array,
        better: Integers,
        worse: Integers,
        weight: Vector,
        ridge: float,
        smoothing: float,
    ) -> None:
        self.weight, self.ridge, self.smoothing = weight, ridge, smoothing
        indptr, n_features = features.indptr.astype(np.int64), features.shape[1]
        self.rows = differences(indptr, features.indices.astype(np.int32), better, worse)
        starts, columns, signs = self.rows
        index = sp.csr_array((signs, columns, starts), shape=(len(better), n_features)).tocsc()
        self.columns = index.indptr.astype(np.int64), index.indices.astype(np.int32), index.data
        self.plus, self.minus, self.coef, self.gain = np.zeros((4, n_features))
        self._exact, self._seen = np.zeros((2, n_features), np.bool_)
        self._squares = 0.0
        self._count()
        self._first = self.loss

    @property
    def value(self) -> float:
        """The objective: the exponential loss, and the ridge if there is one."""
        return self.loss + self.ridge * self._squares

    @property
    def _gains(self) -> tuple[Any, ...]:
        return self.plus, self.minus, self.coef, self.ridge, self.gain, self._exact

    def choose(self) -> tuple[int, float]:
        """The feature of largest gain and its step, 0 if that gains nothing."""
        k = choose(*self._gains)
        plus, minus = self.plus[k], self.minus[k]
        if self.gain[k] <= NOTHING * self._first:
            return k, 0.0
        if self.ridge > 0:
            return k, ridge_step(plus, minus, self.coef[k], self.ridge)
        smooth = self.smoothing * self.loss
        return k, 0.5 * float(np.log((plus + smooth) / (minus + smooth)))

    def move(self, feature: int, step: float) -> None:
        """Add a step to the weight of a feature."""
        self._squares += step * (2 * float(self.coef[feature]) + step)
        move(feature, step, self.columns, self.rows, self.weight, *self._gains, self._seen)
        self.loss = float(self.weight.sum())
        if self.loss < self._counted / 2:
            self._count()

    def _count(self) -> None:
        """Sum up all pairs. Errors of later changes are relative to these sums, so repeat it."""
        tally(self.rows, self.weight, self.plus, self.minus)
        bounds(*self._gains)
        self.loss = self._counted = float(self.weight.sum())


class _HeldOut:
    """The mean loss of the chosen candidates of some lists as rounds go by."""

    def __init__(self, lists: Lists, decoder_weight: float) -> None:
        self.lists = lists
        self.values = np.zeros(len(lists))
        if lists.scores is not None:
            self.values += decoder_weight * lists.scores
        self.chosen = lists.loss_of(lists.groups.choose(self.values))
        index = _binary(lists).tocsc()
        self.starts, self.rows = index.indptr, index.indices

    @property
    def loss(self) -> float:
        """Mean over all lists."""
        return float(self.chosen.mean())

    def move(self, feature: int, step: float) -> float:
        """Add a step to the weight of a feature; returns the new loss."""
        rows = self.rows[self.starts[feature] : self.starts[feature + 1]]
        self.values[rows] += step
        touched = self.lists.groups.codes[rows]
        starts, losses = self.lists.groups.starts, self.lists.losses
        choose_again(touched, starts, self.values, losses, self.chosen)
        return self.loss


def _binary(lists: Lists) -> sp.csr_array:
    """Which features each candidate has, sorted."""
    positive = sp.csr_array(lists.X > 0, dtype=np.float64)
    positive.sum_duplicates()
    return positive


def _pairs(lists: Lists) -> tuple[Integers, Integers]:
    """Rows of the best candidate of each list and of all that are worse, pair by pair."""
    assert lists.losses is not None
    scores = np.zeros(len(lists.losses)) if lists.scores is None else lists.scores
    groups = lists.groups
    full = groups.sizes > 0
    order = np.lexsort((-scores, lists.losses, groups.codes))
    better = np.repeat(order[groups.starts[:-1][full]], groups.sizes[full])
    worse = np.flatnonzero(lists.losses > lists.losses[better])
    return better[worse], worse


def _decoder_weight(margin: Vector, quality: Vector) -> float:
    """The a that minimises Σ quality exp(−a margin), by Newton's steps that never increase it."""
    if not margin.min() < 0 < margin.max():
        return -1.0 if margin.min() < 0 else 1.0
    scale = float(np.abs(margin).max())
    weight = 0.0
    for _ in range(1000):
        exponent = -weight * margin
        shares = quality * np.exp(exponent - exponent.max())
        step = (shares @ margin) / (shares @ margin**2)
        weight += np.sign(step) * np.log1p(scale * abs(step)) / scale
        if abs(step) <= 1e-12 * abs(weight):
            break
    return float(weight)
