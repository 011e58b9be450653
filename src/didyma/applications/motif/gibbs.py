"""`GibbsMotifSampler`: a generative model of motifs (Lawrence et al. 1993).

It chooses where `MotifFinder` begins, and is the baseline that this is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma import DataError
from didyma._core.applications import count_sites, sample_sites
from didyma.applications.motif.fasta import encode
from didyma.applications.motif.meme import Motif
from didyma.applications.motif.task import DNA, MotifTask, Windows
from didyma.protocol import Estimator, check_is_fitted

Vector = NDArray[np.float64]

SHIFT_EVERY, FARTHEST = 10, 3  # sweeps between attempts to move all sites, and how many bases


@dataclass(eq=False, repr=False)
class GibbsMotifSampler(Estimator):
    """Site sampler: one site in each positive sequence, the rest from a Markov chain.

    A sweep draws a new site for each positive sequence with probability proportional to

        Π_j p_j(x_{h+j}) / q(x_{h+j} | the bases before)

    where p are the shares of bases in the other sequences' sites, with pseudocounts, and q the
    conditional probabilities of a Markov chain of that ``order`` in all sequences. Every few sweeps
    all sites may move a little together. Of ``n_restarts`` chains the most likely alignment is
    kept. A sequence is positive if the log odds of its best window exceed a threshold, the one with
    the least (weighted) error on the training sequences.

    Attributes
    ----------
    counts_ : array of shape (length, 4)
    threshold_ : float
    log_likelihood_ : float
        Sum of the log odds of the sites.
    """

    length: int = 11
    order: int = 2
    both_strands: bool = False
    _: KW_ONLY
    n_sweeps: int = 100
    n_restarts: int = 10
    pseudocount: float = 1.0
    random_state: Any = 0

    def fit(
        self, sequences: Sequence[DNA], labels: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Sample sites of the positive sequences, then choose the threshold."""
        self._check_parameters()
        codes, signs, weight = read_labelled(sequences, labels, sample_weight)
        bases = np.bincount(np.concatenate(codes), minlength=5)[:4] + 1.0
        self.frequencies_ = bases / bases.sum()
        self._background = self._conditional(self._windows(codes))
        positive = self._windows([x for x, sign in zip(codes, signs) if sign > 0])
        if np.any(np.diff(positive.starts) == 0):
            raise DataError("a positive sequence has no place for a motif")
        expected = self._expected(positive)
        rng = np.random.default_rng(self.random_state)
        runs = [self._sample(positive, expected, rng) for _ in range(self.n_restarts)]
        self.log_likelihood_, self.counts_ = max(runs, key=lambda run: run[0])
        self.threshold_ = _threshold(self.log_odds(codes), signs, weight)
        return self

    def log_odds(self, sequences: Sequence[DNA]) -> Vector:
        """Log odds of the best window of each sequence."""
        check_is_fitted(self, "counts_")
        windows = self._windows(sequences)
        scores = self._scores(windows, self._expected(windows), self.counts_)
        best = windows.best(scores)
        return np.where(best >= 0, np.append(scores, 0.0)[best], -np.inf)

    def predict(self, sequences: Sequence[DNA]) -> NDArray[np.int64]:
        """+1 for sequences whose log odds exceed the threshold, else -1."""
        return np.where(self.log_odds(sequences) > self.threshold_, 1, -1)

    def motif(self, name: str = "motif") -> Motif:
        """The shares of the bases in the sites."""
        check_is_fitted(self, "counts_")
        return Motif.from_counts(name, self.counts_, self.frequencies_, self.pseudocount)

    def _windows(self, sequences: Sequence[DNA]) -> Windows:
        return MotifTask(self.length, self.order, self.both_strands).windows(sequences)

    def _conditional(self, windows: Windows) -> Vector:
        """Log q(last base | the bases before) of each k-mer, and 0 for those that are unknown."""
        n_kmers = 4 ** (self.order + 1)
        counts = np.bincount(windows.kmers, minlength=n_kmers + 1)[:n_kmers] + self.pseudocount
        shares = counts.reshape(-1, 4) / counts.reshape(-1, 4).sum(axis=1, keepdims=True)
        return np.append(np.log(shares).ravel(), 0.0)

    def _expected(self, windows: Windows) -> Vector:
        """Log probability of the bases before each position; those without context by frequency."""
        each = np.append(np.log(self.frequencies_), 0.0)[windows.codes]
        complete = np.flatnonzero(windows.kmers < 4 ** (self.order + 1))
        each[complete + self.order] = self._background[windows.kmers[complete]]
        return np.concatenate([[0.0], np.cumsum(each)])

    def _scores(self, windows: Windows, expected: Vector, counts: Vector) -> Vector:
        probabilities = Motif.from_counts("", counts, self.frequencies_, self.pseudocount)
        scores = windows.scores(
            np.log(probabilities.probabilities), np.zeros(4 ** (self.order + 1))
        )
        return scores - (expected[windows.places + self.length] - expected[windows.places])

    def _sample(
        self, windows: Windows, expected: Vector, rng: np.random.Generator
    ) -> tuple[float, Vector]:
        n = len(windows.sizes)
        sites = rng.integers(windows.starts[:-1], windows.starts[1:])
        counts = site_counts(windows, sites)
        best = (-np.inf, counts)
        prior = self.pseudocount * self.frequencies_
        for sweep in range(1, self.n_sweeps + 1):
            sample_sites(windows.arrays, expected, prior, rng.random(n), counts, sites)
            if sweep % SHIFT_EVERY == 0:
                sites = self._shifted(windows, expected, sites)
                counts = site_counts(windows, sites)
            value = float(self._scores(windows, expected, counts)[sites].sum())
            if value > best[0]:
                best = (value, counts.copy())
        return best

    def _shifted(
        self, windows: Windows, expected: Vector, sites: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """All sites moved along their strands by what makes them most likely."""
        first, last = windows.starts[:-1], windows.starts[1:]
        reverse = first + (last - first) // windows.strands
        backwards = sites >= reverse
        low, high = np.where(backwards, reverse, first), np.where(backwards, last, reverse) - 1

        def moved(by: int) -> NDArray[np.int64]:
            return np.clip(sites + np.where(backwards, -by, by), low, high)

        def likelihood(by: int) -> float:
            at = moved(by)
            return float(self._scores(windows, expected, site_counts(windows, at))[at].sum())

        return moved(max(range(-FARTHEST, FARTHEST + 1), key=likelihood))


def _threshold(scores: Vector, signs: NDArray[np.int64], weight: Vector) -> float:
    """Between two scores, where answering +1 above it is wrong least often."""
    order = np.argsort(scores, kind="stable")
    ordered, steps = scores[order], (signs * weight)[order]
    # Errors relative to answering +1 always, when the first i sequences are answered -1.
    errors = np.concatenate([[0.0], np.cumsum(steps)])
    edges = np.concatenate([[-np.inf], ordered, [np.inf]])
    errors[1:-1][ordered[1:] == ordered[:-1]] = np.inf  # equal scores are answered alike
    i = int(np.argmin(errors))
    if np.isinf(edges[i]) or np.isinf(edges[i + 1]):
        return float(edges[i] if i else -np.inf)
    return float((edges[i] + edges[i + 1]) / 2)


def read_labelled(
    sequences: Sequence[DNA], labels: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64], Vector]:
    """Sequences as codes, labels as signs, and weights; both kinds of labels must be there."""
    codes = [encode(sequence) for sequence in sequences]
    marks = np.asarray(labels)
    if marks.shape != (len(codes),):
        raise DataError(
            f"expected {len(codes)}, one per sequence, found shape {marks.shape}", field="labels"
        )
    signs = np.where(marks > 0, 1, -1)
    if len(np.unique(signs)) < 2:
        raise DataError("expected sequences with the motif (+1) and without (-1)", field="labels")
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != signs.shape or not np.all((weight >= 0) & np.isfinite(weight)):
        raise DataError(
            f"expected {len(codes)} finite numbers from 0 up, one per sequence",
            field="sample_weight",
        )
    if not weight.any():
        raise DataError("all weights are zero", field="sample_weight")
    return codes, signs, weight


def site_counts(windows: Windows, sites: NDArray[np.int64]) -> Vector:
    """How often each base stands at each position of the sites, one window of each sequence."""
    counts = np.empty((windows.length, 4))
    count_sites(windows.arrays, sites, -1, counts)
    return counts
