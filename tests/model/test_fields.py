"""Values of parameters as the texts that users type, and what no file can keep."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
)

from didyma import model
from didyma.errors import DataError
from didyma.metrics.measures import Measure, ROCArea, parse
from didyma.model.fields import plain
from didyma.ranking.feature_maps import (
    FeatureMap,
    Pairwise,
    Positional,
    TopMean,
    Truncated,
    parse_feature_map,
)
from didyma.ranking.latent import LatentPerceptronRanker
from didyma.ranking.losses import (
    NDCG,
    AveragePrecision,
    ItemwiseLoss,
    PrecisionAt,
    ReciprocalRank,
    RocArea,
    StepLoss,
    parse_loss,
)
from didyma.ranking.svm import SVMRanker
from tests.model.rankers import QID, X, Y

# What is learned from a few random rows does not matter here, only that it is kept.
pytestmark = pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")


def test_values_are_saved_as_the_texts_that_users_type(path: Path) -> None:
    ranker = SVMRanker(
        AveragePrecision(rel=2), feature_map=Positional("discount"), callback=lambda _: False
    )
    ranker.fit(X, 2 * Y, qid=QID).save(path)
    found = model.describe(path)
    assert found["parameters"]["loss"] == "ap(rel=2)"
    assert found["parameters"]["feature_map"] == "positional:discount"
    assert found["summary"]["gap"] == ranker.result_.gap
    loaded = SVMRanker.load(path)
    assert loaded.callback is None
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()
    again = loaded.fit(X, 2 * Y, qid=QID)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)


def losses() -> st.SearchStrategy[ItemwiseLoss]:
    rel = st.floats(allow_nan=False, allow_infinity=False)
    k = st.integers(1, 10**6)
    return st.one_of(
        *(st.builds(cls, rel=rel) for cls in (AveragePrecision, ReciprocalRank, RocArea)),
        st.builds(PrecisionAt, rel=rel, k=k),
        st.builds(NDCG, rel=rel, k=st.none() | k, gain=st.sampled_from(["exponential", "linear"])),
    )


def feature_maps() -> st.SearchStrategy[FeatureMap]:
    numbers = st.lists(st.floats(-1e9, 1e9), min_size=1)
    weights = st.sampled_from(["reciprocal", "discount"]) | numbers.map(
        lambda values: tuple(sorted(values, reverse=True))
    )
    return st.one_of(
        st.just(Pairwise()),
        st.builds(Positional, weights),
        st.builds(Truncated, weights),
        st.builds(TopMean, st.integers(1, 10**6)),
    )


def measures() -> st.SearchStrategy[Measure]:
    cutoff, rel = st.integers(1, 1000), st.integers(1, 9)
    gains = st.dictionaries(st.integers(0, 5), st.integers(0, 40), min_size=1)
    return st.one_of(
        st.sampled_from([ir_measures.AP, ir_measures.RR, ir_measures.Bpref, ROCArea]),
        st.builds(lambda k, r: ir_measures.P(rel=r) @ k, cutoff, rel),
        st.builds(lambda r: ROCArea(rel=r), rel),
        st.builds(lambda k: ir_measures.nDCG(dcg="exp-log2") @ k, cutoff),
        st.builds(lambda k, g: ir_measures.nDCG(gains=g) @ k, cutoff, gains),
    )


@given(losses())
def test_the_text_of_a_loss_restores_it(loss: ItemwiseLoss) -> None:
    assert parse_loss(str(loss)) == loss
    assert parse_loss(str(loss).upper().replace(",", " , ")) == loss
    assert str(parse_loss(str(loss))) == str(loss)
    assert plain(loss) == str(loss)


@given(feature_maps())
def test_the_text_of_a_feature_map_restores_it(feature_map: FeatureMap) -> None:
    assert parse_feature_map(str(feature_map)) == feature_map
    assert str(parse_feature_map(str(feature_map))) == str(feature_map)
    assert plain(feature_map) == str(feature_map)


@given(measures())
def test_the_text_of_a_measure_restores_it(measure: Measure) -> None:
    assert parse(str(measure)) == measure
    assert plain(measure) == str(measure)


# One of each value that a parameter can have.
VALUES: list[dict[str, Any]] = [
    *({"loss": loss} for loss in (AveragePrecision(2), ReciprocalRank(), RocArea(rel=0.25))),
    # Of one-slack, least is compiled for each loss and feature map.
    *(
        {"solver": "one-slack", "loss": loss}
        for loss in (NDCG(k=2, gain="linear", rel=2), PrecisionAt(k=3, rel=2))
    ),
    {"solver": "one-slack", "feature_map": Truncated("discount")},
    {"solver": "one-slack", "feature_map": Positional([0.1 + 0.2, 0.1, 1e-9])},
    {"solver": "one-slack", "feature_map": TopMean(3), "loss": "precision@3"},
    *({"solver": solver} for solver in ("bcfw", "one-slack", "n-slack", "bundle")),
    {"measure": ir_measures.nDCG(dcg="exp-log2") @ 3},
    {"measure": ROCArea(rel=2)},
    {"measure": "P(rel=2)@1", "patience": 3, "C": np.float64(0.1), "tol": 1e-2},
]


@pytest.mark.parametrize("parameters", VALUES, ids=str)
def test_a_loaded_model_is_fitted_again_to_the_same_weights(
    path: Path, parameters: dict[str, Any]
) -> None:
    judged = (X, 2 * Y)
    ranker = SVMRanker(**{"C": 1.0, **parameters})
    ranker.fit(*judged, qid=QID, eval_set=judged, eval_qid=QID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.save(path)
    loaded = SVMRanker.load(path)
    before, after = ranker.get_params(), loaded.get_params()
    for key, read in {
        "loss": parse_loss,
        "feature_map": parse_feature_map,
        "measure": lambda measure: None if measure is None else parse(measure),
    }.items():
        assert read(after.pop(key)) == read(before.pop(key))
    assert after == before
    again = loaded.fit(*judged, qid=QID, eval_set=judged, eval_qid=QID)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)


def test_weights_in_an_array_come_back(path: Path) -> None:
    ranker = LatentPerceptronRanker(weights=np.array([1.0, 0.25]), epochs=3).fit(X, Y, qid=QID)
    ranker.save(path)
    loaded = LatentPerceptronRanker.load(path)
    assert loaded.weights == (1.0, 0.25)
    np.testing.assert_array_equal(loaded.fit(X, Y, qid=QID).coef_, ranker.coef_)


def last_negatives(i: int, j: int, P: int, N: int) -> float:
    return j / N if i == P - 1 else 0.0


class OwnPrecision(AveragePrecision):
    """A loss of a user."""


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("loss", StepLoss(positive=last_negatives), "a StepLoss"),
        ("loss", OwnPrecision(), "a OwnPrecision"),
        ("random_state", np.random.RandomState(0), "a RandomState"),
    ],
    ids=["steps", "subclass", "random"],
)
def test_what_a_file_cannot_keep_is_said_at_saving_and_at_fitting(
    path: Path, name: str, value: Any, what: str
) -> None:
    ranker = SVMRanker(C=1.0, **{name: value}).fit(X, Y, qid=QID)
    with pytest.warns(UserWarning, match=rf"cannot keep SVMRanker\.{name} \({what}\)"):
        ranker.save(path)
    assert model.describe(path)["lost"] == {name: what}
    loaded = SVMRanker.load(path)
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()
    for fit in (loaded.fit, clone(loaded).fit, lambda *rows, **q: loaded.path(*rows, [1.0], **q)):
        with pytest.raises(DataError, match=rf"{name}: was {what}.*set_params\({name}=…\)"):
            fit(X, Y, qid=QID)
    with pytest.warns(UserWarning, match=rf"{name} \({what}\)"):
        loaded.save(path)
    assert model.describe(path)["lost"] == {name: what}
    again = loaded.set_params(**{name: value}).fit(X, Y, qid=QID)
    if name == "loss":
        np.testing.assert_array_equal(again.coef_, ranker.coef_)


def test_what_is_lost_inside_a_pipeline_is_said_too(path: Path) -> None:
    ranker = SVMRanker(StepLoss(positive=last_negatives), C=1.0)
    pipeline = Pipeline([("scale", MinMaxScaler()), ("rank", ranker)], verbose=True)
    with config_context(enable_metadata_routing=True):
        pipeline.fit(X, Y, qid=QID)
    with pytest.warns(UserWarning, match=r"SVMRanker\.loss"):
        model.save(pipeline, path)
    loaded = model.load(path)
    assert loaded.verbose is True
    assert loaded.predict(X).tobytes() == pipeline.predict(X).tobytes()
