"""Model files: what is written is what is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
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
from didyma.model import Saved
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker, baseline
from didyma.ranking.latent import LatentPerceptronRanker
from didyma.ranking.ranker import LinearRanker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler, QueryStandardScaler
from didyma.ranking.svm import SVMRanker
from tests.model.rankers import QID, X, Y, header, rewrite

# What is learned from a few random rows does not matter here, only that it is kept.
pytestmark = pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")


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
    assert found.features == didyma.data.matrix.Columns(3)


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


def test_equal_models_are_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # they may be written in different seconds
    fitted = didyma.SVMRanker(C=1).fit(X, Y, qid=QID)
    contents = set()
    for n in range(8):
        fitted.save(tmp_path / f"{n}")
        contents.add((tmp_path / f"{n}").read_bytes())
    assert len(contents) == 1
