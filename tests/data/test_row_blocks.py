"""Rows that come some at a time: cut anew, and put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from didyma.data import formats, row_blocks
from didyma.data.attributes import Attributes
from didyma.data.lists import Lists
from didyma.errors import DataError, LeftOutWarning
from tests.data.same import assert_same


def cut(lists: Lists, sizes: list[int]) -> Iterator[Lists]:
    """Blocks of these sizes, again and again, until there are no more rows."""
    start = 0
    while start < len(lists):
        for size in sizes:
            stop = min(start + size, len(lists))
            if start < stop:
                yield row_blocks.slice_rows(lists, start, stop)
            start = stop


@given(
    qid=st.lists(st.integers(0, 9), min_size=1, max_size=30).map(sorted),
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    size=st.integers(1, 8),
    sparse=st.booleans(),
)
def test_whatever_the_blocks_the_rows_are_the_same(
    qid: list[int], sizes: list[int], size: int, sparse: bool
) -> None:
    n_rows = len(qid)
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    items = sp.csr_array(X) if sparse else X
    names = np.array(list(map(str, qid)))
    lists = Lists(items, np.arange(float(n_rows)), names, names, zero_based=True)
    whole = row_blocks.collect(cut(lists, sizes))
    assert_same(whole, lists)
    assert whole.features == lists.features
    assert sp.issparse(whole.X) == sparse
    batches = list(row_blocks.rebatch(size, cut(lists, sizes)))
    assert {len(batch) for batch in batches[:-1]} <= {size}
    assert len(batches[-1]) <= size
    assert_same(row_blocks.concatenate(batches), lists)
    queries = list(row_blocks.whole_queries(cut(lists, sizes)))
    assert sum(len(part.groups) for part in queries) == len(set(qid))
    assert_same(row_blocks.concatenate(queries), lists)


def test_a_query_that_comes_again_is_refused() -> None:
    lists = Lists(np.eye(3), np.ones(3), np.array(["a", "b", "a"]))
    with pytest.raises(row_blocks.ScatteredError, match="found query 'a' again after another"):
        list(row_blocks.whole_queries(cut(lists, [1])))


def test_features_and_attributes_of_blocks(tmp_path: Path) -> None:
    years = Attributes({"title": ["A", "B", "C"]}, {"year": np.array([1.0, np.nan, 3.0])})
    lists = Lists(np.eye(3), np.ones(3), np.array(["p", "p", "q"]), attributes=years)
    cut = [row_blocks.slice_rows(lists, 0, 1), row_blocks.slice_rows(lists, 1, 3)]
    joined = row_blocks.concatenate(cut).attributes
    assert joined is not None
    assert joined.fields == years.fields
    np.testing.assert_array_equal(joined.signals["year"], years.signals["year"])
    with pytest.raises(DataError, match="attributes: expected title, year in all rows"):
        row_blocks.concatenate([cut[0], replace(cut[1], attributes=None)])
    for name in ("a.csv", "a.npz", "a.letor"):
        with pytest.warns(LeftOutWarning, match="fields of documents are not: title, year"):
            formats.write(lists, tmp_path / name)
