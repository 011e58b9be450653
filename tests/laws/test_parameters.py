"""A parameter that cannot be is refused by its name when an estimator is fitted."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from didyma import TextReranker
from didyma.errors import DataError
from didyma.parameters import RULES, check_parameter
from didyma.ranking import SVMRanker
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.ranker import Ranker
from tests.test_protocol import estimators

NETWORKS = ("alignment", "parsing", "passages") if find_spec("torch") is not None else ()
for package in map(import_module, [f"didyma.applications.{name}" for name in NETWORKS]):
    for name in package.__all__:
        getattr(package, name)  # which imports its module

OF_TEXT = [name for name in RULES if name in inspect.signature(TextReranker).parameters]
ESTIMATORS = [ScoreBinner, *(cls for cls in estimators() if cls.__name__[0] != "_")]
BAD = (object(), "nonsense", -3.5, float("nan"), {})
CASES = [
    pytest.param(cls, name, id=f"{cls.__name__}-{name}")
    for cls, name in product(ESTIMATORS, RULES)
    if hasattr(cls, "fit") and name in cls._get_param_names()
]
RANKERS = [cls for cls in ESTIMATORS if issubclass(cls, Ranker)]
# What says everything about itself elsewhere, or is read where it is used.
READ = {
    *("C", "bins", "bound", "categorical", "cost_ratio", "decreasing", "degree", "feature_map"),
    *("gamma", "grades", "increasing", "inference", "interactions", "line", "loss", "measure"),
    *("positions", "solver", "start", "strategy", "weights"),
}


@pytest.mark.parametrize(("cls", "name"), CASES)
def test_before_data_are_read(cls: Any, name: str) -> None:
    fit = inspect.signature(cls.fit).parameters.values()
    nothing = [None] * sum(p.default is p.empty and p.name != "self" for p in fit)
    for value in BAD:
        if RULES[name].holds(value):  # a number may be negative somewhere
            continue
        with pytest.raises(DataError) as caught:
            cls(**{name: value}).fit(*nothing)
        assert caught.value.field == name
    check_parameter(name, inspect.signature(cls).parameters[name].default)


@pytest.mark.parametrize("name", OF_TEXT)
def test_of_text_rerankers(name: str) -> None:
    for value in BAD:
        with pytest.raises(DataError) as caught:
            TextReranker(**{name: value}).fit(None)
        assert caught.value.field == name


@pytest.mark.parametrize("cls", RANKERS, ids=lambda cls: cls.__name__)
def test_those_of_rankers_that_have_no_rule(cls: Any) -> None:
    names = set(cls._get_param_names()) - RULES.keys()
    assert names <= READ
    for name, value in product(sorted(names), BAD):
        with pytest.raises(DataError) as caught:
            cls(**{name: value}).fit(None, None)
        assert caught.value.field == name, (name, value, str(caught.value))


HUGE = 10**400  # which no float can be


@pytest.mark.parametrize("name", sorted(RULES))
def test_numbers_that_are_too_large_are_refused_like_others(name: str) -> None:
    if RULES[name].holds(1.0) or RULES[name].holds(0.5):
        with pytest.raises(DataError, match=rf"^{name}: expected .*number.*, found 1000+$"):
            check_parameter(name, HUGE)


@pytest.mark.parametrize("cls", [cls for cls in RANKERS if "C" in cls._get_param_names()])
@pytest.mark.parametrize("C", [HUGE, True, False, np.True_])
def test_costs_are_numbers(cls: Any, C: Any) -> None:
    rows, grades = np.eye(4), np.array([1.0, 0.0, 0.0, 1.0])
    with pytest.raises(DataError, match=r"^C: expected a positive number from"):
        cls(C=C).fit(rows, grades, group=[2, 2])


@pytest.mark.parametrize("name", ["categorical", "decreasing", "increasing"])
def test_columns_can_be_read_twice(name: str) -> None:
    for columns in ([0], (), {"a"}, np.array([1]), pd.Index(["a"]), {"a": 1}.keys(), range(2)):
        check_parameter(name, columns)
    for columns in ((k for k in range(2)), iter([1]), map(str, [1]), "a", b"a", {"a": 1}):
        with pytest.raises(DataError, match=f"^{name}: expected a list of columns"):
            check_parameter(name, columns)


def test_a_choice_is_made_before_data_are_read() -> None:
    for value in BAD:
        with pytest.raises(DataError, match=r"^strategy: expected one of 'quantile', 'even'"):
            ScoreBinner(strategy=value).fit(None)  # type: ignore[arg-type]
        with pytest.raises(DataError, match=r"^features: expected one of 'auto', 'small'"):
            TextReranker(features=value).fit(None)  # type: ignore[arg-type]


def test_a_choice_may_come_from_an_array() -> None:
    for strategy, solver in zip(np.array(["even", "unit"]), np.array(["bcfw", "bundle"])):
        SVMRanker(solver=solver).fit(np.eye(4), np.array([1.0, 0.0, 0.0, 1.0]))
        ScoreBinner(strategy=strategy).fit(np.eye(4))


def test_a_parameter_of_a_subclass_is_its_own() -> None:
    @dataclass(eq=False, repr=False)
    class Windowed(SVMRanker):
        window: str = "hann"

    rows, grades = np.eye(4), np.array([1.0, 0.0, 0.0, 1.0])
    Windowed().fit(rows, grades)
    with pytest.raises(DataError, match="tol: expected a number from 0 on"):
        Windowed(tol=-1.0).fit(rows, grades)


def test_each_rule_is_of_a_parameter() -> None:
    known = {name for cls in ESTIMATORS for name in cls._get_param_names()}
    known |= inspect.signature(TextReranker).parameters.keys()
    assert RULES.keys() - known == set() or not NETWORKS
    assert len(RANKERS) >= 7
    assert SVMRanker in RANKERS
