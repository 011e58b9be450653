"""What is embedded for a request: no more than it needs, and no longer than it may take."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.text import TextFeatures
from didyma.text.encoders import resolve
from didyma.text.features import Meaning, meaning
from didyma.text.features.meaning import texts_too_late
from didyma.text.observation import without_vectors
from didyma.text.text_reranker import TextReranker
from tests.text.test_text_reranker_signals import letters
from tests.text.texts import made


def test_embedding_ends_with_the_time_and_says_so(monkeypatch):
    texts = [f"passage {chr(97 + n)}" for n in range(20)]
    lists = Lists.of_texts(["a b"], [texts])
    features = TextFeatures([Meaning(letters, budget=100)]).fit(lists)
    whole = features.transform(lists)
    assert texts_too_late() == 0
    left = iter([5.0, 5.0, 0.0])  # is there a deadline; before the first batch; before the second
    monkeypatch.setattr(meaning, "time_left", lambda: next(left))
    brief = features.transform(lists)
    assert texts_too_late() == 12
    assert brief[:, 2].tolist() == [0.0] * 8 + [1.0] * 12
    np.testing.assert_allclose(brief[:8], whole[:8])
    (note,) = without_vectors(12, 20, texts_too_late())
    assert note.endswith("; the time to embed was over before 12 texts")


def test_documents_may_bring_vectors_of_the_encoder():
    asked: list[str] = []

    def encoder(texts):
        asked.extend(texts)
        return letters(texts)

    lists = made(8)
    queries = [str(query) for query in lists.queries]
    documents = [[lists.items[row] for row in lists.groups.rows_of(n)] for n in range(8)]
    reranker = TextReranker(quick=True, encoder=encoder).fit(queries, documents)  # fusion
    assert reranker.vector_dimension == 26
    wanted = reranker.rank(queries[0], documents[0])
    vectors = resolve(letters).encode_documents(documents[0])
    given = [{"text": t, "vector": v.tolist()} for t, v in zip(documents[0], vectors)]
    asked.clear()
    found = reranker.rank(queries[0], given)
    assert asked == [queries[0]]
    assert [one.index for one in found] == [one.index for one in wanted]
    np.testing.assert_allclose([one.raw for one in found], [one.raw for one in wanted], atol=1e-6)
    assert not found.notes
    with pytest.raises(DataError, match="document 1, vector: expected a vector of 26 numbers"):
        reranker.rank(queries[0], [given[0], {"text": "a", "vector": [1.0]}])
    with pytest.raises(DataError, match="query: expected a vector of 26 numbers, found 2"):
        reranker.rank({"text": "a", "vector": [1.0, 2.0]}, given)
