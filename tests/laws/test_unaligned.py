"""Arrays may begin anywhere in memory: whoever takes them answers as for a copy that does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import didyma
from didyma import structures
from didyma.data.lists import Lists
from didyma.metrics import evaluate

RNG = np.random.default_rng(0)
ARC, ITEMS = RNG.normal(size=(2, 5, 5)), RNG.normal(size=(2, 6))
TAGS, STEPS = RNG.normal(size=(2, 6, 3)), RNG.normal(size=(3, 3))
QID, Y = np.repeat(np.arange(6), 10), np.tile([1.0, 0, 0, 1, 0, 0, 0, 0, 0, 0], 6)
X = RNG.normal(size=(60, 4)) + 2.0 * Y[:, None]

Move = Callable[[Any], Any]


def shifted(array: Any) -> Any:
    """The same numbers, one byte off."""
    array = np.asarray(array)
    moved = np.frombuffer(bytearray(array.nbytes + 1), array.dtype, array.size, offset=1)
    moved = moved.reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def sparse(rows: Any, move: Move) -> sp.csr_array:
    """Compressed rows whose three arrays are moved."""
    rows = sp.csr_array(rows)
    rows.data, rows.indices, rows.indptr = map(move, (rows.data, rows.indices, rows.indptr))
    return rows


STRUCTURES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "tree": (structures.Tree(), ARC, {"lengths": [3, 4]}),
    "projective tree": (structures.ProjectiveTree(), ARC, {"lengths": [3, 4]}),
    "forest": (structures.Forest(), ARC, {}),
    "matching": (structures.Matching(), ARC, {"lengths": [[3, 4], [5, 5]]}),
    "alignment": (structures.MonotoneAlignment("pairs"), ARC, {}),
    "sequence": (structures.Chain(), TAGS, {"transitions": STEPS, "lengths": [4, 6]}),
    "segmentation": (structures.Segmentation(), RNG.normal(size=(2, 4, 3, 2)), {}),
    "choice": (structures.Choice(), ITEMS, {}),
    "at most": (structures.TopK(2), ITEMS, {}),
    "knapsack": (structures.Knapsack([1, 2, 1, 3, 2, 1], 4), ITEMS, {}),
    "factor graph": (
        structures.FactorGraph(3, edges=[(0, 1), (1, 2)]),
        RNG.normal(size=(2, 3, 2)),
        {"pairwise": RNG.normal(size=(2, 2, 2))},
    ),
}


def solved(structure: Any, scores: Any, named: dict[str, Any], move: Move) -> list[Any]:
    moved = {name: move(values) for name, values in named.items()}
    u, solution = didyma.sparsemap(move(scores), structure, return_solution=True, **moved)
    return [u, solution.vjp(move(scores))[0], solution.jvp(move(scores))]


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparsemap(name, dtype):
    structure, scores, named = STRUCTURES[name]
    expected = solved(structure, scores.astype(dtype), named, np.asarray)
    for one, other in zip(solved(structure, scores.astype(dtype), named, shifted), expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["tree", "projective tree", "sequence", "alignment"])
def test_distributions(name):
    structure, scores, named = STRUCTURES[name]
    moved = {key: shifted(values) for key, values in named.items()}
    for method in ("marginals", "log_partition", "predict"):
        one = getattr(structure, method)(shifted(scores), **moved)
        other = getattr(structure, method)(scores, **named)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "ranker",
    [
        didyma.SVMRanker(),
        didyma.SVMRanker(solver="one-slack"),
        didyma.AdditiveSVMRanker(),
        didyma.PolynomialRanker(),
        didyma.LatentPerceptronRanker(epochs=2),
        didyma.LatentSVMRanker(),
        didyma.ClassificationRanker(),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_rankers(ranker, dtype):
    expected = ranker.fit(X.astype(dtype), Y, qid=QID).predict(X.astype(dtype))
    rows = shifted(X.astype(dtype))
    found = ranker.fit(rows, shifted(Y), qid=shifted(QID)).predict(rows)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows(dtype):
    ranker = didyma.SVMRanker()
    plain, moved = (sparse(X.astype(dtype), move) for move in (np.asarray, shifted))
    expected = ranker.fit(plain, Y, qid=QID).predict(plain)
    found = ranker.fit(moved, shifted(Y), qid=shifted(QID)).predict(moved)
    np.testing.assert_array_equal(found, expected)


def test_metrics():
    measures = ["AP", "nDCG@10", "RR"]
    expected = evaluate(X[:, 0], Y, qid=QID, measures=measures)
    found = evaluate(shifted(X[:, 0]), shifted(Y), qid=shifted(QID), measures=measures)
    assert str(found) == str(expected)


def test_lists():
    lists = Lists(shifted(X), shifted(Y), shifted(QID))
    np.testing.assert_array_equal(lists.groups.starts, Lists(X, Y, QID).groups.starts)


@pytest.mark.parametrize("name", ["tree", "sequence"])
def test_layers(name):
    torch = pytest.importorskip("torch")
    from didyma.nn import SparseMAP

    structure, scores, _ = STRUCTURES[name]
    found = []
    for move in (np.asarray, shifted):
        leaf = torch.from_numpy(move(scores)).requires_grad_()
        marginals = SparseMAP(structure)(leaf)
        marginals.square().sum().backward()
        found.append((marginals.detach().numpy(), leaf.grad.numpy()))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_boosting_of_lists(dtype):
    lists, losses = [np.eye(3, dtype=dtype)] * 4, [[0.0, 1, 1], [0, 1, 1], [1, 0, 1], [0, 1, 1]]
    expected = didyma.BoostingReranker(5).fit(lists, losses)
    moved = list(map(shifted, lists))
    found = didyma.BoostingReranker(5).fit(moved, list(map(shifted, losses)))
    np.testing.assert_array_equal(found.rerank(moved), expected.rerank(lists))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_low_rank_of_lists(dtype):
    vectors, lists, losses = np.eye(3, dtype=dtype), [np.eye(3, dtype=dtype)] * 3, 1 - np.eye(3)
    expected = didyma.LowRankReranker(n_components=3).fit(vectors, vectors, lists, losses)
    rows, moved = shifted(vectors), list(map(shifted, lists))
    found = didyma.LowRankReranker(n_components=3).fit(rows, rows, moved, shifted(losses))
    np.testing.assert_array_equal(found.rerank(rows, moved), expected.rerank(vectors, lists))
    np.testing.assert_array_equal(found.A_, expected.A_)


def test_scores_of_a_first_stage():
    queries = [f"what is thing {n}" for n in range(12)]
    passages = [[f"thing {n} is this", f"other {n}", "nothing"] for n in range(12)]
    labels, scores = np.tile([1, 0, 0], (12, 1)), RNG.normal(size=(12, 3))
    answers = []
    for move in (np.asarray, shifted):
        model = didyma.TextReranker(quick=True)
        model.fit(queries, passages, list(map(move, labels)), scores=list(map(move, scores)))
        answers.append(model.rank("thing 3", passages[3], scores=move(scores[3])))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "name", ["QueryMinMaxScaler", "QueryPercentileScaler", "QueryStandardScaler"]
)
def test_transformers(name):
    transformer = getattr(didyma, name)()
    rows = {move: move(X) for move in (np.asarray, shifted)}
    expected, found = (
        transformer.fit(rows[move], move(Y), qid=move(QID)).transform(rows[move], qid=move(QID))
        for move in rows
    )
    np.testing.assert_array_equal(found, expected)
