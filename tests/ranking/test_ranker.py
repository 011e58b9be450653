"""What all rankers share, seen through a ranker that only records what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from didyma import (
    AdditiveSVMRanker,
    ClassificationRanker,
    LatentPerceptronRanker,
    LatentSVMRanker,
    PolynomialRanker,
    SVMRanker,
)
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.errors import DataError, NothingLearnedWarning
from didyma.metrics import evaluate
from didyma.ranking.ranker import LinearRanker

# These rankers do not learn: their weights are given.
pytestmark = pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")

X = np.array([[3.0, 0.0], [1.0, 1.0], [2.0, 5.0], [0.0, 4.0], [9.0, 1.0]])
Y = np.array([1, 0, 2, 0, 1])
QID = ["b", "a", "b", "b", "a"]


class Recorder(LinearRanker):
    """Keeps its input; every weight is 1."""

    def _fit(self, train: Any, evaluation: Any) -> None:
        self.seen_ = (train.X, train.y, train.groups, train.weights, evaluation)
        self.coef_ = np.ones(train.X.shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_are_not_copied(dtype: type) -> None:
    rows = X.astype(dtype)
    seen = Recorder().fit(rows, Y, qid=QID).seen_[0]
    assert np.shares_memory(seen, rows)
    assert seen.dtype == dtype


def test_sparse_rows_become_a_csr_array_without_copying() -> None:
    rows = sp.csr_matrix(X)
    seen = Recorder().fit(rows, Y, qid=QID).seen_[0]
    assert isinstance(seen, sp.csr_array)
    assert np.shares_memory(seen.data, rows.data)
    columns = Recorder().fit(sp.csc_array(X), Y, qid=QID).seen_[0]
    np.testing.assert_array_equal(columns.toarray(), X)


@pytest.mark.parametrize("table", [pd.DataFrame, lambda rows: pl.DataFrame(rows, orient="row")])
def test_data_frames_give_feature_names(table: Any) -> None:
    rows = table(X)
    rows.columns = ["bm25", "length"]
    ranker = Recorder().fit(rows, Y, qid=QID)
    assert ranker.feature_names_in_.tolist() == ["bm25", "length"]
    np.testing.assert_array_equal(ranker.predict(rows), X.sum(axis=1))


def test_integers_and_fortran_order_become_doubles_in_c_order() -> None:
    for rows in (X.astype(int), X.tolist(), np.asfortranarray(X)):
        seen = Recorder().fit(rows, Y, qid=QID).seen_[0]
        assert seen.dtype == np.float64
        assert seen.flags.c_contiguous
        np.testing.assert_array_equal(seen, X)


def test_queries_by_qid_by_size_or_all_in_one() -> None:
    by_qid = Recorder().fit(X, Y, qid=QID).seen_[2]
    assert by_qid.names.tolist() == ["b", "a"]
    assert by_qid.codes.tolist() == [0, 1, 0, 0, 1]
    by_size = Recorder().fit(X, Y, group=[2, 3]).seen_[2]
    assert by_size.codes.tolist() == [0, 0, 1, 1, 1]
    assert len(Recorder().fit(X, Y).seen_[2]) == 1
    assert Recorder().fit(X, Y, qid=pd.Series(QID, index=range(5, 10))).seen_[2].codes.tolist() == (
        by_qid.codes.tolist()
    )


def test_a_query_weighs_as_the_mean_of_its_rows() -> None:
    weight = Recorder().fit(X, Y, qid=QID, sample_weight=[1, 2, 3, 5, 4]).seen_[3]
    np.testing.assert_array_equal(weight, [3, 3])
    series = pd.Series([1, 0, 3, 5, 0], index=list("vwxyz"))
    np.testing.assert_array_equal(
        Recorder().fit(X, Y, qid=QID, sample_weight=series).seen_[3], [3, 0]
    )
    assert Recorder().fit(X, Y, qid=QID).seen_[3] is None


def test_masked_values_do_not_count_as_values() -> None:
    masked = np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) == 3)
    with pytest.raises(DataError, match="X: has masked values"):
        Recorder().fit(masked, Y, qid=QID)
    with pytest.raises(DataError, match="X: has masked values"):
        Recorder().fit(X, Y, qid=QID).predict(masked)
    Recorder().fit(np.ma.masked_array(X), Y, qid=QID)
    first = np.arange(len(Y)) == 0
    given = {"y": Y, "qid": QID, "sample_weight": np.ones(len(Y))}
    for field, values in given.items():
        with pytest.raises(DataError, match=f"^{field}: has masked values"):
            Recorder().fit(X, **given | {field: np.ma.masked_array(values, first)})
        Recorder().fit(X, **given | {field: np.ma.masked_array(values)})


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], "expected 5 weights"),
        (np.ones((5, 1)), "expected 5 weights"),
        ([1, 1, 1, 1, -1], "0 or more"),
        ([1, 1, 1, 1, np.nan], "finite"),
        (np.zeros(5), "zero"),
        ("heavy", "expected a number for each row, found 'heavy'"),
    ],
)
def test_bad_weights(weight: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"sample_weight: .*{message}"):
        Recorder().fit(X, Y, qid=QID, sample_weight=weight)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b", "a", "b", "a"], "y: expected numbers"),
        ([1, 0, np.nan, 0, 1], "y contains NaN"),
        ([1, 0, np.inf, 0, 1], "y contains infinity"),
        ([1, 0, 1], "inconsistent numbers of samples"),
        (np.ones((5, 2)), "y should be a 1d array"),
        (None, "requires y"),
    ],
)
def test_bad_grades(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recorder().fit(X, y, qid=QID)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ({"qid": QID, "group": [5]}, "not both"),
        ({"qid": ["a"]}, "1 query ids for 5 rows"),
        ({"qid": ["a", "a", None, "b", "b"]}, "qid: row 2: expected a query, found None"),
        ({"group": [2, 2]}, "add up to 4"),
        ({"group": [[2, 3]]}, "list of query sizes"),
    ],
)
def test_bad_queries(queries: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Recorder().fit(X, Y, **queries)
    ranker = Recorder().fit(X, Y)
    with pytest.raises(DataError, match=message):
        ranker.rank(X, **queries)
    with pytest.raises(DataError, match=message):
        ranker.score(X, Y, **queries)


@pytest.mark.parametrize(
    ("grades", "level"),
    [
        ([1, 5, 3, 2, 4], 4),
        ([2, 3, 3, 2, 2], 3),
        ([1, 1.5, 1, 1, 1], 1.5),
        ([0, 0.5, 0, 0, 0], 0.5),
    ],
)
@pytest.mark.parametrize(
    "ranker",
    [
        *(SVMRanker("rr"), AdditiveSVMRanker(), LatentPerceptronRanker(), LatentSVMRanker()),
        *(ClassificationRanker(), PolynomialRanker()),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_labels_that_are_all_relevant_or_none_are_told_helps(
    ranker: Any, grades: list[float], level: float
) -> None:
    with pytest.raises(DataError, match=r"labels are .* relevant") as told:
        ranker.fit(X, grades)
    if hasattr(ranker, "inference") or isinstance(ranker, SVMRanker):
        assert f'loss="ap(rel={level:g})"' in str(told.value)
        assert ('loss="ndcg"' in str(told.value)) == isinstance(ranker, SVMRanker)
        ranker.set_params(loss=f"ap(rel={level:g})").fit(X, grades)
    else:
        assert f"rows from {level:g} on with 1" in str(told.value)
        ranker.fit(X, np.array(grades) >= level)


@pytest.mark.parametrize(
    ("loss", "grades", "message"),
    [
        ("ap", [1, 1, 1, 1, 1], "all labels are 1"),
        ("ap(rel=3)", [0, 2, 1, 2, 0], r"labels are 0 to 2, so that no row .*\(y >= 3\)"),
        ("ap(rel=2)", [1, 1, 1, 2, 2], r"no query has a row that is relevant \(y >= 2\)"),
        ("ndcg", [1, 1, 1, 2, 2], "every query has rows of one grade only"),
    ],
)
def test_the_reason_why_nothing_can_be_learned(loss: str, grades: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        SVMRanker(loss).fit(X, grades, qid=["a", "a", "a", "b", "b"])


def test_nothing_to_learn_from() -> None:
    for grades in ([0, 0, 0, 0, 0], [2, 1, 2, 2, 1], [1, 0, 1, 1, 0]):
        with pytest.raises(DataError, match="nothing to learn from"):
            Recorder().fit(X, grades, qid=QID)
    with pytest.raises(DataError, match="nothing to learn from"):
        Recorder().fit(X, [1, 0, 0, 1, 0], qid=QID, sample_weight=[0, 1, 0, 0, 1])


def test_queries_of_one_class_are_counted_in_one_warning() -> None:
    with pytest.warns(UserWarning, match="1 of 2 queries") as caught:
        ranker = Recorder().fit(X, [1, 0, 0, 1, 0], qid=QID)
    assert [warning.category for warning in caught] == [UserWarning, NothingLearnedWarning]
    assert caught[0].filename == __file__
    assert ranker.n_queries_ == 1
    assert Recorder().fit(X, Y, qid=QID).n_queries_ == 2


@pytest.mark.parametrize(
    "evaluation",
    [
        {"eval_set": (X, Y), "eval_group": [2, 3]},
        {"eval_set": [(X, Y)], "eval_group": [np.array([2, 3])]},
        {"eval_set": [(X, Y)], "eval_group": [[2, 3]]},
        {"eval_set": (X, Y), "eval_qid": ["x", "x", "z", "z", "z"]},
        {"eval_set": [(X, Y)], "eval_qid": [["x", "x", "z", "z", "z"]]},
    ],
)
def test_evaluation_sets(evaluation: dict[str, Any]) -> None:
    seen = Recorder().fit(X, Y, qid=QID, **evaluation).seen_[4][""]
    np.testing.assert_array_equal(seen.X, X)
    np.testing.assert_array_equal(seen.y, Y)
    assert seen.groups.codes.tolist() == [0, 0, 1, 1, 1]


def test_evaluation_set_of_one_query_with_one_row_each_way() -> None:
    one = (X[:1], Y[:1])
    for queries in ({"eval_qid": ["q"]}, {"eval_qid": [["q"]]}, {"eval_group": [1]}, {}):
        assert len(Recorder().fit(X, Y, eval_set=one, **queries).seen_[4][""].groups) == 1


def test_a_set_that_tells_no_weights_apart_does_not_decide_when_to_stop() -> None:
    X, y, qid = np.eye(4), np.array([1.0, 0.0, 0.0, 1.0]), [1, 1, 2, 2]
    ranker = SVMRanker(patience=2)
    with pytest.raises(DataError, match="eval_set: expected a query with labels of 1 or more and"):
        ranker.fit(X, y, qid=qid, eval_set=(X, 0 * y), eval_qid=qid)
    ranker.set_params(patience=None).fit(X, y, qid=qid, eval_set=(X, 0 * y), eval_qid=qid)


def test_several_evaluation_sets_have_names() -> None:
    lists = Lists(X[:3], Y[:3].astype(float), np.array(["p", "q", "p"]))
    sets: dict[str, Any] = {"eval_set": [(X, Y), lists], "eval_group": [[2, 3], None]}
    seen = Recorder().fit(X, Y, qid=QID, **sets).seen_[4]
    assert list(seen) == ["valid_0", "valid_1"]
    assert seen["valid_0"].groups.sizes.tolist() == [2, 3]
    assert seen["valid_1"].groups.sizes.tolist() == [2, 1]
    seen = Recorder().fit(X, Y, qid=QID, **sets, eval_names=["train", "dev"]).seen_[4]
    assert list(seen) == ["train", "dev"]


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ({"eval_set": []}, "eval_set: expected"),
        ({"eval_set": [(X, Y), (X, Y)], "eval_qid": QID}, "eval_qid: expected a list of 2 arrays"),
        ({"eval_set": [(X, Y)], "eval_group": [[5], [5]]}, "eval_group: expected a list of 1"),
        ({"eval_set": (X, Y), "eval_names": "dev"}, "eval_names: expected 1 different"),
        ({"eval_set": (X, Y), "eval_names": 5}, "eval_names: expected 1 different"),
        ({"eval_set": [(X, Y)] * 2, "eval_names": ["a", "a"]}, "eval_names: expected 2 different"),
        ({"eval_names": ["a"]}, "need eval_set"),
        ({"eval_set": [X, Y]}, "eval_set: expected"),
        ({"eval_set": X}, "eval_set: expected"),
        ({"eval_qid": QID}, "need eval_set"),
        ({"eval_set": (X[:, :1], Y)}, "expecting 2 features"),
        ({"eval_set": (X, Y), "eval_group": [3]}, "add up to 3"),
    ],
)
def test_bad_evaluation_sets(evaluation: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recorder().fit(X, Y, qid=QID, **evaluation)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_products_in_double_precision(kind: Any, dtype: type) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(20_000, 3)).astype(dtype)  # more than two blocks
    ranker = Recorder().fit(rows[:4], [0, 1, 0, 1])
    ranker.coef_ = np.array([1.0, -2.0, 1e-9])
    scores = ranker.predict(kind(rows))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, rows.astype(np.float64) @ ranker.coef_, rtol=1e-12)


def test_importances_are_magnitudes() -> None:
    ranker = Recorder()
    assert not hasattr(ranker, "feature_importances_")
    ranker.fit(X, Y)
    ranker.coef_ = np.array([-2.0, 1.0])
    assert ranker.feature_importances_.tolist() == [2.0, 1.0]


def test_not_fitted() -> None:
    for call in (Recorder().predict, Recorder().rank, lambda rows: Recorder().score(rows, Y)):
        with pytest.raises(NotFittedError):
            call(X)


def test_ranks_stand_beside_their_rows() -> None:
    ranker = Recorder().fit(X, Y)  # scores 3, 2, 7, 4, 10
    assert ranker.rank(X, qid=QID).tolist() == [3, 2, 1, 2, 1]
    assert ranker.rank(X, group=[1, 4]).tolist() == [1, 4, 2, 3, 1]
    assert ranker.rank(X).tolist() == [4, 5, 2, 3, 1]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.booleans()), min_size=1),
)
def test_ranks_are_permutations_in_descending_score(rows: list[tuple[int, int, bool]]) -> None:
    qid, values, relevant = map(np.array, zip(*rows))
    ranker = Recorder().fit([[0.0], [1.0]], [0, 1])
    ranks = ranker.rank(values[:, None], qid=qid)
    precision = []
    for query in np.unique(qid):
        own = np.flatnonzero(qid == query)
        ranked = own[np.argsort(ranks[own])]
        assert sorted(ranks[own]) == list(range(1, len(own) + 1))
        assert np.all(np.diff(values[ranked]) <= 0)
        hits = np.flatnonzero(relevant[ranked]) + 1
        precision.append(np.mean(np.arange(1, len(hits) + 1) / hits) if len(hits) else 0.0)
    # The score is of these very ranks, ties included.
    assert ranker.score(values[:, None], relevant, qid=qid) == pytest.approx(np.mean(precision))


def test_score_is_mean_average_precision() -> None:
    ranker = Recorder().fit(X, Y)
    scores = ranker.predict(X)
    per_query = evaluate(scores, Y, Groups.from_qid(QID), "AP")["AP"]
    assert ranker.score(X, Y, qid=QID) == per_query.mean()
    weight = np.array([1, 0, 1, 1, 0])
    assert ranker.score(X, Y, qid=QID, sample_weight=weight) == per_query[0]
    assert ranker.score(X, Y, group=[2, 3]) == ranker.score(X, Y, qid=[0, 0, 1, 1, 1])


def test_score_needs_queries_where_fit_had_them() -> None:
    ranker = Recorder().fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="fitted on 2 queries, so its score needs qid or group"):
        ranker.score(X, Y)
    assert 0 < ranker.score(X, Y, group=[5]) <= 1


def test_score_refuses_labels_of_another_length() -> None:
    with pytest.raises(DataError, match="expected 5 values"):
        Recorder().fit(X, Y).score(X, Y[:3])


def test_negative_grades_count_as_not_relevant() -> None:
    """TREC judgements have grades below zero, svmlight files labels of -1."""
    seen = Recorder().fit(X, [1, -1, -2, 0, 1], qid=QID).seen_[1]
    assert seen.tolist() == [1, 0, 0, 0, 1]


def judged(rows: Any, **more: Any) -> Lists:
    return Lists(rows, Y.astype(float), np.array(QID), **more)


def test_judged_results_bring_their_grades_and_queries() -> None:
    data = judged(X)
    ranker = Recorder().fit(data, eval_set=data)
    plain = Recorder().fit(X, Y, qid=QID)
    for mine, other in zip(ranker.seen_[:2], plain.seen_[:2]):
        np.testing.assert_array_equal(mine, other)
    assert ranker.seen_[2].names.tolist() == ranker.seen_[4][""].groups.names.tolist() == ["b", "a"]
    np.testing.assert_array_equal(ranker.predict(data), plain.predict(X))
    np.testing.assert_array_equal(ranker.rank(data), plain.rank(X, qid=QID))
    assert ranker.score(data) == plain.score(X, Y, qid=QID)
    with pytest.raises(DataError, match="give no others"):
        ranker.fit(data, Y)
    with pytest.raises(DataError, match="give no others"):
        ranker.fit(data, eval_set=data, eval_qid=QID)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_of_judged_results_are_checked_at_predict(kind: Any, tmp_path: Any) -> None:
    named = Recorder().fit(judged(kind(X), feature_names=("bm25", "age")))
    named.coef_ = np.array([1.0, 10.0])
    swapped = judged(kind(X[:, ::-1]), feature_names=("age", "bm25"))
    np.testing.assert_array_equal(named.predict(swapped), named.predict(judged(kind(X))))
    with pytest.raises(DataError, match="expected also the features bm25"):
        named.predict(judged(kind(X), feature_names=("age", "x")))

    counted = Recorder().fit(judged(kind(X), zero_based=True))
    assert counted.zero_based_in_ is True
    with pytest.raises(DataError, match="count from 0, found some that count from 1"):
        counted.predict(judged(kind(X), zero_based=False))
    narrow = judged(kind(X[:, :1]), zero_based=True)
    np.testing.assert_array_equal(counted.predict(narrow), X[:, 0])
    with pytest.raises(DataError, match="found some that count from 1"):
        counted.fit(judged(kind(X), zero_based=True), eval_set=judged(kind(X), zero_based=False))
    assert counted.fit(X, Y, qid=QID).zero_based_in_ is None


def test_a_model_file_keeps_what_columns_are(tmp_path: Any) -> None:
    from didyma.ranking.svm import SVMRanker

    data = judged(X, feature_names=("bm25", "age"), zero_based=True)
    for ranker in (SVMRanker().fit(data), *SVMRanker().path(data, None, [1.0])):
        ranker.save(tmp_path / "model.safetensors")
        assert Columns.of(SVMRanker.load(tmp_path / "model.safetensors")) == data.features
