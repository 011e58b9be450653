"""Model files: what is written is what is read, and damage never goes unnoticed."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)

import didyma
from didyma import model
from didyma.errors import DataError, ModelFileError
from didyma.metrics.measures import Measure, ROCArea, parse
from didyma.model import Saved
from didyma.model.container import checksum
from didyma.model.plain import text_of
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker, baseline
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
from didyma.ranking.ranker import LinearRanker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler, QueryStandardScaler
from didyma.ranking.svm import SVMRanker

# What is learned from a few random rows does not matter here, only that it is kept.
pytestmark = pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = (RNG.random(40) < 0.4) * 1
QID = np.repeat(["a", "b", "c", "d"], 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ranker.safetensors"


@pytest.fixture
def saved(path: Path) -> bytes:
    ClassificationRanker(C=2.5).fit(X, Y, qid=QID).save(path)
    return path.read_bytes()


def header(contents: bytes) -> dict[str, Any]:
    return json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])


def rewrite(path: Path, **texts: str) -> None:
    """Change metadata, and put the checksum right, as a newer or hostile writer would."""
    arrays = load_file(path)
    metadata = {**header(path.read_bytes())["__metadata__"], **texts}
    del metadata["checksum"]
    metadata["checksum"] = checksum(metadata, arrays)
    save_file(arrays, path, metadata)


@pytest.mark.parametrize("name", ["C", "cost_ratio"])
def test_a_ranker_comes_back_bit_by_bit(path: Path, name: str) -> None:
    ranker = ClassificationRanker(**{name: 0.1 + 0.2}).fit(X, Y, qid=QID)
    ranker.save(path)
    loaded = ClassificationRanker.load(path)
    assert type(loaded) is ClassificationRanker
    assert loaded.get_params() == ranker.get_params()
    assert (loaded.n_features_in_, loaded.n_queries_) == (3, 4)
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()
    with pytest.raises(ValueError, match="expecting 3 features"):
        loaded.predict(X[:, :2])


def test_feature_names_come_back(path: Path) -> None:
    table = pd.DataFrame(X, columns=["bm25", "längd", "age"])
    ClassificationRanker().fit(table, Y, qid=QID).save(path)
    loaded = model.load(path)
    assert loaded.feature_names_in_.tolist() == ["bm25", "längd", "age"]
    loaded.predict(table)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(table[["age", "bm25", "längd"]])


def pipelines() -> list[Pipeline]:
    ranker = ClassificationRanker()
    return [
        baseline("acc3"),
        baseline("acc4"),
        make_pipeline(QueryStandardScaler(), SVMRanker()),
        make_pipeline(StandardScaler(), ScoreBinner(5), ranker),
        make_pipeline(StandardScaler(with_mean=False), ranker),
        make_pipeline(StandardScaler(with_std=False), ranker),
        make_pipeline(MinMaxScaler((-1, 2), clip=True), ranker),
        make_pipeline(MaxAbsScaler(), make_pipeline(ScoreBinner(3), ranker)),
        Pipeline([("scale it", MinMaxScaler()), ("rank it", ranker)]),
    ]


@pytest.mark.parametrize("pipeline", pipelines(), ids=lambda p: "-".join(p.named_steps))
def test_a_pipeline_comes_back_bit_by_bit(path: Path, pipeline: Pipeline) -> None:
    new = X * 2 + 1
    with config_context(enable_metadata_routing=True):
        pipeline.fit(X, Y, qid=QID)
        model.save(pipeline, path)
        loaded = model.load(path)
        queries = {"qid": QID} if type(pipeline[0]).__module__.startswith("didyma") else {}
        expected = pipeline.predict(new, **queries)
        assert loaded.predict(new, **queries).tobytes() == expected.tobytes()
        assert loaded.score(new, Y, qid=QID) == pipeline.score(new, Y, qid=QID)
    assert list(loaded.named_steps) == list(pipeline.named_steps)


def test_parameters_of_older_files_have_their_new_names(path: Path, saved: bytes) -> None:
    record = json.loads(header(saved)["__metadata__"]["model"])
    del record["parameters"]["random_state"]
    record["parameters"]["seed"] = 7
    rewrite(path, model=json.dumps(record))
    assert model.load(path).random_state == 7


def test_description(path: Path, saved: bytes) -> None:
    ranker = ClassificationRanker(C=2.5).fit(X, Y, qid=QID)
    found = model.describe(path)
    assert found["format_version"] == 2
    assert found["library_version"] == didyma.__version__
    assert found["class"] == "ClassificationRanker"
    assert found["parameters"]["C"] == 2.5
    assert found["n_features"] == 3
    assert found["feature_names"] is None
    assert found["tensors"] == {"coef_": {"dtype": "float64", "shape": [3]}}
    assert found["summary"] == {
        "n_queries": 4,
        "value": ranker.result_.value,
        "converged": True,
        "n_iter": ranker.result_.n_iter,
    }
    json.dumps(found)


def test_description_of_a_pipeline(path: Path) -> None:
    pipeline = make_pipeline(MinMaxScaler(), ClassificationRanker()).fit(X, Y)
    model.save(pipeline, path, summary={"data": "train.letor"})
    found = model.describe(path)
    assert found["class"] == "Pipeline"
    assert [name for name, _ in found["steps"]] == ["minmaxscaler", "classificationranker"]
    assert found["steps"][0][1]["parameters"]["feature_range"] == [0, 1]
    assert found["tensors"]["1/coef_"]["shape"] == [3]
    assert found["summary"]["converged"] is True
    assert found["summary"]["data"] == "train.letor"


def test_summaries_keep_what_is_plain(path: Path) -> None:
    @dataclass
    class Result:
        value: Any
        seconds: Any
        trace: Any

    ranker = ClassificationRanker().fit(X, Y)
    ranker.result_ = Result(np.float64(1.5), {"total": 2.0}, np.zeros(3))
    ranker.save(path)
    assert model.describe(path)["summary"] == {"n_queries": 1, "value": 1.5}


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
    assert text_of(loss) == str(loss)


@given(feature_maps())
def test_the_text_of_a_feature_map_restores_it(feature_map: FeatureMap) -> None:
    assert parse_feature_map(str(feature_map)) == feature_map
    assert str(parse_feature_map(str(feature_map))) == str(feature_map)
    assert text_of(feature_map) == str(feature_map)


@given(measures())
def test_the_text_of_a_measure_restores_it(measure: Measure) -> None:
    assert parse(str(measure)) == measure
    assert text_of(measure) == str(measure)


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
        "measure": parse,
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


def test_nothing_is_pickled(saved: bytes) -> None:
    assert int.from_bytes(saved[:8], "little") < len(saved)
    assert set(header(saved)) == {"__metadata__", "coef_"}
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(saved)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(), "a LogisticRegression cannot be saved"),
        (make_pipeline(PolynomialFeatures(), ClassificationRanker()), "a PolynomialFeatures"),
        (make_pipeline("passthrough", ClassificationRanker()), "a str cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named(path: Path, estimator: Any, message: str) -> None:
    estimator.fit(X, Y)
    path.write_text("precious")
    with pytest.raises(DataError, match=message):
        model.save(estimator, path)
    assert path.read_text() == "precious"
    assert list(path.parent.iterdir()) == [path]


def test_what_could_not_be_read_again_is_not_written(path: Path) -> None:
    ranker = ClassificationRanker(C=1.0).fit(X, Y).set_params(max_iter=10.5)
    with pytest.raises(DataError, match=r"ClassificationRanker\.max_iter should be a whole number"):
        ranker.save(path)
    assert not path.exists()


def test_a_scaler_of_rows_with_missing_values_comes_back(path: Path) -> None:
    rows = X.copy()
    rows[0, 0] = np.nan
    scaler = StandardScaler().fit(rows)
    assert scaler.n_samples_seen_.tolist() == [39, 40, 40]
    pipeline = Pipeline([("scale", scaler), ("rank", ClassificationRanker().fit(X, Y))])
    model.save(pipeline, path)
    assert model.load(path)[0].n_samples_seen_.tolist() == [39, 40, 40]


def test_a_namesake_is_not_saved(path: Path) -> None:
    class ClassificationRanker(LinearRanker):
        def _fit(self, train: Any, evaluation: Any) -> None:
            self.coef_ = np.ones(train.X.shape[1])

    with pytest.raises(DataError, match="cannot be saved"):
        ClassificationRanker().fit(X, Y).save(path)


def test_an_unfitted_model_is_not_saved(path: Path) -> None:
    with pytest.raises(NotFittedError):
        ClassificationRanker().save(path)
    assert not path.exists()


def refuses(path: Path, message: str) -> None:
    for read in (model.load, model.describe, ClassificationRanker.load):
        with pytest.raises(ModelFileError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")


def test_truncated_files(path: Path, saved: bytes) -> None:
    for length in [*range(0, len(saved), 50), len(saved) - 1]:
        path.write_bytes(saved[:length])
        refuses(path, "damaged, or not a model file")
    path.write_bytes(saved + b"\0")
    refuses(path, "damaged, or not a model file")


def test_every_flipped_byte_is_noticed_or_harmless(path: Path, saved: bytes) -> None:
    expected = model.load(path)
    noticed = 0
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            loaded = model.load(path)
        except ModelFileError:
            noticed += 1
        else:
            assert loaded.get_params() == expected.get_params()
            assert loaded.predict(X).tobytes() == expected.predict(X).tobytes()
    assert noticed > 0.95 * len(saved)


def test_random_bytes(path: Path) -> None:
    for size in (1, 8, 9, 100, 5000):
        path.write_bytes(RNG.bytes(size))
        refuses(path, "damaged, or not a model file")
    path.write_text("1 qid:1 1:0.5 2:0.1 # a LETOR file\n" * 100)
    refuses(path, "damaged, or not a model file")
    path.write_bytes(pickle.dumps({"coef_": [1.0]}))
    refuses(path, "damaged, or not a model file")


def test_missing_file_and_folder(path: Path) -> None:
    refuses(path, "no such file")
    path.mkdir()
    refuses(path, "found a folder")


def test_foreign_safetensors(path: Path) -> None:
    save_file({"coef_": np.ones(3)}, path)
    refuses(path, "not a model of this library")
    save_file({"coef_": np.ones(3)}, path, {"format": "pt"})
    refuses(path, "not a model of this library")
    save_file({"coef_": np.ones(3)}, path, {"format": "didyma", "format_version": "1"})
    refuses(path, "checksum")


def test_a_file_of_the_first_format_is_read(path: Path, saved: bytes) -> None:
    before = model.load(path).predict(X)
    rewrite(path, format_version="1", library_version="0.2.0")
    assert model.describe(path)["format_version"] == 1
    np.testing.assert_array_equal(model.load(path).predict(X), before)


def test_what_reads_only_the_first_format_asks_for_an_upgrade(
    path: Path, saved: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("didyma.model.container.FORMAT_VERSION", 1)
    refuses(path, "in format 2, but this is didyma .*, which reads format 1: upgrade to load it")


def test_newer_format(path: Path, saved: bytes) -> None:
    rewrite(path, format_version="3", library_version="9.0", model="{}")
    refuses(path, "written by didyma 9.0 in format 3.*upgrade")
    rewrite(path, format_version="one")
    refuses(path, "format version is 'one'")
    for hostile in ("9" * 10_000, "٢", "1" + 19 * "0"):
        rewrite(path, format_version=hostile)
        refuses(path, "format version is '.{1,20}'$")


def test_hostile_records(path: Path, saved: bytes) -> None:
    record = json.loads(header(saved)["__metadata__"]["model"])
    for change, message in (
        ({"class": "Popen"}, "Popen"),
        ({"class": "os.system"}, "os.system"),
        ({"class": ["SVMRanker"]}, "cannot be restored"),
        ({"parameters": {"shell": True}}, "shell"),
        ({"attributes": {"n_queries_": 1}}, "intercept_"),
        (
            {"attributes": {**record["attributes"], "loss_": 1}},
            r"ClassificationRanker has no loss_",
        ),
        ({"attributes": {**record["attributes"], "intercept_": "0"}}, "intercept_ should be a num"),
        ({"attributes": {**record["attributes"], "intercept_": np.inf}}, "a finite number"),
        (
            {"attributes": {**record["attributes"], "n_queries_": -1}},
            "n_queries_ should be a count",
        ),
        (
            {"parameters": {"C": "much"}},
            r"ClassificationRanker\.C should be a number, but is 'much'",
        ),
        ({"parameters": {"max_iter": 1.5}}, "max_iter should be a whole number"),
        ({"hooks": {}}, "has no hooks"),
        ({"arrays": {"coef_": []}, "parts": {"coef_": record}}, "cannot be restored"),
        ({"n_features": 4}, r"coef_ should be 4, but is 3"),
        ({"n_features": True}, "expected a number of features"),
        ({"feature_names": ["a", "b"]}, "expected names of 3 features"),
        ({"class": "Pipeline"}, "steps"),
        ({"class": "Pipeline", "steps": [["only"]]}, "cannot be restored"),
    ):
        rewrite(path, model=json.dumps({**record, **change}))
        with pytest.raises(ModelFileError, match=message):
            model.load(path)
    arrays = {**load_file(path), "bias": np.ones(1)}
    texts = header(saved)["__metadata__"]
    del texts["checksum"]
    save_file(arrays, path, {**texts, "checksum": checksum(texts, arrays)})
    refuses(path, r"ClassificationRanker has no bias")
    for text in ("", "[]", "null", "{", '"model"'):
        rewrite(path, model=text)
        refuses(path, "cannot be restored")


def test_a_file_of_another_class(path: Path) -> None:
    pipeline = make_pipeline(MinMaxScaler(), ClassificationRanker()).fit(X, Y)
    model.save(pipeline, path)
    with pytest.raises(ModelFileError, match="holds a Pipeline, not a ClassificationRanker"):
        ClassificationRanker.load(path)


def test_any_ranker_loads_through_its_base(path: Path, saved: bytes) -> None:
    assert isinstance(LinearRanker.load(path), ClassificationRanker)


class Composed(BaseEstimator):
    """Learns a ranker, a family of arrays and some words."""

    ranker_: Annotated[SVMRanker, Saved()]
    weights_: Annotated[dict[str, NDArray[Any]], Saved()]
    words_: Annotated[list[str], Saved()]

    def fit(self, X, y, qid):
        self.ranker_ = SVMRanker().fit(X, y, qid=qid)
        self.weights_ = {"layer.0": np.arange(6.0).reshape(2, 3), "bias": np.ones(2, np.float32)}
        self.words_ = ["a", "b"]
        return self


def test_models_inside_models_and_families_of_arrays(monkeypatch, path):
    monkeypatch.setitem(model.CLASSES, "Composed", __name__)
    whole = Composed().fit(X, Y, QID)
    model.save(whole, path)
    restored = model.load(path)
    np.testing.assert_array_equal(restored.ranker_.predict(X), whole.ranker_.predict(X))
    assert list(restored.weights_) == list(whole.weights_)
    for name, array in whole.weights_.items():
        np.testing.assert_array_equal(restored.weights_[name], array)
        assert restored.weights_[name].dtype == array.dtype
    assert restored.words_ == whole.words_
    assert model.describe(path)["parts"]["ranker_"]["class"] == "SVMRanker"


RANKERS = [
    ClassificationRanker(C=2.5),
    LatentPerceptronRanker(epochs=3),
    PolynomialRanker(degree=3),
    SVMRanker(C=1.0),
]
SCALERS = [
    None,
    MaxAbsScaler(),
    MinMaxScaler((-1, 2), clip=True),
    QueryMinMaxScaler(),
    QueryPercentileScaler(),
    QueryStandardScaler(),
    ScoreBinner(5),
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_the_plain_model_scores_as_its_estimator_does(path: Path, ranker: Any, scaler: Any) -> None:
    in_query = type(scaler).__name__.startswith("Query")
    with config_context(enable_metadata_routing=True):
        face = clone(ranker) if scaler is None else make_pipeline(clone(scaler), clone(ranker))
        face.fit(X, Y, qid=QID)
        model.save(face, path)
        data = didyma.Lists(X * 2 + 1, Y * 1.0, QID)
        expected = face.predict(data.X, **({"qid": QID} if in_query else {}))
    found = model.Model.read(path)
    assert found.predict(data).tobytes() == expected.tobytes()
    assert found.features == didyma.data.columns.Columns(3)


@pytest.mark.parametrize("scaler", [MaxAbsScaler(), StandardScaler(with_mean=False)], ids=str)
def test_the_plain_model_scores_sparse_rows_too(path: Path, scaler: Any) -> None:
    sparse = csr_array(np.where(X > 0, X, 0))
    face = make_pipeline(scaler, ClassificationRanker()).fit(sparse, Y)
    model.save(face, path)
    data = didyma.Lists(sparse, Y * 1.0, QID)
    assert model.Model.read(path).predict(data).tobytes() == face.predict(sparse).tobytes()


def test_the_plain_model_asks_for_its_columns(path: Path) -> None:
    ClassificationRanker().fit(X, Y).save(path)
    with pytest.raises(DataError, match="expected 3 features, found 2"):
        model.Model.read(path).predict(didyma.Lists(X[:, :2], Y * 1.0, QID))


def test_equal_models_are_equal_files(tmp_path: Path) -> None:
    fitted = didyma.SVMRanker(C=1).fit(X, Y, qid=QID)
    contents = set()
    for n in range(8):
        fitted.save(tmp_path / f"{n}")
        contents.add((tmp_path / f"{n}").read_bytes())
    assert len(contents) == 1
