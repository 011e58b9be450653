"""Lists that were written, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.data.lists import Lists


def dense(X: Any) -> Any:
    return np.asarray(X) if isinstance(X, np.ndarray) else X.toarray()


def assert_same(lists: Lists, expected: Lists) -> None:
    """Rows, labels and ids are equal."""
    np.testing.assert_array_equal(dense(lists.X), dense(expected.X))
    np.testing.assert_array_equal(lists.y, expected.y)
    assert lists.qid.tolist() == expected.qid.tolist()
    assert (lists.docid is None) == (expected.docid is None)
    if lists.docid is not None and expected.docid is not None:
        assert lists.docid.tolist() == expected.docid.tolist()
