"""Low-rank reranking: a fit at the size of a treebank, growth to ten times that, and CCA elsewhere.

Fits run in processes of their own, on all cores, and their memory includes the data. The generative
model is the canonical correlation analysis that scikit-learn and cca-zoo have too. They take dense
views: scikit-learn's are centred and not regularised (here τ is next to nothing); cca-zoo's
RidgeCCA is given bags of features as they are, and regularised as ours, which stay sparse: with few
features there is nothing to win, so that comparison informs only. All are on one thread, and are
judged by the sum of their correlations.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from benchmarks.nbest_lists import nbest_lists
from benchmarks.peers import environment, printed
from benchmarks.process import child, peak
from benchmarks.row import Row
from benchmarks.timing import blas_threads, measure, stopwatch
from didyma.nbest.low_rank import LowRankReranker

WORKER = Path(__file__).with_name("cca_worker.py")
SENTENCES = 15_000
FACTOR = 10
FEW = 1_000
EQUAL = 1e-3  # share of the sum of correlations that says nothing

Weights: TypeAlias = "tuple[Any, Any]"


def run(scale: float = 1.0) -> list[Row]:
    with blas_threads(1):
        compared = [*_scikit_learn(scale), *_two_factors(scale), *_cca_zoo(scale)]
    return [*_treebank(max(100, round(SENTENCES * scale))), *compared]


def _treebank(n: int) -> Iterator[Row]:
    fits = {
        (solver, size): _measure(size, solver)
        for solver in ("exact", "randomized")
        for size in (n, FACTOR * n)
        if (solver, size) != ("exact", FACTOR * n)
    }
    exact = fits["exact", n]
    yield Row.at_most(f"exact fit, {n:,} lists of 10", exact["seconds"], "s", 60)
    yield Row.at_most("its memory, with the data", exact["peak"] / 1e9, "GB", 4)
    one, ten = fits["randomized", n], fits["randomized", FACTOR * n]
    yield Row(f"randomised fit, {n:,} lists", one["seconds"], "s")
    yield Row(f"randomised fit, {FACTOR * n:,} lists", ten["seconds"], "s")
    yield Row("its memory, with the data", ten["peak"] / 1e9, "GB")
    growth = ten["seconds"] / one["seconds"]
    yield Row.at_most(f"growth of the randomised fit at {FACTOR}x", growth, "x", 12)


def _measure(n: int, solver: str) -> dict[str, float]:
    measured: dict[str, float] = child("low_rank", n, solver)
    return measured


def _scikit_learn(scale: float) -> Iterator[Row]:
    from sklearn.cross_decomposition import CCA

    X, Y = (view.toarray() for view in _views(max(50, round(2_000 * scale)), scale, 300, 100))
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    k = min(10, Y.shape[1])

    def theirs() -> Weights:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of iterations that stop early
            model = CCA(k, scale=False).fit(X, Y)
        return model.x_rotations_, model.y_rotations_

    yield from _compare("scikit-learn's CCA, 300 x 100 features", X, Y, k, 1e-6, theirs)


def _two_factors(scale: float) -> Iterator[Row]:
    """Twenty lines of SciPy, on dense views; ours also measure how exact they are."""
    for n, d1, d2 in ((2_000, 300, 100), (10_000, 500, 100), (3_000, 2_000, 400)):
        rng = np.random.default_rng(0)
        n, d1, d2 = (
            max(least, round(size * scale)) for size, least in ((n, 50), (d1, 20), (d2, 10))
        )
        hidden = rng.standard_normal((n, 20))
        X, Y = (
            hidden @ rng.standard_normal((20, d)) + 3 * rng.standard_normal((n, d))
            for d in (d1, d2)
        )
        k, tau = min(10, d2), 0.5
        model = LowRankReranker("generative", k, tau)
        timers = {
            "ours": lambda X=X, Y=Y, model=model: model.fit(X, Y),
            "theirs": lambda X=X, Y=Y, k=k, tau=tau: two_factors(X, Y, k, tau),
        }
        seconds = measure(timers, 5)
        name = f"two Cholesky factors in SciPy, dense {n:,} x ({d1:,} + {d2})"
        over = seconds.ratio("theirs", "ours")
        reached = _correlations(X, Y, tau, *two_factors(X, Y, k, tau))
        fair = _correlations(X, Y, tau, model.A_, model.B_) >= (1 - EQUAL) * reached
        target = "≥ 1 at equal correlation or better"
        yield Row(f"{name}, time over ours", over, "x", target, over >= 1 and fair)


def two_factors(X: Any, Y: Any, k: int, tau: float) -> Weights:
    """Canonical correlations by the singular vectors of Lx⁻¹ Cxy Ly⁻ᵀ."""
    from scipy.linalg import cholesky, solve_triangular, svd

    n = len(X)
    factors = []
    for view in (X, Y):
        C = (1 - tau) / n * (view.T @ view)
        C[np.diag_indices(len(C))] += tau
        factors.append(cholesky(C, lower=True, overwrite_a=True, check_finite=False))
    left = solve_triangular(factors[0], X.T @ Y / n, lower=True, check_finite=False)
    both = solve_triangular(factors[1], left.T, lower=True, check_finite=False).T
    U, _, V = svd(both, full_matrices=False, check_finite=False)
    A, B = (
        solve_triangular(L, W, lower=True, trans=1, check_finite=False)
        for L, W in zip(factors, (U[:, :k], V[:k].T))
    )
    return A, B


def _cca_zoo(scale: float) -> Iterator[Row]:
    python = environment("cca-zoo")
    for d1, d2 in ((300, 100), (2_000, 400), (4_000, 500)):
        name = f"cca-zoo's RidgeCCA, {d1:,} x {d2} features"
        if python is None:
            yield Row.absent(f"{name}, time over ours")
            continue
        X, Y = _views(max(50, round(3_000 * scale)), scale, d1, d2)
        k, tau = min(20, Y.shape[1]), 0.5
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "X.npy"), X.toarray())
            np.save(Path(folder, "Y.npy"), Y.toarray())
            seconds = float(printed(python, WORKER, folder, k, tau))
            weights = (np.load(Path(folder, "A.npy")), np.load(Path(folder, "B.npy")))
        yield from _compare(name, X, Y, k, tau, lambda found=weights: found, seconds)


def _views(n: int, scale: float, d1: int, d2: int) -> Iterator[sp.csr_array]:
    """The most frequent features of made-up sentences and of their tags."""
    X, Y, _ = nbest_lists(n, candidates=1)
    for view, d in ((X, d1), (Y, d2)):
        frequent = np.argsort(-view.sum(axis=0))[: max(10, round(d * min(1.0, 10 * scale)))]
        yield sp.csr_array(view[:, np.sort(frequent)])


def _compare(
    name: str,
    X: Any,
    Y: Any,
    k: int,
    tau: float,
    theirs: Callable[[], Weights],
    seconds: float | None = None,
) -> Iterator[Row]:
    """Seconds of a peer over ours; they are measured here if they are not given."""
    found: list[Weights] = []
    taken = stopwatch(lambda: found.append(theirs()))()
    model = LowRankReranker("generative", k, tau)
    ours = min(stopwatch(lambda: model.fit(X, Y))() for _ in range(5))
    reached = _correlations(X, Y, tau, *found[0])
    own = _correlations(X, Y, tau, model.A_, model.B_)
    fair = own >= (1 - EQUAL) * reached
    ratio = (taken if seconds is None else seconds) / ours
    if X.shape[1] < FEW and sp.issparse(X):
        yield Row(f"{name}, time over ours", ratio, "x")
    else:
        target = "≥ 10 at equal correlation or better"
        yield Row(f"{name}, time over ours", ratio, "x", target, ratio >= 10 and fair)
    yield Row(f"{name}, sum of {k} correlations", reached, "")
    yield Row("the same of ours", own, "")


def _correlations(X: Any, Y: Any, tau: float, A: Any, B: Any) -> float:
    """Σ_i a_i'Cxy b_i / √(a_i'Cxx a_i · b_i'Cyy b_i)."""
    n = X.shape[0]
    x, y = X @ A, Y @ B
    own = [
        (1 - tau) / n * np.sum(scores**2, axis=0) + tau * np.sum(weights**2, axis=0)
        for scores, weights in ((x, A), (y, B))
    ]
    return float(np.sum(np.sum(x * y, axis=0) / n / np.sqrt(own[0] * own[1])))


def fit(n: int, solver: str) -> dict[str, float]:
    """Seconds of a fit, most bytes that this process has held, and how exact the fit is."""
    X, Y, lists = nbest_lists(n)
    model = LowRankReranker(solver=solver, weight=1.0)
    seconds = stopwatch(lambda: model.fit(X, Y, lists))()
    return {"seconds": seconds, "peak": peak(), "residual": model.residual_}


if __name__ == "__main__":  # python -m benchmarks.low_rank SENTENCES SOLVER
    print(json.dumps(fit(int(sys.argv[1]), sys.argv[2])))
