"""Rerank n-best lists in a space of few dimensions, where inputs lie close to their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix, dense
from didyma.errors import DataError, check_choice
from didyma.model import Savable, Saved
from didyma.nbest.candidates import read_candidates, read_view
from didyma.nbest.canonical import SMALL, CanonicalCorrelations, leading_subspace
from didyma.nbest.projections import (
    Discriminative,
    Learned,
    LowRankRound,
    RerankingProblem,
    similarities,
)
from didyma.parameters import check_parameter
from didyma.protocol import Estimator, check_is_fitted, warn_of_convergence

Vector = NDArray[np.float64]
Bases = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]

OBJECTIVES = ("generative", "softened", "discriminative")
WEIGHTS = range(101)
FOLDS = 2
INEXACT = 1e-5
TUNING = np.dtype(
    [("tau", float), ("lam", float), ("n_components", int), ("weight", float), ("loss", float)]
)


class FeaturePair(NamedTuple):
    """What an input feature and an output feature together add to a similarity."""

    input: Any
    output: Any
    contribution: float


class SimilarityExplanation(NamedTuple):
    """A similarity, the pairs that matter most in it, and what all others add."""

    similarity: float
    pairs: list[FeaturePair]
    rest: float


@dataclass(eq=False, repr=False)
class LowRankReranker(Savable, Estimator):
    """Low-dimensional reranking of n-best lists (Jagarlamudi and Daumé 2012).

    Learns projections A (d1, k) of inputs and B (d2, k) of outputs such that an input x is close to
    its right output y. Candidate ŷ with the decoder's score s gets

        s + w cos(A'x, B'ŷ),

    where w is ``weight_``; without decoder scores, the cosine alone. The cosine is 0 where a
    projection is zero, as for a vector of unseen features only. See `didyma.nbest.projections` for
    the objectives, `didyma.nbest.canonical` for the equations.

    Parameters
    ----------
    objective : {"discriminative", "softened", "generative"}
        "generative" correlates inputs with their right outputs; "softened" also moves away from bad
        candidates, each by its loss; "discriminative" asks of each a margin, in several rounds.
    n_components : int
        k; fewer are kept where the views have fewer directions in common.
    tau : float
        0 < τ ≤ 1, regularisation: C = (1 − τ) X'X/n + τ I. For bags of features 0.01 to 0.1 were
        best on held-out lists of two languages; less takes longer to solve. See `tune`.
    lam : float
        0 ≤ λ ≤ 1, share of the candidates against that of the right outputs; "generative" has none.
    weight : float, optional
        w. None chooses it from 0, 1, … 100 by two-fold cross-validation on the training lists if
        `fit` gets decoder scores, which takes about twice the time; else it is 1.
    scale : {"mean", "sum"}
        Whether products of the views are divided by the number of inputs. "sum" is what the paper
        prints; its margins are so small that constraints say nothing, and its τ hardly regularises.
    step : float
        γ, by which multipliers move.
    max_iter : int
        Most rounds of "discriminative".
    tol : float
        It stops when no slack changes by as much.
    solver : {"exact", "randomized"}
        "randomized" looks for directions among the leading ``rank`` ones of the inputs (and of the
        outputs, if these have more than 2,000 features); time is linear in the data.
    rank : int
        See ``solver``.
    random_state : int
        Seed of "randomized".
    callback : callable, optional
        Called with a `didyma.nbest.projections.LowRankRound` after each round; True stops.

    Attributes
    ----------
    A_, B_ : arrays of shape (d1, k), (d2, k)
        The projections, with A'CxxA = B'CyyB = I. Their first columns are those of a smaller k,
        except for "discriminative", whose margins depend on k.
    correlations_ : array of shape (k,)
        ρ of each direction, in decreasing order; up to 1/(1 − τ) for "generative".
    weight_ : float
    n_iter_ : int
        Rounds.
    slacks_ : array of shape (n,)
        ξ of each training input.
    residual_ : float
        Relative residual of the equations; for "randomized" it tells what its subspace leaves out.
    tuning_ : array with fields tau, lam, n_components, weight, loss
        What `tune` has tried.

    Examples
    --------
    >>> X, Y = np.eye(3), np.eye(3)
    >>> lists, losses = [np.eye(3)] * 3, 1 - np.eye(3)
    >>> reranker = LowRankReranker(n_components=3).fit(X, Y, lists, losses)
    >>> reranker.rerank(X, lists)
    array([0, 1, 2])
    """

    objective: str = "discriminative"
    n_components: int = 50
    tau: float = 0.1
    lam: float = 0.3
    _: KW_ONLY
    weight: float | None = None
    scale: str = "mean"
    step: float = 0.1
    max_iter: int = 5
    tol: float = 1e-3
    solver: str = "exact"
    rank: int = 300
    random_state: int = 0
    callback: Callable[[LowRankRound], bool | None] | None = None

    A_: Annotated[Vector, Saved("n_features", "components")] = field(init=False)
    B_: Annotated[Vector, Saved("outputs", "components")] = field(init=False)
    correlations_: Annotated[Vector, Saved("components")] = field(init=False)
    slacks_: Annotated[Vector, Saved("lists")] = field(init=False)
    weight_: Annotated[float, Saved()] = field(init=False)
    n_iter_: Annotated[int, Saved()] = field(init=False)
    residual_: Annotated[float, Saved()] = field(init=False)
    tuning_: NDArray[Any] = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("callback",)

    def fit(
        self, X: Any, Y: Any, candidates: Any = None, losses: Any = None, decoder_scores: Any = None
    ) -> Self:
        """Learn from inputs, their right outputs, and lists of candidates.

        Parameters
        ----------
        X, Y : arrays or sparse matrices of shape (n, d1), (n, d2)
            Inputs and right outputs; an output need not be in its list.
        candidates : list of n arrays or sparse matrices of shape (m_i, d2), or `Lists`
            An empty list adds nothing to what is learned from X and Y. "generative" needs none.
        losses : list of n vectors of length m_i
            How bad each candidate is, 0 or more.
        decoder_scores : list of n vectors of length m_i, optional
            They serve to choose the weight, if that is None, and nothing else.
        """
        self._check_parameters()
        inputs = read_view(X, "X")
        outputs = read_view(Y, "Y")
        if inputs.shape[0] != outputs.shape[0]:
            raise DataError(
                f"expected {inputs.shape[0]} rows as in X, found {outputs.shape[0]}", field="Y"
            )
        n, n_features = outputs.shape
        if candidates is None and self.objective == "generative":
            nothing = Groups.from_lists(np.zeros(n))
            candidates = Lists(np.zeros((0, n_features)), grouping=nothing, losses=np.zeros(0))
        lists = read_candidates(candidates, losses, decoder_scores, n, n_features)
        problem = _problem(inputs, outputs, lists)
        learned = self._learn(problem)
        if len(learned.directions.correlations) == 0:
            raise DataError("X and Y have no direction in common: their products are all zero")
        self._training = problem
        self.n_features_in_ = inputs.shape[1]
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array([str(name) for name in X.columns], dtype=object)
        self._keep(learned)
        self.weight_ = self._choose_weight(problem, lists)
        return self

    def tune(
        self,
        X: Any,
        candidates: Any,
        losses: Any = None,
        decoder_scores: Any = None,
        *,
        taus: float | Iterable[float] | None = None,
        lams: float | Iterable[float] | None = None,
        components: int | Iterable[int] | None = None,
        weights: float | Iterable[float] = WEIGHTS,
    ) -> Self:
        """Choose τ, λ, k and w by the mean loss of the choices for held-out inputs, after `fit`.

        All models of the grid (parameters as they are, where none is given) learn from the data of
        `fit`. One factorisation serves all λ of a τ and one eigenproblem all k, but for the later
        rounds of "discriminative". The parameters ``tau``, ``lam``, ``n_components`` and ``weight``
        become those of the best model, which this estimator then is; of equally good ones it takes
        that of the smallest weight, then the first. A weight of 0 is the decoder's own choice.
        ``tuning_`` has a row for each combination.
        """
        check_is_fitted(self)
        if not hasattr(self, "_training"):
            raise DataError("a model from a file has no training data: call fit, then tune")
        self._check_parameters()
        problem = self._training
        held_out = read_view(X, "X", self.n_features_in_)
        sizes = held_out.shape[0], problem.Y.shape[1]
        lists = read_candidates(candidates, losses, decoder_scores, *sizes)
        taus = _grid("tau", self.tau if taus is None else taus)
        lams = _grid("lam", self.lam if lams is None or self.objective == "generative" else lams)
        components = _grid("n_components", self.n_components if components is None else components)
        weights = sorted(_grid("weight", 1.0 if lists.scores is None else weights))
        table = []
        best = (np.inf, np.inf)
        for tau, lam, k, learned in self._models(problem, taus, lams, components):
            similarity = _similarities(held_out, lists, *learned.projections)
            losses = _mean_losses(lists, similarity, weights)
            table += [(tau, lam, k, weight, loss) for weight, loss in zip(weights, losses)]
            i = int(np.argmin(losses))
            if (losses[i], weights[i]) < best:
                best = (losses[i], weights[i])
                self.set_params(tau=tau, lam=lam, n_components=k, weight=float(weights[i]))
                self._keep(learned)
                self.weight_ = float(weights[i])
        self.tuning_ = np.array(table, dtype=TUNING)
        return self

    def similarities(self, X: Any, candidates: Any) -> Any:
        """cos(A'x, B'ŷ) of each candidate: a vector for one input, a list of them for several.

        One input is a vector, or a matrix of one row, with one matrix of candidates; several are a
        matrix with a list of matrices.
        """
        inputs, lists, single = self._read(X, candidates, None)
        return _split(_similarities(inputs, lists, self.A_, self.B_), lists, single)

    def score_candidates(self, X: Any, candidates: Any, decoder_scores: Any = None) -> Any:
        """Decoder score + ``weight_`` × cosine of each candidate; without the former, the cosine.

        Inputs, candidates and the result are as in `similarities`.
        """
        inputs, lists, single = self._read(X, candidates, decoder_scores)
        return _split(self._scores(inputs, lists), lists, single)

    def rerank(self, X: Any, candidates: Any, decoder_scores: Any = None) -> Any:
        """The place of the best candidate of each list; ties: the first, −1 in an empty list.

        One input, as in `similarities`, has one.
        """
        inputs, lists, single = self._read(X, candidates, decoder_scores)
        choice = lists.groups.choose(self._scores(inputs, lists))
        return int(choice[0]) if single else choice

    def explain(
        self,
        x: Any,
        candidate: Any,
        n: int | None = 10,
        *,
        input_names: Sequence[Any] | None = None,
        output_names: Sequence[Any] | None = None,
    ) -> SimilarityExplanation:
        """The pairs of features that drive the similarity of an input and a candidate.

        The pair (p, q) contributes x_p ŷ_q A_p·B_q / (‖A'x‖ ‖B'ŷ‖); over all pairs this sums up to
        the cosine. The ``n`` largest by magnitude are listed (None: all), by the names of their
        features, or their numbers.
        """
        check_is_fitted(self)
        row = read_view(x, "x", self.n_features_in_, single=True)
        other = read_view(candidate, "candidate", len(self.B_), single=True)
        p, a = _entries(row)
        q, b = _entries(other)
        left, right = a[:, None] * self.A_[p], b[:, None] * self.B_[q]
        norm = np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0))
        shares = left @ right.T / norm if norm > 0 else np.zeros((len(p), len(q)))
        order = np.argsort(-np.abs(shares), axis=None, kind="stable")[:n]
        columns = getattr(self, "feature_names_in_", range(len(self.A_)))
        inputs = columns if input_names is None else input_names
        outputs = range(len(self.B_)) if output_names is None else output_names
        pairs = [
            FeaturePair(inputs[p[i]], outputs[q[j]], float(shares[i, j]))
            for i, j in zip(*np.unravel_index(order, shares.shape))
        ]
        similarity = float(shares.sum())
        return SimilarityExplanation(
            similarity, pairs, similarity - sum(pair.contribution for pair in pairs)
        )

    def _learn(self, problem: RerankingProblem) -> Learned:
        models = self._models(problem, [self.tau], [self.lam], [self.n_components])
        return next(learned for *_, learned in models)

    def _models(
        self, problem: RerankingProblem, taus: list[float], lams: list[float], components: list[int]
    ) -> Iterator[tuple[float, float, int, Learned]]:
        """What is learned with each combination of τ, λ and k."""
        rounds = self.max_iter if self.objective == "discriminative" else 1
        learner = Discriminative(self.step, rounds, self.tol)
        bases = self._bases(problem)
        for tau in taus:
            views = self._views(problem, tau, bases)
            for lam in lams:
                share = 0.0 if self.objective == "generative" else lam
                first = views.solve(problem.target(share, problem.losses), max(components))
                for k in components:
                    start = first.prefix(k)
                    learned = learner.solve(problem, views, share, k, self.callback, first=start)
                    yield tau, lam, k, learned

    def _bases(self, problem: RerankingProblem) -> Bases:
        """What "randomized" restricts each view to."""
        if self.solver == "exact":
            return None, None
        limits = (self.rank, max(self.rank, SMALL))
        first, second = (
            leading_subspace(view, self.rank, self.random_state) if view.shape[1] > limit else None
            for view, limit in zip((problem.X, problem.Y), limits)
        )
        return first, second

    def _views(self, problem: RerankingProblem, tau: float, bases: Bases) -> CanonicalCorrelations:
        scale = 1.0 / problem.X.shape[0] if self.scale == "mean" else 1.0
        return CanonicalCorrelations(problem.X, problem.Y, tau, scale, bases)

    def _keep(self, learned: Learned) -> None:
        self.A_, self.B_ = learned.projections
        self.correlations_ = learned.directions.correlations
        self.residual_ = learned.directions.residual
        self.slacks_, self.n_iter_ = learned.slacks, learned.n_iter
        if self.solver == "exact" and self.residual_ > INEXACT:
            warn_of_convergence(
                f"the equations are solved to a relative residual of {self.residual_:.1g} only: "
                "the views are large and tau is small; try a larger tau or solver='randomized'"
            )

    def _choose_weight(self, problem: RerankingProblem, lists: Lists) -> float:
        if self.weight is not None:
            return float(self.weight)
        n = len(lists.groups)
        if lists.scores is None or n < FOLDS:
            return 1.0
        losses = np.zeros(len(WEIGHTS))
        for fold in range(FOLDS):
            held_out = np.arange(n) % FOLDS == fold
            learned = self._learn(_problem(*_select(problem, lists, ~held_out)))
            inputs, _, rest = _select(problem, lists, held_out)
            similarity = _similarities(inputs, rest, *learned.projections)
            losses += _mean_losses(rest, similarity, WEIGHTS)
        return float(WEIGHTS[int(np.argmin(losses))])

    def _scores(self, inputs: Matrix, lists: Lists) -> Vector:
        cosines = _similarities(inputs, lists, self.A_, self.B_)
        return cosines if lists.scores is None else lists.scores + self.weight_ * cosines

    def _read(self, X: Any, candidates: Any, decoder_scores: Any) -> tuple[Matrix, Lists, bool]:
        """Inputs and lists, and whether there is one input whose lists are not in a list."""
        check_is_fitted(self)
        single = sp.issparse(candidates) or (
            isinstance(candidates, np.ndarray)
            and candidates.dtype != object
            and candidates.ndim == 2
        )
        inputs = read_view(X, "X", self.n_features_in_, single=single)
        if single:
            candidates = [candidates]
            decoder_scores = None if decoder_scores is None else [decoder_scores]
        sizes = inputs.shape[0], len(self.B_)
        lists = read_candidates(candidates, None, decoder_scores, *sizes, judged=False)
        return inputs, lists, single

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, choices in (
            ("objective", OBJECTIVES),
            ("scale", ("mean", "sum")),
            ("solver", ("exact", "randomized")),
        ):
            check_choice(getattr(self, name), choices, name)


def _grid(name: str, values: Any) -> list[Any]:
    """The values to try of a parameter; one number is a grid of one."""
    grid = list(values) if isinstance(values, Iterable) else [values]
    if not grid:
        raise DataError("expected at least one value", field=name)
    for value in grid:
        check_parameter(name, value)
    return grid


def _problem(X: Matrix, Y: Matrix, lists: Lists) -> RerankingProblem:
    assert lists.losses is not None
    return RerankingProblem(X, Y, lists.X, lists.groups.starts, lists.losses)


def _select(
    problem: RerankingProblem, lists: Lists, chosen: NDArray[np.bool_]
) -> tuple[Matrix, Matrix, Lists]:
    rows = np.flatnonzero(chosen)
    return problem.X[rows], problem.Y[rows], lists.select_lists(rows)


def _similarities(inputs: Matrix, lists: Lists, A: Vector, B: Vector) -> Vector:
    return similarities(inputs, lists.X, lists.groups.codes, A, B)


def _mean_losses(lists: Lists, similarity: Vector, weights: Iterable[float]) -> Vector:
    """Mean loss of what each weight chooses, over the lists that are not empty."""
    scores = np.zeros(len(similarity)) if lists.scores is None else lists.scores
    count = max(1, np.count_nonzero(lists.groups.sizes))
    chosen = (lists.groups.choose(scores + w * similarity) for w in weights)
    return np.array([lists.loss_of(choice).sum() / count for choice in chosen])


def _split(values: Vector, lists: Lists, single: bool) -> Any:
    return values if single else np.split(values, lists.groups.starts[1:-1])


def _entries(row: Any) -> tuple[NDArray[np.int64], Vector]:
    """Places and values of the entries of one row that are not zero."""
    values = dense(row)[0]
    places = np.flatnonzero(values)
    return places, values[places]
