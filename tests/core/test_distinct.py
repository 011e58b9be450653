from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.data.text_columns import WIDEST, distinct, text_array


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("ab", max_size=3), st.integers(0, 3))))
def test_rows_are_numbered_by_first_appearance(rows: list[tuple[str, int]]) -> None:
    number_of = {row: k for k, row in enumerate(dict.fromkeys(rows))}
    texts = np.array([text for text, _ in rows], dtype="U3")
    integers = np.array([integer for _, integer in rows], np.int64)
    for column in (texts, texts.astype(object)):
        codes, first = distinct(column, integers)
        assert codes.tolist() == [number_of[row] for row in rows]
        assert first.tolist() == [rows.index(row) for row in number_of]


def test_long_text_is_kept_as_objects() -> None:
    assert text_array(["a", "b" * WIDEST]).dtype == f"<U{WIDEST}"
    assert text_array(["a", "b" * (WIDEST + 1)]).dtype == object
