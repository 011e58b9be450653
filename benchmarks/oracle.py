"""The exact oracle for average precision against the O(PN) one of Yue et al. 2007."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import interleave, ratio, stopwatch
from didyma.kernels.jit import jit
from didyma.kernels.select import descending, settle
from didyma.tasks.feature_maps import Pairwise
from didyma.tasks.losses import AveragePrecision
from didyma.tasks.ranking import oracle_for

SIZES = ((7, 93), (63, 937), (1_000, 99_000), (5_000, 200_000), (5_000, 495_000))
WORK = 2e7  # positives times negatives per measurement of theirs; small queries are repeated


def _algorithm_2(scores, P, N, coef):  # type: ignore[no-untyped-def]
    """Yue et al.'s Algorithm 2: each negative tries every place among the positives.

    Moving the j-th negative above the i-th positive changes the objective by their equation 5.
    """
    pair = 2.0 / (np.float64(P) * N)
    index = np.arange(P + N)
    descending(scores, index[:P])
    descending(scores, index[P:])
    sorted_scores = scores[index]
    above = np.zeros(P + 1, dtype=np.int64)
    for j in range(1, N + 1):
        score = sorted_scores[P + j - 1]
        place, best, value = P + 1, 0.0, 0.0
        for i in range(P, 0, -1):
            gain = (j / (j + i) - (j - 1.0) / (j + i - 1.0)) / P
            value += gain - pair * (sorted_scores[i - 1] - score)
            if value >= best:
                place, best = i, value
        above[place - 1] += 1
        coef[index[P + j - 1]] = pair * (P + 1 - place)
    loss = 0.0
    n = 0
    for i in range(1, P + 1):
        n += above[i - 1]
        coef[index[i - 1]] = -pair * n
        loss += n / (n + i) / P
    return loss


def run(scale: float = 1.0) -> list[Row]:
    oracle, _ = oracle_for(AveragePrecision(), Pairwise(), "independent")
    algorithm_2 = jit(_algorithm_2, cached=False)
    rows = []
    for positives, negatives in SIZES:
        P, N = max(2, round(positives * scale)), max(5, round(negatives * scale))
        ours, theirs = _seconds(oracle, algorithm_2, P, N)
        name = f"P = {P:,}, N = {N:,}: Algorithm 2 over ours"
        if (positives, negatives) == SIZES[-1]:
            rows.append(Row.at_least(name, ratio(theirs, ours), "x", 100))
        else:
            rows.append(Row(name, ratio(theirs, ours), "x"))
        if (positives, negatives) == (5_000, 200_000):
            rows.append(Row.at_most(f"P = {P:,}, N = {N:,}: ours", min(ours), "s", 0.1))
    return rows


def _seconds(oracle: Any, algorithm_2: Any, P: int, N: int) -> tuple[list[float], list[float]]:
    """Seconds of ours and theirs, which must find the same maximum."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=P + N)
    scores[:P] += 1.0
    counts, gains, unused = np.array([P, N]), np.array([1.0, 0.0]), np.empty(0)
    cutoff = AveragePrecision().cutoff
    coef = {"ours": np.empty(P + N), "theirs": np.empty(P + N)}
    loss = {"ours": 0.0, "theirs": 0.0}

    rows = np.arange(P + N, dtype=np.int32)

    def ours() -> None:
        order = rows.copy()
        settle(scores, order)
        loss["ours"] = oracle(scores, order, counts, unused, gains, cutoff, coef["ours"])

    def theirs() -> None:
        loss["theirs"] = algorithm_2(scores, P, N, coef["theirs"])

    ours()  # compiles
    algorithm_2(scores[:5], 2, 3, np.empty(5))
    repeats = min(2_000, max(1, round(WORK / (P * N))))
    timers = {"ours": stopwatch(ours, max(5, repeats)), "theirs": stopwatch(theirs, repeats)}
    seconds = interleave(timers, 5 if P * N <= 5 * WORK else 1)
    objective = {name: loss[name] + coef[name] @ scores for name in loss}
    np.testing.assert_allclose(objective["ours"], objective["theirs"], rtol=1e-9)
    return seconds["ours"], seconds["theirs"]
