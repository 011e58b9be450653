"""Explanations: sums that are the score."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from didyma import (
    AdditiveSVMRanker,
    ClassificationRanker,
    Lists,
    PolynomialRanker,
    QueryMinMaxScaler,
    QueryPercentileScaler,
    QueryStandardScaler,
    SVMRanker,
)
from didyma.errors import DataError
from didyma.model import Model
from didyma.ranking.explanation import MatchedSpan, explain_rows
from tests.test_imports import modules_after

NAMES = ("bm25", "overlap", "length")


def judged(seed=0, n_queries=12, size=5):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_queries * size, 3)) * [3.0, 1.0, 50.0] + [5.0, 0.0, 100.0]
    merit = X[:, 0] + X[:, 1] ** 2 + random.normal(size=len(X))
    qid = random.permutation(np.repeat(np.arange(n_queries), size))  # rows of queries interleave
    best = [merit[qid == own].max() for own in range(n_queries)]
    return Lists(X, (merit == np.array(best)[qid]) * 1.0, qid, feature_names=NAMES)


RANKERS = {
    "linear": lambda: SVMRanker(C=1.0),
    "intercept": lambda: ClassificationRanker(C=1.0),
    "scaled": lambda: make_pipeline(StandardScaler(), SVMRanker(C=1.0)),
    "minmax": lambda: make_pipeline(MinMaxScaler(), SVMRanker(C=1.0)),
    "in-query": lambda: make_pipeline(QueryStandardScaler(), SVMRanker(C=1.0)),
    "twice": lambda: make_pipeline(StandardScaler(), QueryMinMaxScaler(), SVMRanker(C=1.0)),
    "percentile": lambda: make_pipeline(QueryPercentileScaler(), SVMRanker(C=1.0)),
    "additive": lambda: AdditiveSVMRanker(bins=6),
    "pairs": lambda: AdditiveSVMRanker(bins=6, interactions=2),
}


def fitted(name, lists):
    ranker = RANKERS[name]()
    if not hasattr(ranker, "steps"):
        return Model.of(ranker.fit(lists))
    with config_context(enable_metadata_routing=True):
        ranker[-1].set_fit_request(qid=True)
        return Model.of(ranker.fit(pd.DataFrame(lists.X, columns=NAMES), lists.y, qid=lists.qid))


def explain(model, lists, row):
    (found,) = explain_rows(model, lists, [row])
    return found


@pytest.fixture(scope="module")
def models():
    return {name: fitted(name, judged()) for name in RANKERS}


@pytest.mark.parametrize("name", RANKERS)
def test_contributions_add_up_to_the_score(models, name):
    model, others = models[name], judged(seed=1)
    scores = model.predict(others)
    found = explain_rows(model, others, np.arange(len(others)))
    for explanation, score in zip(found, scores, strict=True):
        total = explanation.intercept + sum(part.amount for part in explanation.contributions)
        size = abs(explanation.intercept) + sum(abs(p.amount) for p in explanation.contributions)
        assert abs(total - score) <= 1e-13 * (1 + size)
        assert explanation.raw == pytest.approx(score, rel=1e-12, abs=1e-12)
    amounts = [abs(part.amount) for part in explanation.contributions]
    assert amounts == sorted(amounts, reverse=True)
    assert max(amounts) > 0


def test_a_linear_contribution_is_weight_times_scaled_value(models):
    model, lists = models["scaled"], judged()
    scaler, ranker = (step for _, step in model.estimator.steps)
    scaled = (lists.X[3] - scaler.mean_) / scaler.scale_
    found = {p.name: p for p in explain(model, lists, 3).contributions}
    for j, name in enumerate(NAMES):
        assert found[name].amount == pytest.approx(ranker.coef_[j] * scaled[j])
        assert found[name].value == lists.X[3, j]


def test_an_additive_contribution_is_the_value_of_a_function(models):
    model, lists = models["pairs"], judged()
    ranker = model.estimator
    explanation = explain(model, lists, 3)
    found = {part.name: part for part in explanation.contributions}
    a, b = ranker.pairs_[0]
    assert found[f"{NAMES[a]} × {NAMES[b]}"].value is None
    assert len(found) == 5
    bins = ranker.bins_.transform(lists.X).bins
    for j, name in enumerate(NAMES):
        expected = ranker.tables_[bins[3, j], j] - ranker.means_[j]
        assert found[name].amount == pytest.approx(expected)
    assert explanation.intercept == pytest.approx(ranker.means_.sum())
    # Over the rows of training the amounts of each feature have mean zero.
    every = explain_rows(model, lists, range(len(lists)))
    for name in found:
        amounts = [p.amount for e in every for p in e.contributions if p.name == name]
        assert np.mean(amounts) == pytest.approx(0, abs=1e-12)


def test_missing_values_are_explained_too():
    X = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [np.nan, 1.0]])
    lists = Lists(X, np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    model = Model.of(AdditiveSVMRanker(bins=4).fit(lists))
    explanation = explain(model, lists, 3)
    assert explanation.raw == pytest.approx(model.predict(lists)[3])
    assert "= nan" in str(explanation)


def test_sparse_rows_are_explained():
    lists = judged()
    X = sp.csr_array(np.where(lists.X > 5, lists.X, 0.0))
    sparse = Lists(X, lists.y, lists.qid, feature_names=NAMES)
    ranker = make_pipeline(MaxAbsScaler(), SVMRanker(C=1.0)).fit(X, lists.y)
    model = Model.of(ranker)
    for row in range(5):
        found = explain(model, sparse, row)
        assert found.raw == pytest.approx(model.predict(sparse)[row])


def test_columns_are_matched_by_name(models):
    lists = judged()
    turned = Lists(lists.X[:, ::-1], lists.y, lists.qid, feature_names=NAMES[::-1])
    model = models["additive"]
    assert explain(model, turned, 2) == explain(model, lists, 2)


def test_a_ranker_without_contributions_is_refused():
    lists = judged()
    model = Model.of(PolynomialRanker(C=1.0, degree=2).fit(lists))
    with pytest.raises(DataError, match="found a PolynomialRanker: it has no contributions"):
        explain(model, lists, 0)


@pytest.mark.parametrize("name", RANKERS)
def test_a_relative_explanation_is_the_difference(models, name):
    lists, model = judged(), models[name]
    first, second = (explain(model, lists, row) for row in (0, 1))
    relative = first.above(second)
    scores = model.predict(lists)
    total = relative.intercept + sum(part.amount for part in relative.differences)
    assert total == pytest.approx(scores[0] - scores[1], abs=1e-10)
    assert relative.distance == pytest.approx(scores[0] - scores[1])
    way = "above" if scores[0] > scores[1] else "below"
    assert str(relative).startswith(f"{way} by ")
    assert " against " in str(relative)
    json.dumps(relative.to_dict())
    reverse = second.above(first)
    assert reverse.distance == -relative.distance


def test_explanations_of_different_models_have_no_difference(models):
    lists = judged()
    first, second = (explain(models[name], lists, 0) for name in ("linear", "pairs"))
    with pytest.raises(DataError, match="the same model"):
        first.above(second)


def test_the_text_of_an_explanation(models):
    lists = judged()
    spans = (MatchedSpan(0, 4, ("emma",), "word"), MatchedSpan(5, 10, ("write",), "stem"))
    text = "Emma wrote\n" + "it " * 40
    explanation = replace(explain(models["scaled"], lists, 0), score=0.75, spans=spans, text=text)
    lines = str(explanation).splitlines()
    assert lines[0].startswith(f"score 0.75, raw {explanation.raw:.3g}: Emma wrote it it")
    assert lines[0].endswith(" …")
    assert lines[-1] == "matched: Emma, wrote"
    assert len(lines) == 5
    assert explanation.text == text
    record = json.loads(json.dumps(explanation.to_dict()))
    assert record["score"] == 0.75
    assert record["spans"][1] == {"start": 5, "stop": 10, "matched": ["write"], "kind": "stem"}
    assert {part["name"] for part in record["contributions"]} == set(NAMES)


def test_many_features_are_summed_up():
    random = np.random.default_rng(0)
    lists = Lists(random.normal(size=(40, 20)), random.integers(0, 2, 40) * 1.0, np.arange(40) // 8)
    explanation = explain(Model.of(SVMRanker(C=1.0).fit(lists)), lists, 0)
    lines = str(explanation).splitlines()
    assert lines[-1].endswith("12 others")
    shown = sum(float(line.split()[0]) for line in lines[1:])
    assert shown == pytest.approx(explanation.raw, abs=0.005)


def test_asking_needs_neither_scikit_learn_nor_scipy():
    code = """
import didyma
import numpy as np
from didyma.data.matrix import Columns
from didyma.data.lists import Lists
from didyma.model import Model
from didyma.ranking.explanation import explain_rows
ranker = didyma.SVMRanker()
ranker.coef_, ranker.n_queries_ = np.ones(1), 1
Columns(1, ("x",)).remember(ranker)
model = Model.of(ranker)
explain_rows(model, Lists(np.ones((2, 1)), feature_names=("x",)), [1])
import didyma.ranking.bins
"""
    assert not modules_after(code) & {"sklearn", "scipy"}
