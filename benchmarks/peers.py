"""Training time and test MAP against what users would pick instead, all on one thread.

Every library runs with its default parameters (SVMRanker's default is C = 100), boosters with 100
trees or rounds. LightGBM and XGBoost live in an environment of their own, ``benchmarks/.peers``,
which is made on demand; a peer that cannot be installed is reported as absent.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import synthetic
from benchmarks.row import Row
from benchmarks.timing import blas_threads
from didyma.data.lists import Lists
from didyma.metrics import evaluate
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.svm import SVMRanker

ENVIRONMENT = Path(__file__).with_name(".peers")
WORKER = Path(__file__).with_name("peer_worker.py")
BOOSTER = "LightGBM lambdarank"  # of trees, as an additive ranker is in the end
EQUAL = 0.003  # a difference of MAP that says nothing
PAIRS = 10  # sampled for each relevant row
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Scores: TypeAlias = NDArray[np.float64]
Peer: TypeAlias = Callable[[Lists, Lists], "tuple[float, Scores] | None"]


def run(scale: float = 1.0) -> list[Row]:
    train = synthetic.dense(max(20, round(1000 * scale)))
    test = synthetic.dense(max(10, round(500 * scale)), seed=1)
    rows = []
    with blas_threads(1):
        svm_map(train, test)  # warms up
        quality = _map(test, svm_map(train, test)[1])
        rows.append(Row("SVMRanker", quality, "MAP"))
        for name, peer in PEERS.items():
            ours, _ = svm_map(train, test)  # next to each peer, on a machine as busy
            if (result := peer(train, test)) is None:
                rows.append(Row.absent(name))
                continue
            theirs, scores = result
            reached = _map(test, scores)
            target = f"≥ 1 at a MAP within {EQUAL} or better"
            fair = quality >= reached - EQUAL
            rows.append(
                Row(f"{name}, time over ours", theirs / ours, "x", target, theirs >= ours and fair)
            )
            rows.append(Row(name, reached, "MAP"))
            if name == BOOSTER:
                rows += _against_additive(name, theirs, train, test)
    return rows


def _against_additive(name: str, theirs: float, train: Lists, test: Lists) -> list[Row]:
    additive(train, test)  # warms up
    ours, scores = additive(train, test)
    return [
        Row.at_least(f"{name}, time over that of AdditiveSVMRanker", theirs / ours, "x", 50),
        Row("AdditiveSVMRanker", _map(test, scores), "MAP"),
    ]


def additive(train: Lists, test: Lists, **options: Any) -> tuple[float, Scores]:
    start = time.perf_counter()
    ranker = AdditiveSVMRanker(n_jobs=1, **options).fit(train.X, train.y, qid=train.qid)
    return time.perf_counter() - start, ranker.predict(test.X)


def svm_map(train: Lists, test: Lists) -> tuple[float, Scores]:
    start = time.perf_counter()
    ranker = SVMRanker(n_jobs=1).fit(train.X, train.y, qid=train.qid)
    return time.perf_counter() - start, ranker.predict(test.X)


def pairwise_svm(train: Lists, test: Lists) -> tuple[float, Scores]:
    """LinearSVC on differences of a relevant row and one that is not, of the same query."""
    from sklearn.svm import LinearSVC

    start = time.perf_counter()
    X: Any = train.X
    rng = np.random.default_rng(0)
    better, worse = [], []
    for own in np.split(train.groups.rows, train.groups.starts[1:-1]):
        relevant, other = own[train.y[own] > 0], own[train.y[own] == 0]
        better.append(np.repeat(relevant, PAIRS))
        worse.append(rng.choice(other, size=PAIRS * len(relevant)))
    difference = X[np.concatenate(better)] - X[np.concatenate(worse)]
    sign = rng.choice([-1.0, 1.0], size=len(difference))
    difference *= sign[:, None]
    model = LinearSVC(fit_intercept=False).fit(difference, sign)
    return time.perf_counter() - start, test.X @ model.coef_[0]


def logistic_regression(train: Lists, test: Lists) -> tuple[float, Scores]:
    from sklearn.linear_model import LogisticRegression

    start = time.perf_counter()
    model = LogisticRegression().fit(train.X, train.y)
    return time.perf_counter() - start, test.X @ model.coef_[0]


def ridge(train: Lists, test: Lists) -> tuple[float, Scores]:
    """Least squares of the labels: one Cholesky factor, and no idea of a query."""
    from sklearn.linear_model import Ridge

    start = time.perf_counter()
    model = Ridge().fit(train.X, train.y)
    return time.perf_counter() - start, test.X @ model.coef_


def _installed(package: str, name: str) -> Peer:
    """A peer of the environment, trained there by `peer_worker`."""

    def train_and_score(train: Lists, test: Lists) -> tuple[float, Scores] | None:
        if (python := environment(package)) is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            arrays = {"X": train.X, "y": train.y, "group": train.groups.sizes, "X_test": test.X}
            for key, array in arrays.items():
                np.save(Path(folder, f"{key}.npy"), array)
            seconds = float(printed(python, WORKER, name, folder).split()[-1])
            return seconds, np.load(Path(folder, "scores.npy"))

    return train_and_score


def environment(package: str, *interpreters: str) -> Path | None:
    """Python of the peers' environment with the package in it, or None where pip cannot get it.

    A package that does not run on this Python has an environment of its own, made by the first of
    these interpreters that is on the path.
    """
    for interpreter in interpreters or (sys.executable,):
        folder = ENVIRONMENT.with_name(f".peers-{interpreter}") if interpreters else ENVIRONMENT
        python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        if not python.exists():
            if (found := shutil.which(interpreter)) is None:
                continue
            subprocess.run([found, "-m", "venv", str(folder)], capture_output=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", package]
        if python.exists() and subprocess.run(install, capture_output=True).returncode == 0:
            return python
    return None


def ask(
    worker: Path, packages: list[str], peer: str, *interpreters: str, **arrays: Any
) -> list[float] | None:
    """What a worker prints that is given arrays, in the peers' environment on one thread."""
    python, *others = [environment(package, *interpreters) for package in packages]
    if python is None or None in others:
        return None
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "batch.npz"), **arrays)
        try:
            words = printed(python, worker, peer, Path(folder, "batch.npz")).split()
        except subprocess.CalledProcessError:
            return None
    return [float(word) for word in words]


def printed(python: Path, worker: Path, *arguments: object) -> str:
    """What a worker prints, in the peers' environment on one thread."""
    command = [str(python), str(worker), *map(str, arguments)]
    environment = os.environ | ONE_THREAD
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def _map(data: Lists, scores: Scores) -> float:
    return evaluate(scores, data.y, data.groups, "AP").mean("AP")


PEERS: dict[str, Peer] = {
    "LinearSVC on sampled pairs": pairwise_svm,
    "LogisticRegression": logistic_regression,
    "Ridge on the labels": ridge,
    BOOSTER: _installed("lightgbm", "lightgbm_lambdarank"),
    "XGBoost rank:map": _installed("xgboost-cpu", "xgboost_trees"),  # the other pulls in CUDA
    "XGBoost rank:map, gblinear": _installed("xgboost-cpu", "xgboost_linear"),
}
