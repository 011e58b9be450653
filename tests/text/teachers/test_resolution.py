"""Models of other libraries, and functions, as teachers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from didyma import TextReranker
from didyma.errors import DataError
from didyma.integrations import RerankEncoder
from didyma.text.teachers import ObjectTeacher, resolve
from tests.text.teachers.standin import overlap
from tests.text.texts import made

QUERY, DOCUMENTS = "who wrote it", ["no", "she wrote it", "who wrote it ?", "it"]


class CrossEncoder:
    """As sentence-transformers has it."""

    def predict(self, pairs: list[tuple[str, str]]) -> Any:
        return np.array([overlap(query, [document])[0] for query, document in pairs], np.float32)

    def rank(self, query: str, documents: list[str]) -> Any:
        raise AssertionError("predict is enough")


class OneLabel(CrossEncoder):
    def predict(self, pairs: list[tuple[str, str]]) -> Any:
        return super().predict(pairs)[:, None]


class OnlyRanks:
    def rank(self, query: str, documents: list[str]) -> Any:
        scores = overlap(query, documents)
        order = sorted(range(len(scores)), key=lambda n: -scores[n])
        return [{"corpus_id": n, "score": scores[n]} for n in order]


class FastEmbed:
    def rerank(self, query: str, documents: list[str]) -> Any:
        yield from overlap(query, documents)


@pytest.mark.parametrize("model", [CrossEncoder(), OneLabel(), OnlyRanks(), FastEmbed(), overlap])
def test_models_are_taken_as_they_are(model: Any) -> None:
    scores = resolve(model).score(QUERY, DOCUMENTS)
    np.testing.assert_allclose(scores, overlap(QUERY, DOCUMENTS), rtol=1e-6)


def test_rerankers_of_ours_teach_too() -> None:
    reranker = TextReranker(quick=True).fit(made(12, n_passages=4))
    expected = [0.0] * len(DOCUMENTS)
    for one in reranker.rank(QUERY, DOCUMENTS):
        expected[one.index] = one.raw
    np.testing.assert_array_equal(resolve(reranker).score(QUERY, DOCUMENTS), expected)
    encoder = resolve(RerankEncoder(reranker))
    assert encoder.score(QUERY, DOCUMENTS).argsort().tolist() == np.argsort(expected).tolist()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([1.0, 2.0], "expected 4 scores"),
        (np.zeros((4, 3)), r"found shape \(4, 3\)"),
        ([1.0, float("nan"), 2.0, 3.0], "found nan for document 1"),
        ([1.0, 2.0, 3.0, float("inf")], "found inf for document 3"),
        (None, "expected 4"),
        ("good", "expected 4"),
        (["a", "b", "c", "d"], "expected 4 numbers"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(answer: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        ObjectTeacher(lambda query, documents: answer, "mine").score(QUERY, DOCUMENTS)


def test_a_ranking_that_leaves_documents_out_is_refused() -> None:
    model = SimpleNamespace(rank=lambda query, documents: [{"corpus_id": 0, "score": 1.0}])
    with pytest.raises(DataError, match="found nan for document 1"):
        resolve(model).score(QUERY, DOCUMENTS)
    model = SimpleNamespace(rank=lambda query, documents: [{"corpus_id": 9, "score": 1.0}])
    with pytest.raises(DataError, match="index and score"):
        resolve(model).score(QUERY, DOCUMENTS)


def test_what_is_no_teacher_is_refused() -> None:
    with pytest.raises(DataError, match="expected an address"):
        resolve(7)
    with pytest.raises(DataError, match="only an address"):
        resolve(overlap, "tei")
