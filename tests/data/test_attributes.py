"""Attributes of documents, and how lists carry them."""

import numpy as np
import pytest

from didyma import DataError, Lists
from didyma.data import Attributes


def attributes() -> Attributes:
    return Attributes(
        {"title": ["a", "b", "c"]},
        {"age": np.array([1.0, np.nan, 3.0]), "kind": np.array(["x", None, "y"], object)},
        ("age",),
        np.arange(6, dtype=np.float32).reshape(3, 2),
    )


def test_lists_carry_attributes_and_query_vectors_wherever_rows_go() -> None:
    lists = Lists(
        ["1", "2", "3"],
        np.zeros(3),
        np.array(["q", "p", "q"]),
        queries=["Q", "P"],
        attributes=attributes(),
        query_vectors=np.eye(2, dtype=np.float32),
    )
    for part in (lists.select_lists([0]), lists.select([0, 2])):
        assert part.attributes is not None
        assert part.attributes.fields["title"] == ["a", "c"]
        assert part.attributes.signals["age"].tolist() == [1.0, 3.0]
        assert part.attributes.signals["kind"].tolist() == ["x", "y"]
        assert part.attributes.vectors is not None
        assert part.attributes.vectors.tolist() == [[0, 1], [4, 5]]
        assert part.attributes.first_stages == ("age",)
        assert part.query_vectors is not None
        assert part.query_vectors.tolist() == [[1, 0]]
    assert lists.with_items(np.ones((3, 1))).attributes is lists.attributes


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"fields": {"a": ["x"]}, "signals": {"b": np.zeros(2)}}, "b"),
        ({"signals": {"b": np.array([1, 2])}}, "b"),
        ({"signals": {"b": np.array([np.inf])}}, "b"),
        ({"signals": {"b": np.array(["x"], object)}, "first_stages": ("b",)}, "b"),
        ({"first_stages": ("c",)}, "c"),
        ({"vectors": np.zeros(3, np.float32)}, "vectors"),
    ],
)
def test_bad_attributes_name_the_field(arguments: dict, field: str) -> None:
    with pytest.raises(DataError) as error:
        Attributes(**arguments)
    assert error.value.field == field


def test_attributes_of_other_rows_are_refused() -> None:
    with pytest.raises(DataError, match="expected 2 rows, found 3"):
        Lists(["1", "2"], attributes=attributes())
