"""Our estimators beside scikit-learn's `BaseEstimator`, whose place `Estimator` takes."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import base, config_context
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils import validation as theirs

from didyma.protocol import Estimator, Transformer, check_is_fitted, clone, validate_data


def members(own: type[Any]) -> type[Any]:
    """The same estimator on either base."""

    class Scaled(own):  # type: ignore[misc]
        __metadata_request__fit = {"qid": True}  # noqa: RUF012

        def __init__(self, C=1.0, *, inner=None, names=()):
            self.C = C
            self.inner = inner
            self.names = names

        def fit(self, X, y=None, qid=None, sample_weight=None):
            self.n_ = 1
            return self

        def predict(self, X):
            return X

        def score(self, X, y=None, sample_weight=None):
            return 1.0

    return Scaled


Ours, Theirs = members(Estimator), members(base.BaseEstimator)
PAIR = pytest.mark.parametrize("kind", [Ours, Theirs])


def test_parameters_are_those_of_scikit_learn():
    ours, other = (kind(2.0, inner=kind(names=("a",))) for kind in (Ours, Theirs))
    assert list(ours.get_params(deep=False)) == list(other.get_params(deep=False))
    assert ours.get_params().keys() == other.get_params().keys()
    assert repr(ours) == repr(other) == "Scaled(C=2.0, inner=Scaled(names=('a',)))"
    for estimator in (ours, other):
        estimator.set_params(inner__C=5.0, C=3)
        assert (estimator.C, estimator.inner.C) == (3, 5.0)
        with pytest.raises(ValueError, match="Invalid parameter 'D' for estimator Scaled"):
            estimator.set_params(D=1)


@pytest.mark.parametrize("copied", [clone, base.clone])
def test_a_clone_has_parameters_and_requests_and_has_learned_nothing(copied):
    with config_context(enable_metadata_routing=True):
        first = Ours(2.0, inner=Ours(names=["a"])).fit([[1.0]]).set_fit_request(sample_weight="w")
        twin = copied(first)
        assert twin.get_metadata_routing().fit.requests == {"qid": True, "sample_weight": "w"}
    assert repr(twin) == repr(first)
    assert twin.inner is not first.inner
    assert twin.inner.names is not first.inner.names
    assert not hasattr(twin, "n_")


def estimators() -> list[type[Any]]:
    """All of the library that are data classes."""
    applications = ("coreference", "motif", "tagging")
    for package in (
        *("didyma.ranking", "didyma.structured", "didyma.nbest"),
        *(f"didyma.applications.{name}" for name in applications),
    ):
        for name in import_module(package).__all__:
            getattr(import_module(package), name)
    found, queue = [], [Estimator]
    while queue:
        queue += (cls := queue.pop()).__subclasses__()
        ours = dataclasses.is_dataclass(cls) and cls.__module__.startswith("didyma.")
        if ours and not inspect.isabstract(cls):
            found.append(cls)
    return found


@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_fields_are_parameters_or_learned(cls):
    """And neither equality nor what is shown is that of a data class."""
    parameters = {field.name for field in dataclasses.fields(cls) if field.init}
    learned = {field.name for field in dataclasses.fields(cls) if not field.init}
    learned -= {"trained_on_", "_gated"}  # of text rerankers; the one of n-best lists has none
    assert parameters == cls().get_params(deep=False).keys()
    assert all(name.endswith("_") for name in learned - {"featuriser"})  # which one lacks
    assert not any(name.endswith("_") for name in parameters)
    assert not any(hasattr(cls(), name) for name in learned)
    assert cls() != cls()
    assert repr(cls()) == f"{cls.__name__}()"
    assert len(estimators()) > 10


def test_requests_are_those_of_scikit_learn():
    setters = [name for name in dir(Theirs) if name.startswith("set_") and "request" in name]
    assert setters == [name for name in dir(Ours) if name.startswith("set_") and "request" in name]
    with config_context(enable_metadata_routing=True):
        routed = [str(kind().get_metadata_routing()) for kind in (Ours, Theirs)]
        assert routed[0] == routed[1]
        with pytest.raises(TypeError, match=r"Unexpected args: \{'docid'\}"):
            Ours().set_score_request(docid=True)
        make_pipeline(Ours()).fit([[1.0]], [1], qid=[1])
    assert get_tags(Ours()) == get_tags(Theirs())


def test_notebooks_show_the_picture_of_scikit_learn():
    for estimator in (Ours(3.0), make_pipeline(Ours(3.0))):
        assert "Scaled" in estimator_html_repr(estimator)
        assert "text/html" in estimator._repr_mimebundle_()


@PAIR
def test_what_has_not_learned_is_not_fitted(kind):
    with pytest.raises(NotFittedError, match="This Scaled instance is not fitted yet"):
        check_is_fitted(kind())
    check_is_fitted(kind().fit([[1.0]]))
    with pytest.raises(NotFittedError):
        check_is_fitted(kind().fit([[1.0]]), "coef_")
    with pytest.raises(NotFittedError):
        theirs.check_is_fitted(kind())


class Halved(Transformer):
    def fit(self, X, y=None):
        validate_data(self, X, reset=True)
        return self

    def transform(self, X):
        return validate_data(self, X, reset=False) / 2


def test_columns_come_in_the_frame_that_was_chosen():
    frame = pd.DataFrame({"a": [2.0, 4.0]})
    halved = Halved().set_output(transform="pandas").fit_transform(frame)
    assert halved.equals(pd.DataFrame({"a": [1.0, 2.0]}))
    with config_context(transform_output="pandas"):
        assert isinstance(Halved().fit(frame).transform(frame), pd.DataFrame)
    assert isinstance(Halved().fit(frame).transform(frame), np.ndarray)


ROWS = {
    "array": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "single precision": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
    "half precision": np.array([[1.0, 2.0], [3.0, 4.0]], np.float16),
    "other bytes": np.array([[1.0, 2.0], [3.0, 4.0]], ">f8"),
    "columns first": np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
    "whole numbers": [[1, 2], [3, 4]],
    "tuples": ((1, 2), (3, 4.5)),
    "truths": np.array([[True, False], [False, True]]),
    "objects": np.array([[1, 2.5], [3, 4]], object),
    "texts": [["1", "a"], ["2", "b"]],
    "ragged": [[1.0], [1.0, 2.0]],
    "complex": np.ones((2, 2), complex),
    "missing": [[1.0, np.nan], [2.0, 3.0]],
    "infinite": [[1.0, np.inf], [2.0, 3.0]],
    "huge": [[1e308, 1e308], [1e308, 1e308]],
    "flat": [1.0, 2.0],
    "number": 3.0,
    "cube": np.ones((2, 2, 2)),
    "no rows": np.ones((0, 2)),
    "no columns": np.ones((2, 0)),
    "another width": [[1.0], [2.0]],
    "another length": np.ones((3, 2)),
    "matrix": np.ma.ones((2, 2)),
    "frame": pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}),
    "csr": sp.csr_array([[1.0, 0.0], [0.0, 2.0]]),
    "csr of whole numbers": sp.csr_matrix([[1, 0], [0, 2]]),
    "coo": sp.coo_array([[1.0, 0.0], [0.0, 2.0]]),
    "csr of NaN": sp.csr_array([[np.nan, 0.0], [0.0, 2.0]]),
    "nothing": None,
}
LABELS = {
    "none given": "no_validation",
    "whole": [1, 0],
    "array": np.array([1.0, 0.0]),
    "missing": [1.0, np.nan],
    "column": [[1.0], [0.0]],
    "texts": ["a", "b"],
    "series": pd.Series([1, 0]),
    "nothing": None,
}


def outcome(read: Any, *arguments: Any, **options: Any) -> Any:
    """What a reader returns, or the class and first line of its error, and its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found: Any = read(*arguments, **options)
        except (TypeError, ValueError) as error:
            return type(error), str(error).splitlines()[0]
    parts = found if isinstance(found, tuple) else (found,)
    described = [
        (part.dtype, part.shape, (part.toarray() if sp.issparse(part) else part).tolist())
        for part in parts
    ]
    return str(described), [str(warning.message) for warning in told]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("finite", [True, False, "allow-nan"])
