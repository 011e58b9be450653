"""Whoever calls from however many threads gets the bits of one; and so after a fork."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import didyma
from didyma import structures
from tests.test_checkpoints import fitted, judged, motif, path, reranked, resolved, searched

N_THREADS = 8


@pytest.fixture(autouse=True)
def _two_threads_for_kernels() -> Iterator[None]:
    with didyma.threads(2):
        yield


def predictions() -> Any:
    ranker = didyma.SVMRanker(tol=0.1).fit(judged())
    return lambda: [(ranker.predict(judged(1).X), ranker.rank(judged(1).X))]


def answers() -> Any:
    queries, passages = ["who rang ?", "who left ?"], [["They rang .", "It rains ."]] * 2
    reranker = didyma.TextReranker(quick=True).fit(queries, passages, [[1, 0], [0, 1]])

    def rank() -> Any:
        found = reranker.rank("who rang ?", ["It rains .", "They rang .", "Nobody left ."])
        return [(np.array([own.score for own in found]), [own.index for own in found])]

    return rank


TRAINED: dict[str, Callable[[], Any]] = {
    "SVMRanker": path(tol=0.1),
    "SVMRanker by one-slack": path(solver="one-slack", tol=0.1),
    "SVMRanker with the ramp": path(loss="ndcg@3", bound="ramp", tol=0.1),
    "AdditiveSVMRanker": fitted("AdditiveSVMRanker", bins=4, tol=0.1),
    "LatentPerceptronRanker": fitted("LatentPerceptronRanker", epochs=2),
    "LatentSVMRanker": fitted("LatentSVMRanker", C=10.0, tol=0.1),
    "MotifFinder": motif,
    "CoreferenceResolver": resolved("latent"),
    "NBestReranker by boosting": reranked("boosting", n_rounds=6),
    "NBestReranker by low rank": reranked("low-rank", n_components=2),
    "TextReranker": searched,
}


def bits(found: Any) -> Any:
    return [(np.asarray(array).tobytes(), str(rest[0])) for array, *rest in found]


def at_once(work: Callable[[], Any]) -> list[Any]:
    with warnings.catch_warnings(), ThreadPoolExecutor(N_THREADS) as pool:
        warnings.simplefilter("ignore")
        return list(pool.map(lambda _: bits(work()), range(N_THREADS)))


@pytest.mark.parametrize("name", TRAINED)
def test_training_on_eight_threads(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = bits(TRAINED[name]())
    assert at_once(TRAINED[name]) == [alone] * N_THREADS


@pytest.mark.parametrize("make", [predictions, answers])
def test_one_model_asked_by_eight_threads(make: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work = make()
        alone = bits(work())
    assert at_once(work) == [alone] * N_THREADS


STRUCTURES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Choice": (structures.Choice(), (3, 6)),
    "TopK": (structures.TopK(2), (3, 6)),
    "Sequence": (structures.Chain(), (3, 5, 3)),
    "Tree": (structures.Tree(), (3, 5, 5)),
    "ProjectiveTree": (structures.ProjectiveTree(), (3, 5, 5)),
    "Matching": (structures.Matching(), (3, 4, 4)),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_on_eight_threads(name: str) -> None:
    structure, shape = STRUCTURES[name]
    scores = np.random.default_rng(0).normal(size=shape)

    def work() -> Any:
        found = didyma.sparsemap(scores, structure)
        return [(found, np.asarray(structure.argmax(scores[0])).tolist())]

    assert at_once(work) == [bits(work())] * N_THREADS


CHILD = """
import multiprocessing, warnings, joblib, numpy as np
warnings.simplefilter("ignore")
from didyma import SVMRanker
from didyma.execution import n_cores
X = np.random.default_rng(0).normal(size=(400, 3))
y, qid = np.tile([1, 0, 0, 0], 100), np.repeat(range(100), 4)
def train(_):
    return SVMRanker(n_jobs=2, solver="one-slack").fit(X, y, qid=qid).coef_.tobytes()
if __name__ == "__main__":
    alone = train(None)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(train, range(2)) == [alone] * 2
    found = joblib.Parallel(2, backend="loky")(joblib.delayed(train)(k) for k in range(2))
    assert found == [alone] * 2
    shares = joblib.Parallel(2, backend="loky")(joblib.delayed(n_cores)() for k in range(2))
    assert shares == [max(1, n_cores() // 2)] * 2, shares
"""


RANKING = """
import os, sys, threading
import didyma
queries, passages = ["who rang ?", "who left ?"], [["They rang .", "It rains ."]] * 2
reranker = didyma.TextReranker(quick=True).fit(queries, passages, [[1, 0], [0, 1]])
index = didyma.PassageIndex.build(["They rang .", "It rains ."], "index")
def rank():
    texts = ["It rains .", " ".join(f"new{n}" for n in range(3000)), "They rang ."]
    found = [own.raw for own in reranker.rank("who rang ?", texts)]
    return found + [own.score for own in index.search("who rang", reranker=reranker)]
def rank_on():
    while True:
        assert rank() == alone
alone = rank()
for _ in range(4):
    threading.Thread(target=rank_on, daemon=True).start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(rank() != alone)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit("a child ranks otherwise")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="cannot fork")
def test_a_child_ranks_that_was_forked_while_threads_rank(tmp_path: Any) -> None:
    command = [sys.executable, "-W", "ignore", "-c", RANKING]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


ENDING = """
import sys, threading
import numpy as np, didyma
class Best(didyma.Structure):
    def argmax(self, scores):
        return np.array([max(range(scores.size), key=scores.item)])
scores, numbers = np.random.default_rng(0).normal(size=(40, 12, 12)), np.arange(100_000) % 1000
calls = {
    "kernel": lambda: didyma.sparsemap(scores, didyma.structures.Tree()),
    "Python function called by a kernel": lambda: didyma.sparsemap(scores.reshape(40, -1), Best()),
    "NumPy": lambda: np.unique(numbers),
}
call, begun = calls[sys.argv[1]], threading.Semaphore(0)
def call_on():
    while True:
        call()
        begun.release()
for _ in range(4):
    threading.Thread(target=call_on, daemon=True).start()
for _ in range(8):
    begun.acquire()
"""


@pytest.mark.parametrize("where", ["kernel", "Python function called by a kernel", "NumPy"])
def test_a_process_ends_well_while_daemon_threads_are_inside(where: str) -> None:
    """Before Python 3.14 they are unwound, and C++ that throws nothing aborts."""
    for _ in range(5):
        command = [sys.executable, "-W", "ignore", "-c", ENDING, where]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_has_ranked_is_copied_without_its_tables(tmp_path: Any) -> None:
    reranker = answers().__closure__[0].cell_contents
    index = didyma.PassageIndex.build(["They rang .", "It rains ."], tmp_path / "index")

    def ask(reranker: Any, index: Any) -> Any:
        return index.search("who rang ?", reranker=reranker, explain=True)

    alone = ask(reranker, index)
    for copied in (deepcopy, lambda own: pickle.loads(pickle.dumps(own))):
        assert ask(copied(reranker), copied(index)) == alone


@pytest.mark.skipif(sys.platform == "win32", reason="cannot fork")
def test_forks_and_workers_of_a_process_that_has_threads(tmp_path: Any) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    environment = {name: own for name, own in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "child.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
