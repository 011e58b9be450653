"""Choosing C: who takes part, who wins, and what Ctrl-C leaves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.errors import DataError
from didyma.learning.selection import HeldOut, fits, select_model
from didyma.model import Model
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.svm import SVMRanker


def judged(seed: int, n_lists: int = 12, n_rows: int = 6) -> Lists:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_lists * n_rows, 3))
    y = (X[:, 0] + 0.7 * random.normal(size=len(X)) > 0.5).astype(float)
    y[::n_rows], y[1::n_rows] = 1.0, 0.0
    return Lists(X, y, np.repeat(np.arange(n_lists), n_rows))


TRAIN, OTHERS = judged(0), judged(1)


def test_each_takes_part_and_the_best_value_wins() -> None:
    held_out = HeldOut(OTHERS, "AP")
    found = select_model(fits(ClassificationRanker(), TRAIN, [10.0, 0.001]), held_out)
    assert [candidate.ranker.C for candidate in found.candidates] == [0.001, 10.0]
    for candidate in found.candidates:
        ranker = ClassificationRanker(candidate.ranker.C).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
        assert candidate.value == ranker.score(OTHERS.X, OTHERS.y, qid=OTHERS.qid)
        assert candidate.summary()["dev"] == candidate.value
    assert found.best.value == max(candidate.value or 0 for candidate in found.candidates)
    assert not found.interrupted


@pytest.mark.parametrize("measure", ["AP", "nDCG@2", "ROCArea", "AP(rel=2)", "ERR@3", "Rprec"])
@pytest.mark.parametrize(("label", "other"), [(0.0, 2.0), (-1.0, 2.0), (3.0, 0.0)])
def test_lists_that_can_choose_nothing_are_refused(
    measure: str, label: float, other: float
) -> None:
    """In which every order has the same value, by any measure."""
    lists = replace(OTHERS, labels=np.full(len(OTHERS), label))
    with pytest.raises(DataError, match=r"^y: expected a query with .*cannot tell one model"):
        HeldOut(lists, measure)
    with pytest.warns(UserWarning, match="cannot tell one model from another"):
        HeldOut(lists, measure, chooses=False)
    lists.y[0] = other
    HeldOut(lists, measure)


def fitted(C: float, status: str = "converged", n_iter: int = 3) -> Any:
    return SimpleNamespace(C=C, result_=SimpleNamespace(status=status, n_iter=n_iter))


def test_of_equals_the_first_wins_and_without_a_judge_as_well() -> None:
    rankers = [fitted(1.0), fitted(2.0)]
    assert select_model(rankers, lambda ranker: 0.5).best.ranker is rankers[0]
    assert select_model(rankers).best.ranker is rankers[0]
    assert select_model(rankers).best.value is None


@pytest.mark.parametrize(("n_iter", "kept"), [(0, [1.0]), (2, [1.0, 2.0])])
def test_what_was_interrupted_takes_part_if_it_has_learned(n_iter: int, kept: list[float]) -> None:
    rankers = [fitted(1.0), fitted(2.0, "interrupted", n_iter), fitted(3.0)]
    found = select_model(iter(rankers))
    assert [candidate.ranker.C for candidate in found.candidates] == kept
    assert found.interrupted


def test_an_interruption_between_fits_keeps_those_before() -> None:
    def rankers() -> Any:
        yield fitted(1.0)
        raise KeyboardInterrupt

    found = select_model(rankers())
    assert len(found.candidates) == 1
    assert found.interrupted


@pytest.mark.parametrize("name", ["StandardScaler", "QueryMinMaxScaler"])
def test_a_model_is_what_was_trained_behind_what_scales(name: str) -> None:
    scaler = Model.scaler(name, TRAIN)
    scaled = scaler.transform(TRAIN)
    svm = SVMRanker(C=1.0).fit(scaled.X, scaled.y, qid=scaled.qid)
    TRAIN.features.remember(svm)
    model = Model.of(svm, {"note": 1}).behind(scaler)
    expected = svm.predict(scaler.transform(OTHERS).X)
    np.testing.assert_array_equal(model.predict(OTHERS), expected)
    assert model.summary["note"] == 1
    assert model.features == TRAIN.features


def test_columns_are_called_by_name_or_as_the_file_does() -> None:
    assert Columns(2, ("bm25", "age")).places(["age"]) == (1,)
    assert Columns(2, zero_based=True).places(iter("10")) == (1, 0)
    with pytest.raises(DataError, match="--categorical: there is no feature '3'"):
        Columns(2, zero_based=False).places(["3"], "--categorical")
