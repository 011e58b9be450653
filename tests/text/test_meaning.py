"""What a `TextReranker` says about its answers: how sure it is, why, and how far from home."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

import didyma
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.model import Model
from didyma.text import SmallFeatures, TextFeatures
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made

QUERY = "when does the ship of the storm sail?"
DOCUMENTS = ["A ship ship ship.", "The ship of the storm sails in 1902.", "It is late."]


@pytest.fixture(scope="module")
def reranker():
    return TextReranker().fit(made())


@pytest.fixture(scope="module")
def in_query():
    """One whose features are scaled within queries, so that its rows need each other."""
    lists, features = made(), TextFeatures([SmallFeatures()], window=6)
    rows = pd.DataFrame(features.fit(lists).transform(lists), columns=features.names)
    ranker = make_pipeline(didyma.QueryMinMaxScaler(), didyma.SVMRanker(C=1.0))
    with config_context(enable_metadata_routing=True):
        ranker[-1].set_fit_request(qid=True)
        ranker.fit(rows, lists.y, qid=lists.qid)
    found = didyma.Reranker(features, ranker)
    found.model_ = Model.of(ranker)
    return found


@pytest.mark.parametrize("which", ["reranker", "in_query"])
def test_explanations_add_up_to_the_scores_of_the_ranking(which, request):
    asked = request.getfixturevalue(which)
    documents = [*DOCUMENTS, "It rains. " * 300 + DOCUMENTS[1] + " It rains." * 300]
    found = asked.explain(QUERY, documents)
    assert [own.text for own in found] == documents
    for ranked in asked.rank(QUERY, documents):
        own = found[ranked.index]
        assert (own.raw, own.score) == (ranked.raw, ranked.score)
        total = own.intercept + sum(part.amount for part in own.contributions)
        assert total == pytest.approx(own.raw, abs=1e-9)
        for span in own.spans:
            words = own.text[span.start : span.stop].lower()
            assert any(words[:4] == word.lower()[:4] for word in span.matched)
            if ranked.window is not None:
                assert ranked.window[0] <= span.start
                assert span.stop <= ranked.window[1]
    assert [DOCUMENTS[1][s.start : s.stop] for s in found[1].spans] == ["ship", "storm", "sails"]
    assert found[3].spans
    assert found[2].spans == ()


def test_a_relative_explanation(reranker):
    first, second, _ = reranker.explain(QUERY, DOCUMENTS)
    relative = second.above(first)
    assert relative.distance == pytest.approx(second.raw - first.raw)
    assert str(relative).startswith("above by")


def test_scores_keep_the_order_and_have_a_threshold(reranker):
    other = made(seed=1)
    raw = reranker.predict(other)
    order = np.argsort(-raw, kind="stable")
    assert np.all(np.diff(reranker.order_calibration_(raw)[order]) <= 0)
    threshold = reranker.calibration_.threshold(0.9)
    chances = np.zeros(len(other))
    for n, query in enumerate(other.queries):
        rows = other.groups.rows_of(n)
        for one in reranker.rank(query, [other.items[row] for row in rows]):
            chances[rows[one.index]] = one.probability
    above = chances >= threshold.score
    assert other.y[above].mean() > 0.7


def test_drift(reranker):
    like = reranker.drift(made(seed=1))
    assert like.level == "like training"
    abroad = Lists.of_texts(
        ["Wo liegt Bonn?"] * 30, [["Bonn liegt am Rhein und hat eine Universität. " * 5] * 3] * 30
    )
    assert reranker.drift(abroad).level == "uncalibrated"  # there is nothing to order
    assert set(reranker.ranges_.names) >= set(reranker.model_.features.names)
    json.dumps(reranker.drift(abroad).to_dict())


def test_all_of_it_is_in_the_file(reranker, tmp_path):
    reranker.save(tmp_path / "model")
    again = didyma.load(tmp_path / "model")
    other = made(seed=2)
    assert again.drift(other) == reranker.drift(other)
    assert again.explain(QUERY, DOCUMENTS) == reranker.explain(QUERY, DOCUMENTS)
    assert again.calibration_.threshold(0.5) == reranker.calibration_.threshold(0.5)
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('sklearn', 'scipy', 'ir_measures', 'pandas'))\n"
        "import didyma\n"
        f"found = didyma.load({str(tmp_path / 'model')!r})\n"
        f"found.explain({QUERY!r}, {DOCUMENTS!r})\n"
        f"found.drift(didyma.Lists.of_texts([{QUERY!r}], [{DOCUMENTS!r}]))\n"
        "found.calibration_.threshold(0.5)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_reranker_that_is_not_fitted():
    for ask in (
        lambda own: own.explain(QUERY, DOCUMENTS),
        lambda own: own.drift(Lists.of_texts([QUERY], [DOCUMENTS])),
    ):
        with pytest.raises(DataError, match="call fit first"):
            ask(TextReranker())
