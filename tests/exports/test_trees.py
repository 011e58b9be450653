"""Trees: thresholds in single precision, and the libraries that load them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.exports.description import describe_ranker
from didyma.exports.export import engine_of, export
from didyma.exports.parity import probe_rows
from didyma.exports.trees import at_most, first_above
from tests.exports import models

single = st.floats(width=32, allow_nan=False, allow_infinity=False)
thresholds = st.one_of(
    st.floats(allow_nan=False), single, single.map(lambda x: np.nextafter(float(x), -np.inf))
)


@given(threshold=thresholds, x=single)
def test_single_precision_knows_on_which_side_a_number_is(threshold: float, x: float) -> None:
    largest = float(np.finfo(np.float32).max)
    below = x <= threshold
    if threshold >= -largest:
        assert (x <= at_most(threshold)) == below
    if -largest <= threshold < largest and x < largest:
        assert (x < first_above(threshold)) == below


@pytest.mark.parametrize("seed", range(3))
def test_lightgbm_itself(tmp_path: Path, seed: int) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    model = models.additive(np.random.default_rng(seed))
    export(model, tmp_path / "model.txt", "lightgbm")
    rows = probe_rows(describe_ranker(model), engine_of("json"), missing=True)
    found = lightgbm.Booster(model_file=tmp_path / "model.txt").predict(rows.X)
    np.testing.assert_allclose(found, model.predict(rows), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_xgboost_itself(tmp_path: Path, seed: int) -> None:
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    model = models.additive(np.random.default_rng(seed))
    export(model, tmp_path / "model.json", "xgboost")
    description = describe_ranker(model)
    rows = probe_rows(description, engine_of("xgboost"), missing=True)
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    names = booster.feature_names
    found = booster.predict(xgboost.DMatrix(rows.X, feature_names=names), output_margin=True)
    allowed = 1e-5 * description.magnitude(rows.X)
    assert np.all(np.abs(found - model.predict(rows)) <= allowed)
