"""Columns of categories in data frames: nominal in additive rankers, refused by linear ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from didyma import AdditiveSVMRanker, ClassificationRanker, RidgeRanker, SVMRanker
from didyma.errors import DataError
from didyma.model import load

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(20), 6)
CODES = RNG.choice([10, 20, 30], 120)
X = np.column_stack([RNG.normal(size=120), CODES])
Y = ((CODES == 20) | (X[:, 0] > 1)).astype(float)

FRAMES = {
    "pandas": lambda codes: pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(codes)}),
    "ordered": lambda codes: pd.DataFrame(
        {"x": X[:, 0], "kind": pd.Categorical(codes, ordered=True)}
    ),
    "polars": lambda codes: pl.DataFrame(
        {"x": X[:, 0], "kind": pl.Series(codes.astype(str), dtype=pl.Categorical)}
    ),
    "enum": lambda codes: pl.DataFrame(
        {
            "x": X[:, 0],
            "kind": pl.Series(codes.astype(str), dtype=pl.Enum(["10", "20", "30", "40"])),
        }
    ),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_categories_are_nominal_by_themselves(make, tmp_path):
    frame = make(CODES)
    ranker = AdditiveSVMRanker(C=4.0, line="none").fit(frame, Y, qid=QID)
    named = AdditiveSVMRanker(C=4.0, line="none", categorical=[1]).fit(X, Y, qid=QID)
    assert ranker.nominal_.tolist() == [False, True]
    np.testing.assert_array_equal(ranker.coef_, named.coef_)
    ranker.save(tmp_path / "model.safetensors")
    unseen = make(np.full(120, 40))
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame), named.predict(X))
    steps = ranker.tables_[ranker.bins_.transform(X).bins[:, 0], 0]
    np.testing.assert_allclose(loaded.predict(unseen), steps)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("ranker", [SVMRanker(), RidgeRanker(), ClassificationRanker()])
def test_linear_rankers_refuse_them(ranker, make):
    with pytest.raises(DataError, match=r"column 'kind': .* use AdditiveSVMRanker, or encode"):
        ranker.fit(make(CODES), Y, qid=QID)
    ranker.fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="column 'kind'"):
        ranker.predict(make(CODES))


def test_texts_and_columns_that_were_numbers_are_refused():
    texts = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(np.where(CODES > 10, "a", "b"))})
    with pytest.raises(DataError, match="column 'kind': expected categories that are numbers"):
        AdditiveSVMRanker().fit(texts, Y, qid=QID)
    numbers = pd.DataFrame(X, columns=["x", "kind"])
    ranker = AdditiveSVMRanker(C=4.0).fit(numbers, Y, qid=QID)
    with pytest.raises(DataError, match="column 'kind': held numbers in training"):
        ranker.predict(FRAMES["pandas"](CODES))
    wide = FRAMES["pandas"](CODES).assign(other=pd.Categorical(CODES))
    nominal = AdditiveSVMRanker(C=4.0).fit(FRAMES["pandas"](CODES), Y, qid=QID)
    with pytest.raises(ValueError, match="feature names"):
        nominal.predict(wide)
