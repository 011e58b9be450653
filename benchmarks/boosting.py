"""Boosting of n-best lists: a round by its inverted index, and one that sums over all pairs."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import blas_threads, stopwatch
from didyma._core.nbest import bounds, choose, differences, tally
from didyma.nbest.boosting import BoostingReranker

LISTS, CANDIDATES, WORDS, TAGS, FORMS = 12_000, 10, 20, 40, 3
ROUNDS = 1_000


def run(scale: float = 1.0) -> list[Row]:
    lists, rounds = max(20, round(LISTS * scale)), max(10, round(ROUNDS * scale))
    rows, losses, scores = tag_lists(lists)
    candidates = [rows[k : k + CANDIDATES] for k in range(0, rows.shape[0], CANDIDATES)]
    data = candidates, np.split(losses, lists), np.split(scores, lists)
    figures = []
    with blas_threads(1):
        name = f"{lists:,} lists of {CANDIDATES}, {rows.shape[1]:,} features"
        for kind, ridge in {"": None, ", ridge": 1.0}.items():
            BoostingReranker(1, ridge=ridge).fit(*(part[:20] for part in data))  # warms up
            start = time.perf_counter()
            history = BoostingReranker(rounds, ridge=ridge).fit(*data).history_
            seconds = time.perf_counter() - start
            each = (history[-1]["seconds"] - history[0]["seconds"]) / (len(history) - 1)
            plain = _plain_round(rows, losses, 0.0 if ridge is None else ridge)
            figures += [
                Row.at_most(f"{name}{kind}: {rounds:,} rounds", seconds, "s", 60),
                Row(f"one round{kind}", 1e3 * each, "ms"),
                Row.at_least(f"a round over all pairs over ours{kind}", plain / each, "x", 10),
            ]
    return figures


def tag_lists(
    n_lists: int, seed: int = 0
) -> tuple[sp.csr_array, NDArray[np.float64], NDArray[np.float64]]:
    """Taggings of sentences that differ in one to three words; features (ending, tag or two)."""
    random = np.random.default_rng(seed)
    n_rows = n_lists * CANDIDATES
    words = np.minimum(random.zipf(1.2, (n_lists, WORDS)), 100_000).repeat(CANDIDATES, axis=0)
    usual = random.integers(0, TAGS, 100_001)
    gold = np.where(random.random(words.shape) < 0.9, usual[words], words % TAGS)
    gold = gold[::CANDIDATES].repeat(CANDIDATES, axis=0)
    tags = gold.copy()
    for _ in range(3):
        changed = random.integers(0, WORDS, n_rows)
        kept = random.random(n_rows) < 0.3
        other = random.integers(0, TAGS, n_rows)
        tags[np.arange(n_rows), changed] = np.where(kept, gold[np.arange(n_rows), changed], other)
    losses = (tags != gold).sum(axis=1).astype(np.float64)
    kinds = np.arange(FORMS)
    # Longer endings of a word are shared by fewer others.
    forms = (words[:, :, None] // 2 ** kinds[::-1]) * FORMS + kinds
    pairs = np.roll(tags, 1, axis=1) * TAGS + tags + TAGS
    ids = np.stack([forms * 2 * TAGS**2 + part[:, :, None] for part in (tags, pairs)])
    ids = ids.transpose(1, 0, 2, 3).reshape(n_rows, -1)
    names, columns = np.unique(ids, return_inverse=True)
    ones, starts = np.ones(ids.size), np.arange(0, ids.size + 1, ids.shape[1])
    rows = sp.csr_array((ones, columns.ravel(), starts), shape=(n_rows, len(names)))
    return rows, losses, -losses + 2 * random.standard_normal(n_rows)


def _plain_round(rows: sp.csr_array, losses: NDArray[np.float64], ridge: float) -> float:
    """Seconds of a round that sums over all pairs, in the same compiled loops."""
    rows = sp.csr_array(rows > 0)
    rows.sum_duplicates()
    lists = np.arange(0, len(losses), CANDIDATES)
    best = lists + losses.reshape(-1, CANDIDATES).argmin(axis=1)
    better = best.repeat(CANDIDATES)
    worse = np.flatnonzero(losses > losses[better])
    pairs = differences(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), better[worse], worse
    )
    weight = losses[worse] - losses[better[worse]]
    plus, minus, gain, coef = np.zeros((4, rows.shape[1]))
    exact = np.empty(len(gain), np.bool_)

    def again() -> None:
        tally(pairs, weight, plus, minus)
        bounds(plus, minus, coef, ridge, gain, exact)
        choose(plus, minus, coef, ridge, gain, exact)

    again()
    return min(stopwatch(again, 3)() for _ in range(3))
