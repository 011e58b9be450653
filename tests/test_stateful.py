from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from didyma.stateful import Stateful, array_of, record_of


class Inner(Stateful):
    _changing = ("rate",)

    def __init__(self) -> None:
        self.rate = 0.5


class Model(Stateful):
    _changing = ("w", "cuts", "count", "random", "inner", "best")
    _growing = ("cuts",)

    def __init__(self) -> None:
        self.w, self.cuts, self.count = np.zeros(2), np.zeros((0, 2)), 0
        self.random, self.inner, self.best = np.random.default_rng(0), Inner(), None

    def check_state(self) -> None:
        if len(self.cuts) != self.count:
            raise ValueError("as many cuts as are counted")


def trained() -> Model:
    model = Model()
    model.w[:], model.cuts, model.count = [1.0, 2.0], np.ones((3, 2)), 3
    model.inner.rate = 0.25
    model.random.random(7)
    return model


def test_a_state_goes_on_where_it_was():
    model, other = trained(), Model()
    other.restore(model.state())
    np.testing.assert_array_equal(other.w, model.w)
    np.testing.assert_array_equal(other.cuts, model.cuts)
    assert (other.count, other.inner.rate) == (3, 0.25)
    assert other.random.random() == model.random.random()
    model.w[0] = 9.0
    assert other.w[0] == 1.0, "a state is not shared"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros(3)}, "w should be of shape 2"),
        ({"w": np.zeros(2, np.float32)}, "w should be of float64"),
        ({"w": np.array([np.nan, 0.0])}, "w should have numbers"),
        ({"w": [0.0, 0.0]}, "w should be an array, but is a list"),
        ({"cuts": np.zeros(3)}, "cuts should be of shape any × any"),
        ({"cuts": np.zeros((2, 2))}, "as many cuts"),
        ({"count": 3.0}, "count should be a int"),
        ({"count": True}, "count should be a int"),
        ({"count": -2}, "count should be a int"),
        ({"inner": {"rate": "fast"}}, "rate should be a float"),
    ],
)
def test_a_value_of_another_kind_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Model().restore({**trained().state(), **change})


def test_arrays_have_limits():
    assert array_of(np.array([0.0, 1.0]), "p", (None,), low=0.0, high=1.0).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="p should have numbers from 0 to 1"):
        array_of(np.array([2.0]), "p", (None,), low=0.0, high=1.0)


def test_records_have_the_types_they_declare():
    @dataclass
    class Round:
        number: int
        gap: float

    assert record_of(Round, {"number": 3, "gap": 1}) == Round(3, 1)
    with pytest.raises(ValueError, match="number should be a int"):
        record_of(Round, {"number": "3", "gap": 1.0})
