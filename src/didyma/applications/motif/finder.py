"""`MotifFinder`: learn a DNA motif from sequences that have it and sequences that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.applications.motif.fasta import decode
from didyma.applications.motif.gibbs import GibbsMotifSampler, read_labelled, site_counts
from didyma.applications.motif.meme import Motif
from didyma.applications.motif.task import DNA, MotifTask, Site, Windows
from didyma.checkpoints import array_of, remember
from didyma.errors import check_choice
from didyma.learning import CCCP, inner_solver
from didyma.learning.monitor import gain_over_zero, warn_of_zero
from didyma.learning.solution import Callback, Progress, Result, check_C
from didyma.model import Savable, Saved
from didyma.protocol import Estimator, check_is_fitted, check_random_state

Vector = NDArray[np.float64]

SWEEPS = 20  # of the sampler that chooses the first sites


class Hit(NamedTuple):
    """A site with its score, and its bases as read on its strand."""

    start: int
    strand: str
    score: float
    bases: str


@dataclass(eq=False, repr=False)
class MotifFinder(Savable, Estimator):
    """Latent structural SVM for motifs (Yu & Joachims 2009); see `didyma.applications.motif.task`.

    Minimises ½‖w‖² + C Σ_i c_i (risk of sequence i), with c_i = sample_weight[i] / Σ_j
    sample_weight[j], by CCCP.
    There are many local optima: of ``n_restarts`` runs from different first sites the one with the
    lowest objective is kept.

    Parameters
    ----------
    length : int >= 1
        Bases of the motif.
    order : int in [0, 5]
        Order of the background's Markov chain: how many bases before a base it looks at. Its
        weights are those of words of ``order + 1`` bases. The paper's is 3.
    both_strands : bool
        Look at the other strand too, for the motif's reverse complement.
    C : float > 0
        Weight of the errors against the norm.
    init : {"sample", "random"}
        First sites: after a few sweeps of a Gibbs sampler, or uniformly at random as in the paper.
        In long sequences w = 0 can be a local optimum that random sites never leave.
    solver : {"one-slack", "bundle", "n-slack"}
        What solves the convex problem of a round; "bundle" is the paper's.
    ties : int >= 0
        Where a run would end, so many sites that are tied with the last ones, or nearly so, are
        tried; see `didyma.learning.cccp`. The published procedure is 0.
    tol : float >= 0
        Relative gain to stop at: a run ends when a round lowers the objective by less.
    max_iter : int
        Most rounds.
    n_restarts : int >= 1
        Runs, from different sites; the one with the best objective is kept.
    random_state : int
        Seed of these.
    callback : callable, optional
        Called with a `Progress` after each round; True stops. Not saved with a model.

    Attributes
    ----------
    coef_ : array of shape (4 length + 4^(order + 1),)
        The matrix, position by position in the order A, C, G, T, and the background.
    counts_ : array of shape (length, 4)
        Bases of the best sites in the positive sequences.
    frequencies_ : array of shape (4,)
        Shares of the bases in all sequences.
    objective_trace_ : list of float
        Objective after each round of the run that was kept.
    objectives_ : list of float
        Final objective of each run.
    n_rounds_ : list of int
        Rounds of each run.

    >>> finder = MotifFinder(length=4, order=0, C=100.0)
    >>> finder = finder.fit(["CCGATTCC", "GGGATTGG", "ACCAGATT", "CCCCCCCC", "GAGAGTGA"],
    ...                     [1, 1, 1, -1, -1])
    >>> finder.predict(["CGATTC", "CGAGAC"]).tolist()
    [1, -1]
    """

    length: int = 11
    order: int = 2
    both_strands: bool = False
    C: float = 100.0
    _: KW_ONLY
    init: str = "sample"
    solver: str = "one-slack"
    ties: int = 0
    tol: float = 1e-3
    max_iter: int = 100
    n_restarts: int = 10
    random_state: Any = 0
    callback: Callback | None = None

    coef_: Annotated[Vector, Saved("weights")] = field(init=False)
    counts_: Annotated[Vector, Saved("length", 4)] = field(init=False)
    frequencies_: Annotated[Vector, Saved(4)] = field(init=False)
    objective_trace_: Annotated[list[float], Saved()] = field(init=False)
    objectives_: list[float] = field(init=False)
    n_rounds_: list[int] = field(init=False)
    result_: Result = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("callback",)

    @property
    def task(self) -> MotifTask:
        """The task of these parameters."""
        return MotifTask(self.length, self.order, self.both_strands)

    def fit(
        self, sequences: Sequence[DNA], labels: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from sequences (texts, or codes) with labels +1 and -1."""
        self._check_parameters()
        codes, signs, weight = read_labelled(sequences, labels, sample_weight)
        check_C(self.C)
        check_choice(self.init, ("sample", "random"), "init")
        problem = self.task.problem(codes, signs.tolist(), weight / weight.sum())
        solver = CCCP(
            tol=self.tol, max_iter=self.max_iter, inner=inner_solver(self.solver), ties=self.ties
        )
        random = check_random_state(self.random_state)
        self.objectives_, self.n_rounds_ = [], []
        for _ in range(self.n_restarts):
            seed = int(random.randint(2**31 - 1))
            trace: list[float] = []

            def follow(progress: Progress, trace: list[float] = trace) -> bool | None:
                trace.append(progress.value)
                return None if self.callback is None else self.callback(progress)

            try:
                start = self._first(codes, signs, weight, seed)
            except KeyboardInterrupt:
                if not self.objectives_:
                    raise
                break  # what earlier runs have found is kept
            solution = solver.solve(
                problem, self.C, start=start, random_state=seed, callback=follow
            )
            stopped = solution.result.status in ("interrupted", "stopped")
            if not self.objectives_ or (not stopped and trace[-1] < min(self.objectives_)):
                kept, self.objective_trace_ = solution, trace
            if stopped:
                break
            self.objectives_.append(trace[-1])
            self.n_rounds_.append(solution.result.n_iter)
        self.coef_, self.result_ = kept.w, kept.result
        if gain_over_zero(problem, self.C, kept, self.tol) <= self.tol:
            warn_of_zero(self.tol, "begin at sampled sites, or try more runs or another C")
        bases = np.bincount(np.concatenate(codes), minlength=5)[:4].astype(np.float64) + 1.0
        self.frequencies_ = bases / bases.sum()
        windows = self.task.windows([x for x, sign in zip(codes, signs) if sign > 0])
        self.counts_ = site_counts(windows, windows.best(self._scores(windows)))
        return self

    def decision_function(self, sequences: Sequence[DNA]) -> Vector:
        """Score of the best site of each sequence; -inf where there is no place for one."""
        windows, scores = self._scan(sequences)
        best = windows.best(scores)
        return np.where(best >= 0, np.append(scores, 0.0)[best], -np.inf)

    def predict(self, sequences: Sequence[DNA]) -> NDArray[np.int64]:
        """+1 for each sequence whose best site scores above background, else -1."""
        return np.where(self.decision_function(sequences) > 0, 1, -1)

    def sites(self, sequences: Sequence[DNA]) -> list[Site | None]:
        """The best site of each sequence, whatever its score; None where there is no place."""
        windows, scores = self._scan(sequences)
        best = windows.best(scores)
        return [windows.site(i, int(m)) if m >= 0 else None for i, m in enumerate(best)]

    def scan(self, sequence: DNA, threshold: float = 0.0, *, best: bool = False) -> list[Hit]:
        """All sites of one sequence that score above ``threshold``, in the order they stand.

        With ``best`` it is the best site alone, whatever its score, if there is a place for one.
        """
        windows, scores = self._scan([sequence])
        chosen = windows.best(scores) if best else np.flatnonzero(scores > threshold)
        hits = []
        for m in chosen[chosen >= 0].tolist():
            start, strand = windows.site(0, m)
            window = windows.codes[start : start + self.length]
            bases = decode(window if strand == "+" else 3 - window[::-1])
            hits.append(Hit(start, strand, float(scores[m]), bases))
        return sorted(hits)

    def score(self, sequences: Sequence[DNA], labels: ArrayLike) -> float:
        """Share of sequences whose label is right."""
        return float(np.mean(self.predict(sequences) == np.where(np.asarray(labels) > 0, 1, -1)))

    def motif(self, name: str = "motif", source: str = "sites") -> Motif:
        """What was learned, as probabilities: shares in the best sites, or softmax of the weights.

        ``source`` is "sites" or "weights". Weights also tell what negative sequences lack, and
        their scale depends on C.
        """
        check_is_fitted(self)
        check_choice(source, ("sites", "weights"), "source")
        if source == "sites":
            return Motif.from_counts(name, self.counts_, self.frequencies_)
        return Motif.from_weights(name, self.task.parts(self.coef_)[0], self.frequencies_)

    def _check_state(self) -> None:
        words = len(self.coef_) - 4 * self.length
        if 1 <= self.order <= 6 and words == 4**self.order:
            self.order -= 1  # in files of 0.2 the length of the background's words was meant
        if len(self.coef_) != self.task.n_features:
            raise ValueError(f"coef_ should be {self.task.n_features}, but is {len(self.coef_)}")

    def _first(
        self, codes: list[NDArray[np.uint8]], signs: NDArray[np.int64], weight: Vector, seed: int
    ) -> Vector | None:
        """Weights to begin with: those of a Gibbs sampler's motif, above zero where it answers +1.

        None if first sites are random.
        """
        if self.init == "random":
            return None
        shape = (self.length, self.order, self.both_strands)
        sampler = GibbsMotifSampler(*shape, n_sweeps=SWEEPS, n_restarts=1, random_state=seed)

        def sample() -> Vector:
            sampler.fit(codes, signs, weight)
            matrix = np.log(2.0) * sampler.motif().log_odds
            threshold = np.clip(sampler.threshold_, 0.0, None) / self.length
            return np.concatenate([(matrix - threshold).ravel(), np.zeros(4 ** (self.order + 1))])

        name = f"first sites in {len(codes)} sequences by seed {seed}"
        start: Vector = remember(
            name, sample, lambda first: array_of(first, "weights", (self.task.n_features,))
        )
        return start

    def _scan(self, sequences: Sequence[DNA]) -> tuple[Windows, Vector]:
        check_is_fitted(self)
        windows = self.task.windows(sequences)
        return windows, self._scores(windows)

    def _scores(self, windows: Windows) -> Vector:
        return windows.scores(*self.task.parts(self.coef_))
