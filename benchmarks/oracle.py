"""The exact oracle for average precision against the O(PN) one of Yue et al. 2007."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import Seconds, compiled, interleave, stopwatch
from didyma.ranking.feature_maps import Pairwise
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import hinge_oracle

SIZES = ((7, 93), (63, 937), (1_000, 99_000), (5_000, 200_000), (5_000, 495_000))
WORK = 2e7  # positives times negatives per measurement of theirs; small queries are repeated


def _compile_theirs() -> Any:
    """Their algorithm as a function of scores, P, N and coefficients."""
    function = compiled(Path(__file__).with_name("algorithm_2.cpp")).algorithm_2
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return function


def run(scale: float = 1.0) -> list[Row]:
    algorithm_2 = _compile_theirs()
    rows = []
    for positives, negatives in SIZES:
        P, N = max(2, round(positives * scale)), max(5, round(negatives * scale))
        seconds = _seconds(algorithm_2, P, N)
        over = seconds.ratio("theirs", "ours")
        name = f"P = {P:,}, N = {N:,}: Algorithm 2 over ours"
        if (positives, negatives) == SIZES[-1]:
            rows.append(Row.at_least(name, over, "x", 100))
        else:
            rows.append(Row(name, over, "x"))
        if (positives, negatives) == (5_000, 200_000):
            rows.append(
                Row.at_most(f"P = {P:,}, N = {N:,}: ours", seconds.best("ours") / 2, "s", 0.1)
            )
    return rows


def _seconds(algorithm_2: Any, P: int, N: int) -> Seconds:
    """Seconds of ours and theirs, which must find the same maximum."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(2, P + N))  # in turn, so that an order before is of no use
    draws[:, :P] += 1.0
    binary = np.array([[P, N]]), np.array([1.0, 0.0])
    oracle = hinge_oracle(AveragePrecision(), Pairwise(), None, *binary)
    coef = {"ours": np.zeros(P + N), "theirs": np.zeros(P + N)}
    loss = {"ours": 0.0, "theirs": 0.0}
    addresses = [scores.ctypes.data for scores in draws]

    def ours() -> None:
        for scores in draws:
            loss["ours"] = oracle.answer(0, scores, coef["ours"])

    def theirs() -> None:
        for address in addresses:
            loss["theirs"] = algorithm_2(address, P, N, coef["theirs"].ctypes.data)

    repeats = min(2_000, max(1, round(WORK / (P * N))))
    timers = {"ours": stopwatch(ours, max(5, repeats)), "theirs": stopwatch(theirs, repeats)}
    seconds = interleave(timers, 5 if P * N <= 5 * WORK else 1)
    objective = {name: loss[name] + coef[name] @ draws[-1] for name in loss}
    np.testing.assert_allclose(objective["ours"], objective["theirs"], rtol=1e-9)
    return seconds
