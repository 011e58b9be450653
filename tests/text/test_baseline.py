"""What a reranker is compared with, held-out scores, and a search that is ended early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma
from didyma import DataError, TextReranker
from didyma.metrics import evaluate
from didyma.ranking.svm import SVMRanker
from didyma.text.selection import Progress
from tests.text.texts import made


@pytest.mark.parametrize("scores", [False, True])
def test_figures_of_the_gate_can_be_made_again(scores: bool, tmp_path: Path) -> None:
    lists = made(30, scores=scores)
    reranker = TextReranker(quick=True).fit(lists)
    gate = reranker.gate_
    assert not reranker.interrupted_
    reranker.save(tmp_path / "model")
    for own in (reranker, didyma.load(tmp_path / "model")):
        name, before = own.baseline(lists)
        assert name == gate.baseline
        assert evaluate(before, lists.y, lists.groups).mean("AP") == gate.baseline_value
    held_out = evaluate(reranker.out_of_fold_, lists.y, lists.groups).mean("AP")
    assert held_out == pytest.approx(gate.value)
    assert gate.baseline_value == max(order.value for order in gate.opponents)
    if scores:
        with pytest.raises(DataError, match="first stage's scores"):
            reranker.predict(made(3))


@pytest.mark.parametrize("after", [1, 2])
def test_ctrl_c_keeps_the_best_so_far(after: int) -> None:
    tried: list[Progress] = []

    def interrupt(step: Progress) -> None:
        tried.append(step)
        if len(tried) == after:
            raise KeyboardInterrupt

    lists = made(12)
    reranker = TextReranker(callback=interrupt).fit(lists)
    assert reranker.interrupted_
    assert len({trial["rung"] for trial in reranker.trials_}) == after
    assert np.isfinite(reranker.predict(lists)).all()


def test_ctrl_c_before_there_is_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("didyma.text.candidates.SVMRanker.path", stop)
    with pytest.raises(KeyboardInterrupt):
        TextReranker(quick=True).fit(made(8))


def test_ctrl_c_within_a_fit_is_not_taken_for_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that was interrupted returns what it has: the search must not go on with that."""
    whole = SVMRanker.path

    def interrupted(self: SVMRanker, *arguments: Any) -> list[SVMRanker]:
        found = whole(self, *arguments)
        found[-1].result_ = replace(found[-1].result_, status="interrupted")
        return found

    monkeypatch.setattr(SVMRanker, "path", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TextReranker(quick=True).fit(made(8))


def test_sets_of_features(tmp_path: Path) -> None:
    lists = made(12)
    for features, wanted in (("small", "small set"), ("extended", "extended set")):
        reranker = TextReranker(features=features).fit(lists)
        assert all(trial["rung"].startswith(wanted) for trial in reranker.trials_)
        reranker.save(tmp_path / "model")
        assert didyma.load(tmp_path / "model").features == features
    assert {trial["rung"].split()[0] for trial in TextReranker().fit(lists).trials_} > {"small"}
    with pytest.raises(DataError, match="features: expected one of auto, small, extended"):
        TextReranker(features="large").fit(lists)
