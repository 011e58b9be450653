from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.metrics.ranking import order, tie_break

rows = st.lists(
    st.tuples(
        st.sampled_from("abc"),  # query
        st.one_of(st.integers(-2, 2), st.floats(-2, 2), st.sampled_from([np.inf, -np.inf])),
        st.text(st.sampled_from("abBé9"), min_size=1, max_size=3),  # document
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda row: (row[0], row[2]),
)


@settings(deadline=None)  # the first call compiles
@given(rows)
def test_order_is_by_score_then_by_document_descending(rows: list[tuple[str, float, str]]) -> None:
    qid, scores, docid = zip(*rows)
    groups = Groups.from_qid(qid)
    ranked = order(scores, groups, tie_break(groups, docid))
    for q, name in enumerate(groups.names):
        found = ranked[groups.starts[q] : groups.starts[q + 1]]
        own = [i for i in range(len(rows)) if qid[i] == name]
        wanted = sorted(own, key=lambda i: (np.float32(scores[i]), docid[i]), reverse=True)
        assert found.tolist() == wanted


@pytest.mark.parametrize("size", [1, 15, 16, 17, 33, 1000, 4097])
@pytest.mark.parametrize("levels", [3, 1 << 30])
def test_long_queries_are_sorted(size: int, levels: int) -> None:
    random = np.random.default_rng(size)
    scores = random.integers(-levels, levels, 2 * size) / 7
    groups = Groups.from_qid(random.permutation(np.repeat([0, 1], size)))
    ties = tie_break(groups)
    wanted = np.lexsort((ties, -scores.astype(np.float32), groups.codes))
    assert order(scores, groups, ties).tolist() == wanted.tolist()


def test_scores_are_compared_in_single_precision() -> None:
    groups = Groups.from_sizes([2], 2)
    ties = tie_break(groups, ["a", "b"])
    assert order([1 + 1e-12, 1.0], groups, ties).tolist() == [1, 0]
    assert order([1 + 1e-6, 1.0], groups, ties).tolist() == [0, 1]
    assert order([0.0, -0.0], groups, ties).tolist() == [1, 0]
    assert order([1e300, 1e299], groups, ties).tolist() == [1, 0]


def test_numbers_as_document_ids_are_text() -> None:
    groups = Groups.from_sizes([3], 3)
    assert tie_break(groups, [9, 10, 8]).tolist() == [0, 2, 1]


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.booleans())
def test_ties_are_ranks_within_the_query(qid: list[int], with_docid: bool) -> None:
    groups = Groups.from_qid(qid)
    ties = tie_break(groups, ["same"] * len(qid) if with_docid else None)
    for q in range(len(groups)):
        own = ties[groups.rows[groups.starts[q] : groups.starts[q + 1]]]
        assert sorted(own) == list(range(len(own)))


def test_without_ids_the_place_in_the_input_is_no_advantage() -> None:
    n_queries, size = 4000, 5
    ties = tie_break(Groups.from_sizes([size] * n_queries, n_queries * size))
    share = np.stack([(ties.reshape(-1, size) == rank).mean(axis=0) for rank in range(size)])
    assert np.abs(share - 1 / size).max() < 0.03  # about five standard deviations


def test_without_ids_the_order_depends_on_the_query_alone() -> None:
    qid = np.repeat(["x", "y", "z"], 20)
    alone = tie_break(Groups.from_qid(["y"] * 20))
    assert tie_break(Groups.from_qid(qid))[20:40].tolist() == alone.tolist()
    assert tie_break(Groups.from_qid(qid[::-1]))[20:40].tolist() == alone.tolist()
    assert (
        tie_break(Groups.from_qid(["7"] * 20)).tolist()
        == tie_break(Groups.from_qid([7] * 20)).tolist()
    )


def test_bad_columns_are_refused() -> None:
    groups = Groups.from_sizes([3], 3)
    ties = tie_break(groups)
    with pytest.raises(DataError, match="scores: row 1: expected a number, found NaN"):
        order([1, np.nan, np.nan], groups, ties)
    with pytest.raises(DataError, match=r"scores: expected 3 values, found shape \(2,\)"):
        order([1, 2], groups, ties)
    with pytest.raises(DataError, match="scores: expected numbers"):
        order(["a", "b", "c"], groups, ties)
    with pytest.raises(DataError, match="docid: expected 3 values"):
        tie_break(groups, ["a"])
