"""Exported trees score rows as the ranker does: by their own reading, and by the libraries'."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.estimators.additive import AdditiveSVMRanker
from didyma.estimators.trees import export, to_lightgbm, to_xgboost

RNG = np.random.default_rng(8)
QID = np.repeat(np.arange(30), 8)
X = RNG.normal(size=(240, 5)).astype(np.float32)
X[:, 3] = RNG.integers(5, size=240)
X[RNG.random(240) < 0.2, 1] = np.nan
HIDDEN = X[:, 0] * X[:, 2] + np.abs(np.nan_to_num(X[:, 1], nan=2.0)) + np.isin(X[:, 3], [1, 4])
Y = (HIDDEN.reshape(-1, 8) >= np.sort(HIDDEN.reshape(-1, 8))[:, [-3]]).astype(float).ravel()


@pytest.fixture(scope="module")
def ranker() -> AdditiveSVMRanker:
    return AdditiveSVMRanker(bins=12, categorical=[3], interactions=3, tol=1e-2).fit(X, Y, qid=QID)


@pytest.fixture(scope="module")
def rows(ranker: AdditiveSVMRanker) -> NDArray[np.float32]:
    """New rows: at edges, beside them, missing, and of strange categories."""
    edges = ranker.edges_[np.isfinite(ranker.edges_)].astype(np.float32)
    near = np.concatenate([edges, np.nextafter(edges, np.float32(9)), [np.nan, -1e30, 1e30, 2.5]])
    near = near[~(np.abs(near) < 1e-30) | (near == 0)]  # which LightGBM takes for 0
    return RNG.choice(near, size=(500, 5)).astype(np.float32)


def read_lightgbm(text: str, row: NDArray[Any]) -> float:
    """Score of a row by the rules of LightGBM's text format, for missing values that are NaN."""
    total = 0.0
    for block in text.partition("end of trees")[0].split("Tree=")[1:]:
        tree = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
        columns = {name: value.split() for name, value in tree.items()}
        node = 0
        while node >= 0:
            x = float(row[int(columns["split_feature"][node])])
            decision = int(columns["decision_type"][node])
            assert decision & 12 == 8
            left = bool(decision & 2) if math.isnan(x) else x <= float(columns["threshold"][node])
            node = int(columns["left_child" if left else "right_child"][node])
        total += float(columns["leaf_value"][-node - 1])
    return total


def read_xgboost(text: str, row: NDArray[Any]) -> float:
    """Score of a row by the rules of XGBoost's JSON format."""
    total = 0.0
    for tree in json.loads(text)["learner"]["gradient_booster"]["model"]["trees"]:
        node = 0
        while (low := tree["left_children"][node]) >= 0:
            x = row[tree["split_indices"][node]]
            below = x < np.float32(tree["split_conditions"][node])
            left = tree["default_left"][node] if np.isnan(x) else below
            assert tree["right_children"][node] == low + 1  # as XGBoost takes for granted
            node = low + (not left)
        total += tree["split_conditions"][node]
    return total


@pytest.mark.parametrize(
    ("write", "read"), [(to_lightgbm, read_lightgbm), (to_xgboost, read_xgboost)]
)
def test_trees_score_rows_as_the_ranker_does(
    ranker: AdditiveSVMRanker, rows: NDArray[Any], write: Any, read: Any
) -> None:
    text = write(ranker)
    assert len(ranker.pairs_) == 3
    for own in (X, rows):
        found = [read(text, row) for row in own]
        np.testing.assert_allclose(found, ranker.predict(own), atol=1e-9)


def test_lightgbm_itself(ranker: AdditiveSVMRanker, rows: NDArray[Any], tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    export(ranker, tmp_path / "model.txt", "lightgbm")
    model = lightgbm.Booster(model_file=tmp_path / "model.txt")
    for own in (X, rows):
        np.testing.assert_allclose(model.predict(own), ranker.predict(own), atol=1e-9)


def test_xgboost_itself(ranker: AdditiveSVMRanker, rows: NDArray[Any], tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    export(ranker, tmp_path / "model.json", "xgboost")
    model = xgboost.Booster(model_file=tmp_path / "model.json")
    for own in (X, rows):
        found = model.predict(xgboost.DMatrix(own), output_margin=True)
        np.testing.assert_allclose(found, ranker.predict(own), atol=1e-4)


def test_a_flat_ranker_is_a_tree_too(ranker: AdditiveSVMRanker) -> None:
    flat = AdditiveSVMRanker(bins=4).fit(X, Y, qid=QID)
    flat.coef_ = np.zeros_like(flat.coef_)
    assert read_lightgbm(to_lightgbm(flat), X[0]) == 0.0
    assert read_xgboost(to_xgboost(flat), X[0]) == 0.0
    with pytest.raises(DataError, match="format"):
        export(ranker, "model.onnx", "onnx")