def test_rows_and_labels_are_read_as_scikit_learn_reads_them(rows, labels, finite):
    """The same arrays, errors, warnings and attributes, in training and after it."""
    form = {"dtype": (np.float64, np.float32), "ensure_all_finite": finite}
    X, y = ROWS[rows], LABELS[labels]
    judged = {} if labels == "none given" else {"y": y, "y_numeric": True}
    for sparse in (True, False):
        accepted = {"accept_sparse": "csr", "order": "C"} if sparse else {}
        for fitted_to in (None, ROWS["array"], ROWS["frame"]):
            ours, other = Ours(), Ours()
            for estimator in (ours, other):
                if fitted_to is not None:
                    theirs.validate_data(estimator, fitted_to)
            reset = fitted_to is None
            own = {"reset": reset, "finite": finite, "sparse": sparse}
            found = outcome(validate_data, ours, X, y, **own)
            options = {"reset": reset, **form, **accepted, **judged}
            expected = outcome(theirs.validate_data, other, X, **options)
            assert found == expected
            assert str(vars(ours)) == str(vars(other))


def test_no_part_of_scikit_learn_is_imported_to_fit_and_predict():
    code = """
import sys
from didyma import AdditiveSVMRanker, QueryMinMaxScaler, SVMRanker
X, y, qid = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]], [1, 0, 1, 0], ["a", "a", "b", "b"]
scaled = QueryMinMaxScaler().fit_transform(X, qid=qid)
for ranker in (SVMRanker(), AdditiveSVMRanker(bins=2)):
    ranker.fit(scaled, y, qid=qid).score(scaled, y, qid=qid)
    repr(ranker.path(scaled, y, [1.0, 2.0], qid=qid))
scaled[0, 1] = float("nan")  # a missing value
ranker.fit(scaled, y, qid=qid).score(scaled, y, qid=qid)
loaded = {"sklearn", "pandas", "scipy.stats", "scipy.sparse"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
