"""Columns of fields: read at once or value by value, they are the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from didyma import DataError
from didyma.data.field_kinds import is_missing, number_column, number_in, vector_column, vector_in
from didyma.data.passage import fail_in_document


def read_or_fail(read: Any) -> Any:
    try:
        return np.asarray(read()).tolist()
    except DataError as error:
        return str(error)


numbers = st.one_of(
    st.none(), st.floats(), st.integers(), st.booleans(), st.just(10**400), st.just("x")
)


@given(st.lists(numbers, max_size=4))
def test_a_column_of_numbers_is_read_as_its_values_are(values: list[Any]) -> None:
    failed = partial(fail_in_document, "clicks")

    def each() -> list[float]:
        return [
            np.nan if is_missing(value) else number_in(value, failed, row)
            for row, value in enumerate(values)
        ]

    read = read_or_fail(lambda: number_column(values, "clicks", "", fail_in_document))
    assert repr(read) == repr(read_or_fail(each))


components = st.lists(st.one_of(st.floats(width=32), st.integers(-9, 9)), min_size=1, max_size=3)


@given(st.lists(st.one_of(components, components.map(np.array), st.none()), max_size=4))
def test_a_column_of_vectors_is_read_as_its_values_are(values: list[Any]) -> None:
    failed = partial(fail_in_document, "vector")

    def each() -> list[Any]:
        none = np.full(2, np.nan, np.float32)
        return [
            none if is_missing(value) else vector_in(value, failed, row, 2)
            for row, value in enumerate(values)
        ]

    read = read_or_fail(lambda: vector_column(values, "vector", 2, fail_in_document))
    assert repr(read) == repr(read_or_fail(each))
