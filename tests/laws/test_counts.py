"""True and False count nothing, wherever a whole number is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import didyma
from didyma import structures
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.polytope.sparsemap import solve
from didyma.ranking.feature_maps import TopMean
from didyma.ranking.losses import PrecisionAt
from didyma.structures.composition import Factor
from didyma.text.features import SmallFeatures, TextFeatures
from didyma.text.reranker import Reranker
from tests.model.test_codec import TEXTS

X, Y = np.eye(3), [0, 1, 0]


def reranker() -> Reranker:
    return Reranker(TextFeatures([SmallFeatures()]), didyma.SVMRanker()).fit(TEXTS)


class Chosen(didyma.Structure):
    """One of the parts, named as it is asked for."""

    ndim = 1

    def __init__(self, part: Any) -> None:
        self.part = part

    def argmax(self, scores: Any) -> Any:
        return self.part


def chosen(structure: Chosen) -> object:
    return solve(structure.lay_out(np.zeros((1, 3))), structure)


# Each takes a whole number, or several; the second is one that is right.
NUMBERS: dict[str, tuple[Callable[[Any], object], int]] = {
    "cut-off of a loss": (lambda k: PrecisionAt(k=k), 1),
    "cut-off of weights": (lambda k: TopMean(k), 1),
    "threads": (lambda n: didyma.threads(n).__exit__(None, None, None), 1),
    "options that are chosen": (structures.TopK, 1),
    "capacity": (lambda n: structures.Knapsack([1, 2], n), 1),
    "order": (structures.HigherOrderChain, 1),
    "results": (lambda k: reranker().rank("a ring", ["a ring"], top_k=k), 1),
    "pairs of columns": (
        lambda n: didyma.AdditiveSVMRanker(interactions=n, bins=2).fit(X, Y),
        1,
    ),
    "a column": (lambda n: didyma.AdditiveSVMRanker(categorical=[n], bins=2).fit(X, Y), 1),
}
SEVERAL: dict[str, tuple[Callable[[Any], object], list[int]]] = {
    "group": (lambda sizes: didyma.SVMRanker().fit(X, Y, group=sizes), [1, 2]),
    "sizes": (lambda sizes: Groups.from_sizes(sizes, 3), [1, 2]),
    "lengths": (
        lambda lengths: structures.Chain().predict(np.zeros((2, 3, 2)), lengths=lengths),
        [1, 3],
    ),
    "rows and columns": (
        lambda lengths: structures.Matching().predict(np.zeros((2, 2)), lengths=lengths),
        [1, 2],
    ),
    "weights": (lambda weights: structures.Knapsack(weights, 3), [1, 2]),
    "variables": (lambda places: Factor(structures.TopK(1), places), [1, 2]),
    "parts": (lambda parts: chosen(Chosen(parts)), [1, 2]),
}


@pytest.mark.parametrize("truth", [True, np.True_])
@pytest.mark.parametrize("name", NUMBERS)
def test_truth_is_no_number(name: str, truth: object) -> None:
    use, right = NUMBERS[name]
    use(right)
    with pytest.raises(DataError):
        use(truth)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a query that teaches nothing
@pytest.mark.parametrize("name", SEVERAL)
def test_truth_is_not_among_numbers(name: str) -> None:
    use, right = SEVERAL[name]
    use(right)
    use(np.array(right))
    for wrong in ([True, *right[1:]], [np.True_, *right[1:]], (*right[:1], False)):
        with pytest.raises(DataError):
            use(wrong)


NONE: dict[str, Callable[[], object]] = {
    "query": lambda: didyma.TextReranker().fit([None], [["a", "b"]], [[1, 0]]),
    "passage": lambda: didyma.TextReranker().fit(["a"], [["b", None]], [[1, 0]]),
    "passages": lambda: didyma.TextReranker().fit(["a"], [None], [[1, 0]]),
    "queries": lambda: didyma.TextReranker().fit(None, [["a", "b"]], [[1, 0]]),
    "documents": lambda: reranker().rank("a ring", None),
    "asked": lambda: reranker().rank(None, ["a ring"]),
    "a frame": lambda: didyma.data.table.from_frame(None),
    "outputs": lambda: didyma.NBestReranker().fit(None),
    "lists": lambda: TextFeatures([SmallFeatures()]).fit(Lists.of_texts([None], [["a"]])),
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_missing_is_called_none(name: str) -> None:
    with pytest.raises(DataError) as error:
        NONE[name]()
    assert "NoneType" not in str(error.value)
    assert "none" in str(error.value) or "expected queries, passages" in str(error.value)
