from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.candidates import read_lists

SIZES = st.lists(st.integers(0, 4), min_size=1, max_size=5)


@given(SIZES, st.integers(0, 100), st.booleans())
def test_choices_are_the_first_of_highest_value(sizes, seed, matrix):
    generator = np.random.default_rng(seed)
    losses = [generator.integers(0, 3, size) for size in sizes]
    lists = read_lists([np.zeros((size, 2)) for size in sizes], losses)
    columns = [generator.integers(0, 3, sum(sizes)) for _ in range(2 if matrix else 1)]
    values = np.stack(columns, axis=1) if matrix else columns[0]
    choice = lists.groups.choose(values)
    chosen = np.atleast_2d(choice.T)
    paid = np.atleast_2d(lists.loss_of(choice).T)
    for column, places, costs in zip(columns, chosen, paid):
        parts = np.split(column, np.cumsum(sizes)[:-1])
        expected = [int(np.argmax(part)) if len(part) else -1 for part in parts]
        assert places.tolist() == expected
        assert costs.tolist() == [
            loss[place] if place >= 0 else 0 for loss, place in zip(losses, expected)
        ]


def test_sparse_and_dense_lists_mix():
    lists = read_lists([sp.csr_array(np.eye(2)), np.ones((1, 2))], decoder_scores=[[1, 2], [3]])
    assert sp.issparse(lists.X)
    np.testing.assert_array_equal(lists.X.toarray(), [[1, 0], [0, 1], [1, 1]])
    assert lists.groups.sizes.tolist() == [2, 1]
    assert lists.groups.codes.tolist() == [0, 0, 1]
    assert lists.scores.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (([],), "candidates: expected a list of candidates at least, found none"),
        (([np.ones(3)],), r"candidates: expected a matrix .* in list 0, found shape \(3,\)"),
        (([np.ones((1, 2)), np.ones((1, 3))],), "expected 2 features in list 1, found 3"),
        (([np.full((1, 1), np.nan)],), "candidates: expected finite numbers"),
        (([np.ones((1, 1))], []), "losses: 0 lists for 1 queries"),
        (([np.ones((1, 1))], [[1, 2]]), "losses: expected 1 values in list 0, found 2"),
        (([np.ones((1, 1))], [[-1]]), "losses: expected losses of 0 or more"),
        (([np.ones((1, 1))], [[1]], [[np.inf]]), "decoder_scores: expected finite numbers"),
    ],
)
def test_input_that_cannot_be_used(arguments, problem):
    with pytest.raises(DataError, match=problem):
        read_lists(*arguments)


def test_rows_of_a_list_need_not_stand_together():
    scattered = Lists(
        np.arange(4.0)[:, None], qid=np.array([1, 0, 1, 0]), losses=np.array([3.0, 2, 1, 0])
    )
    lists = read_lists(scattered)
    assert lists.X[:, 0].tolist() == [0, 2, 1, 3]
    values = np.array([1.0, 0, 2, 5])
    choice = scattered.groups.choose(values)
    assert choice.tolist() == lists.groups.choose(values[[0, 2, 1, 3]]).tolist() == [1, 1]
    assert scattered.loss_of(choice).tolist() == lists.loss_of(choice).tolist() == [1, 0]


def test_losses_are_needed_for_the_loss():
    lists = read_lists([np.ones((1, 1))])
    with pytest.raises(DataError, match="expected a loss for each candidate, found none"):
        lists.loss_of(lists.groups.choose([1.0]))
