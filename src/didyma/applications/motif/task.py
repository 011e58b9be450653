"""Motif finding: is there a site in a DNA sequence, and where (Yu & Joachims 2009)?

    Ψ(x, +1, h) = bases of the window at h, by position;  k-mers that start outside it
    Ψ(x, −1)    = nothing;                                k-mers of the whole sequence

The weights are a position-specific matrix of l × 4 numbers and one for each of the 4^k k-mers of
the background, a Markov chain of order k − 1. Labels are +1 and −1; where the site is, h, is
latent. All that matters is the score of a window relative to background in its place, so that an
oracle is a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma._core import applications as core
from didyma.applications.motif.fasta import UNKNOWN, encode
from didyma.learning import Cut
from didyma.structured import Task, TaskProblem

Vector = NDArray[np.float64]
Codes = NDArray[np.uint8]
DNA: TypeAlias = str | Codes

WORD = 5  # bases of a look-up, at least: tables over 4^5 words fit in a cache
HIGHEST = 5  # order of the background


class Site(NamedTuple):
    """Where a motif stands: the first base of its window, from 0, and the strand it is read on."""

    start: int
    strand: Literal["+", "-"] = "+"


class Windows:
    """All places for a motif in some sequences: windows of known bases, on one strand or both.

    Those of sequence i have the numbers ``starts[i]`` to ``starts[i + 1]``, first those of the
    given strand. ``codes`` are the sequences one after the other, ``begins`` where each begins.
    """

    def __init__(self, sequences: Sequence[DNA], length: int, k: int, strands: int) -> None:
        self.length, self.k, self.strands = length, k, strands
        encoded = [encode(sequence) for sequence in sequences]
        self.sizes = np.array([len(codes) for codes in encoded], dtype=np.int64)
        self.begins = np.concatenate([[0], np.cumsum(self.sizes + 1)])[:-1]
        end = np.array([UNKNOWN], dtype=np.uint8)
        self.codes: Codes = np.concatenate([part for codes in encoded for part in (codes, end)])
        self._width = max(1, WORD - k + 1)
        self._words = np.empty(len(self.codes), dtype=np.uint16)
        self.kmers = np.empty(len(self.codes), dtype=np.uint16)
        core.number_words(self.codes, self._width + k - 1, self._words)
        core.number_words(self.codes, k, self.kmers)
        self._arrange()

    def _arrange(self) -> None:
        is_base = np.concatenate([[False], self.codes < UNKNOWN, [False]])
        begin, end = np.flatnonzero(is_base[1:] != is_base[:-1]).reshape(-1, 2).T
        counts = end - begin - self.length + 1
        begin, end, counts = (part[counts > 0] for part in (begin, end, counts))
        owner = np.searchsorted(self.begins, begin, side="right") - 1
        n_windows = np.bincount(owner, weights=counts, minlength=len(self.sizes)).astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.strands * n_windows)])
        before = np.cumsum(counts) - counts  # windows of one strand in earlier runs
        first = (np.cumsum(n_windows) - n_windows)[owner]
        offset = self.starts[owner] + before - first
        self._runs = [
            np.column_stack([begin, end, offset + strand * n_windows[owner]])
            for strand in range(self.strands)
        ]

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Position in ``codes`` of each window."""
        places = np.empty(self.starts[-1], dtype=np.int64)
        for begin, end, offset in np.concatenate(self._runs):
            n = end - begin - self.length + 1
            places[offset : offset + n] = np.arange(begin, begin + n)
        return places

    def scores(self, matrix: Vector, background: Vector) -> Vector:
        """Score of every window; ``matrix`` (l, 4) and ``background`` (4^k,) are weights."""
        # One more k-mer, of weight zero, for those that have an unknown or missing base.
        weights = np.append(background, 0.0)
        blocks = -(-self.length // self._width)
        table = np.empty((blocks, 4 ** (self._width + self.k - 1)))
        out = np.empty(self.starts[-1])
        for runs, turned in zip(self._runs, (matrix, matrix[::-1, ::-1])):
            rows = np.ascontiguousarray(turned)
            core.tabulate(rows, weights, self.k, self._width, table)
            arrays = (self.codes, self.kmers, self._words, self.k, self._width)
            core.scan_runs(*arrays, runs, table, rows, weights, out)
        return out

    def best(self, scores: Vector) -> NDArray[np.int64]:
        """The window of each sequence that scores best, or -1 where there is none."""
        nobody = np.full(len(self.sizes), -1)
        core.improve(scores, self.starts, np.diff(self.starts), 0.0, nobody)
        return nobody

    def site(self, i: int, window: int) -> Site:
        """A window of sequence i as a place in it."""
        reverse = self.starts[i] + (self.starts[i + 1] - self.starts[i]) // self.strands
        return Site(int(self.places[window] - self.begins[i]), "-" if window >= reverse else "+")

    def window(self, i: int, site: Site) -> int:
        """The number of the window at a site, the inverse of `site`."""
        half = (self.starts[i + 1] - self.starts[i]) // self.strands
        first = self.starts[i] + (half if site.strand == "-" else 0)
        place = self.begins[i] + site.start
        number = int(first + np.searchsorted(self.places[first : first + half], place))
        if (site.strand == "-" and self.strands == 1) or not (
            number < first + half and self.places[number] == place
        ):
            raise DataError(f"there is no window of {self.length} known bases at {site}")
        return number

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What kernels need to read windows."""
        places = (self.starts, self.places)
        return (self.codes, self.kmers, self.length, self.strands, *places)


def scan(sequence: DNA, matrix: Vector, background: Vector | None = None) -> Vector:
    """Score of each window of a sequence on its given strand, shape (len(sequence) - l + 1,).

        s(h) = Σ_j matrix[j, x_{h+j}] − background[k-mer that starts at h + j]

    ``matrix`` is (l, 4), ``background`` has 4^k weights (none: zero). Windows with an unknown base
    score -inf.

    >>> scan("AACGN", np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])).tolist()
    [1.0, 3.0, 0.0, -inf]
    """
    weights = np.zeros(4) if background is None else np.asarray(background, dtype=np.float64)
    k = (len(weights).bit_length() - 1) // 2
    if matrix.ndim != 2 or matrix.shape[1] != 4 or len(weights) != 4**k or k < 1:
        raise DataError(
            "expected a matrix of shape (l, 4) and 4, 16, 64, … background weights, found shapes "
            f"{matrix.shape} and {weights.shape}"
        )
    windows = Windows([sequence], len(matrix), k, 1)
    scores = windows.scores(np.asarray(matrix, dtype=np.float64), weights)
    n = max(0, int(windows.sizes[0]) - len(matrix) + 1)
    if len(scores) == n:
        return scores
    out = np.full(n, -np.inf)
    out[windows.places] = scores
    return out


class MotifTask(Task):
    """Sequences with and without a motif of ``length`` bases; an output is a `Site` or None.

    Examples are texts or codes (`fasta.encode`), labels +1 and -1, the loss is zero
    or one. ``order`` is that of the background's Markov chain, whose k-mers have order + 1 bases.
    With ``both_strands`` the matrix is also compared with the reverse complement of each window;
    the background is always read on the given strand. A site covers no unknown base.

    >>> task = MotifTask(length=3, order=0)
    >>> w = np.zeros(task.n_features)
    >>> w[[3, 4, 11]] = 1.0  # TAT
    >>> task.argmax(w - 0.2, "GGTATGG"), task.argmax(-w, "GGTATGG")
    (Site(start=2, strand='+'), None)
    """

    def __init__(self, length: int, order: int = 2, both_strands: bool = False) -> None:
        if length < 1:
            raise DataError(f"expected 1 or more, found {length}", field="length")
        if not 0 <= order <= HIGHEST:
            raise DataError(f"expected 0 to {HIGHEST}, found {order}", field="order")
        self.length, self.order, self.both_strands = length, order, both_strands
        self.n_features = 4 * length + 4 ** (order + 1)

    def windows(self, sequences: Sequence[DNA]) -> Windows:
        """The places for a motif in some sequences."""
        return Windows(sequences, self.length, self.order + 1, 2 if self.both_strands else 1)

    def parts(self, w: Vector) -> tuple[Vector, Vector]:
        """The matrix (l, 4) and the background (4^k,) of weights."""
        return w[: 4 * self.length].reshape(-1, 4), w[4 * self.length :]

    def features(self, x: DNA, output: Site | None) -> Vector:
        """Bases of the site by position, and counts of the k-mers that start elsewhere."""
        windows = self.windows([x])
        psi = np.zeros(self.n_features)
        psi[4 * self.length :] = _count_kmers(windows, np.ones(1))
        if output is not None:
            site = np.array([windows.window(0, output)])
            core.add_sites(windows.arrays, site, np.ones(1), psi)
        return psi

    def argmax(self, w: Vector, x: DNA) -> Site | None:
        """The best site if it scores above background, else None."""
        return self._answer(w, x, 0.0)

    def loss(self, y: int, output: Site | None) -> float:
        """Whether a site was found where there is none, or none where there is one."""
        return float((y > 0) != (output is not None))

    def loss_augmented(self, w: Vector, x: DNA, y: int, scale: float = 1.0) -> Site | None:
        """The best site if it scores above ``scale`` (y = +1) or above -scale (y = -1)."""
        return self._answer(w, x, scale if y > 0 else -scale)

    def complete(self, w: Vector, x: DNA, y: int) -> Site | None:
        """The best site where there is one."""
        return self._answer(w, x, -np.inf, needed=True) if y > 0 else None

    def initial(self, x: DNA, y: int, rng: np.random.Generator) -> Site | None:
        """Any site, all with the same probability."""
        if y <= 0:
            return None
        windows = self.windows([x])
        _check_windows(windows, np.ones(1))
        return windows.site(0, int(rng.integers(len(windows.places))))

    def problem(
        self, examples: Sequence[DNA], labels: Sequence[int], weights: Vector, **options: Any
    ) -> Any:
        """All sequences as one compiled problem."""
        return MotifProblem(self, examples, labels, weights, **options)

    def _answer(self, w: Vector, x: DNA, above: float, needed: bool = False) -> Site | None:
        windows = self.windows([x])
        if needed:
            _check_windows(windows, np.ones(1))
        scores = windows.scores(*self.parts(w))
        if not len(scores) or scores.max() <= above:
            return None
        return windows.site(0, int(np.argmax(scores)))


class MotifProblem(TaskProblem):
    """Labelled sequences as a sum of cuts, each from a scan of all windows.

    Its scores are the weights themselves: a scan costs less than to keep those of all windows.
    ``chosen`` has the window of each positive sequence's present site, -1 where there is none.
    """

    task: MotifTask

    def __init__(self, task: MotifTask, *examples: Any, **options: Any) -> None:
        super().__init__(task, *examples, **options)
        self.signs = np.where(np.asarray(self.labels) > 0, 1, -1)
        self.windows = windows = task.windows(self.examples)
        _check_windows(windows, self.signs)
        self.chosen = np.full(self.n_examples, -1)
        self._constant = np.zeros(self.n_features)
        self._constant[4 * task.length :] = _count_kmers(windows, self.weights)
        scale = self.loss_scale
        numbers = np.array([scale if self.augmented else 0.0, scale, float(self.online)])
        self.kernel = core.MotifProblem(windows.arrays, self.signs, self.chosen, numbers)
        n_windows = len(windows.places) / max(1, self.n_examples)
        self.cut_cost = 2.0 * task.length * n_windows / self.n_features

    def cut(self, w: Vector, i: int) -> Cut:
        """Most violated cut of sequence i."""
        direction = np.empty(self.n_features)
        loss = self.kernel.cut(w, i, direction)
        return Cut(direction, loss)

    def risks(self, w: Vector) -> Vector:
        """Risk of each sequence."""
        return self._answer(w)[0]

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """Direction and loss of the weighted cut at w = scores."""
        _, direction, loss = self._answer(scores)
        return direction, loss

    def begin(self, rng: np.random.Generator) -> Vector:
        """Choose a site of each positive sequence at random."""
        starts = self.windows.starts
        for i in np.flatnonzero(self.signs > 0):
            self.chosen[i] = starts[i] + rng.integers(starts[i + 1] - starts[i])
        return self._refresh()

    def complete(self, w: Vector) -> Vector:
        """Choose the best site of each positive sequence; of equals the former one."""
        core.improve(self._scan(w), self.windows.starts, self.signs, self.tie, self.chosen)
        return self._refresh()

    def sites(self) -> list[Site | None]:
        """The present completions."""
        return [self.windows.site(i, m) if m >= 0 else None for i, m in enumerate(self.chosen)]

    def _scan(self, w: Vector) -> Vector:
        return self.windows.scores(*self.task.parts(w))

    def _answer(self, w: Vector) -> tuple[Vector, Vector, float]:
        risks, direction = np.empty(self.n_examples), np.zeros(self.n_features)
        loss = self.kernel.answer(self._scan(w), self.weights, risks, direction)
        return risks, direction, loss

    def _refresh(self) -> Vector:
        features = self._constant.copy()
        core.add_sites(self.windows.arrays, self.chosen, self.weights, features)
        return features


def _count_kmers(windows: Windows, weights: Vector) -> Vector:
    """How often each k-mer occurs, by the weights of the sequences."""
    weight = np.repeat(weights, windows.sizes + 1)
    counts = np.bincount(windows.kmers, weights=weight, minlength=4**windows.k + 1)
    return counts[:-1].astype(np.float64, copy=False)


def _check_windows(windows: Windows, signs: NDArray[Any]) -> None:
    lacking = (np.diff(windows.starts) == 0) & (signs > 0)
    if lacking.any():
        i = int(np.argmax(lacking))
        raise DataError(
            f"a positive sequence needs {windows.length} known bases in a row, but sequence {i} "
            f"({windows.sizes[i]} bases) has no such place"
        )
