"""Model files: one safetensors file with the learned arrays and, in its header, what they mean.

The header's metadata are texts: ``format`` ("didyma"), ``format_version``, ``library_version``,
``model`` and ``summary`` (JSON) and ``checksum`` (SHA-256 over all of these and the arrays). The
model is a record

    {"class": "SVMRanker", "parameters": {…}, "lost": {}, "attributes": {…}, "n_features": 46,
     "feature_names": ["bm25", …] or null, "zero_based": true, false or null}

or, for a scikit-learn pipeline, ``{"class": "Pipeline", "steps": [[name, record], …]}``; what keeps
its own state (``state()``, ``from_state``) has it under "state", its arrays by their names. The
array ``coef_`` of a model is the tensor "coef_", that of a pipeline's second step "1/coef_". An
attribute that is a model itself stands under "parts" as a record of its own, its arrays as
"name/coef_"; one that is a dictionary of arrays has its keys under "arrays", and the tensors
"name/key". Parameters that have no text, such as a loss of one's own, are "lost": the file says
what they were, `save` warns, and the restored model predicts as before but refuses to be fitted
until they are set.

A `Model` is what such a file holds, as plain values, and ranks as the estimator does that it is of;
scikit-learn is imported only for a pipeline that does more than scale.

Reading runs no code of the file: classes come from the table below, parameters are plain values or
the texts that users type, and everything is checked before anything is built. The sizes that a
record declares are those of the arrays that came with it, or the file is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from math import isfinite
from os import PathLike
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma import __version__
from didyma.data.lists import Features, Lists
from didyma.data.matrix import Matrix
from didyma.errors import DataError, ModelFileError
from didyma.files import read_regular, replace_when_done
from didyma.lazy import cached_property
from didyma.learning.scoring import BLOCK, SCALERS, learn_scaling
from didyma.protocol import check_is_fitted
from didyma.values import is_whole

__all__ = [
    "Lost",
    "Model",
    "Savable",
    "class_of",
    "describe",
    "load",
    "save",
    "summary_of",
]

FORMAT = "didyma"
FORMAT_VERSION = 1

# What a file may name, and the module that we import it from.
CLASSES = {
    "AdditiveSVMRanker": "didyma.ranking.additive",
    "SVMRanker": "didyma.ranking.svm",
    "ClassificationRanker": "didyma.ranking.classification",
    "LatentPerceptronRanker": "didyma.ranking.latent",
    "LatentSVMRanker": "didyma.ranking.latent",
    "PolynomialRanker": "didyma.ranking.classification",
    "CoreferenceResolver": "didyma.applications.coreference.resolver",
    "MotifFinder": "didyma.applications.motif.finder",
    "TrigramTagger": "didyma.applications.tagging.tagger",
    "LowRankReranker": "didyma.nbest.low_rank",
    "BoostingReranker": "didyma.nbest.boosting",
    "NBestReranker": "didyma.nbest.reranker",
    "DependencyParser": "didyma.applications.parsing.parser",
    "EntailmentClassifier": "didyma.applications.alignment.esim",
    "PassageRanker": "didyma.applications.passages.ranker",
    "LatentStructuredPerceptron": "didyma.structured.learners",
    "LatentStructuredSVM": "didyma.structured.learners",
    "StructuredPerceptron": "didyma.structured.learners",
    "StructuredSVM": "didyma.structured.learners",
    "Reranker": "didyma.text.reranker",
    "TextReranker": "didyma.text.text_reranker",
    "Joined": "didyma.ranking.featuriser",
    "PassageEmbedding": "didyma.applications.passages.embedding",
    "TextFeatures": "didyma.text.features.union",
    "Bag": "didyma.nbest.bags",
    "GivenVectors": "didyma.nbest.given",
    "JointFeatures": "didyma.nbest.joint",
    "ScoreBinner": "didyma.ranking.binning",
    "QueryMinMaxScaler": "didyma.ranking.scaling",
    "QueryPercentileScaler": "didyma.ranking.scaling",
    "QueryStandardScaler": "didyma.ranking.scaling",
    "Pipeline": "sklearn.pipeline",
    "MaxAbsScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
}

# Our classes say in `_state` what they learn; these do not.
STATE = {
    "MaxAbsScaler": ("scale_", "max_abs_", "n_samples_seen_"),
    "MinMaxScaler": (
        *("scale_", "min_", "data_min_", "data_max_", "data_range_"),
        "n_samples_seen_",
    ),
    "StandardScaler": ("scale_", "mean_", "var_", "n_samples_seen_"),
}

# Sizes of the arrays that models hold: "n_features" is the record's, a name that ends in "_" is the
# length of that list, any other one size wherever it stands. An array may be None instead. What is
# not here, a class checks itself in `_check_state`.
Shapes: TypeAlias = dict[str, tuple[str, ...]]
LINEAR: Shapes = {"coef_": ("n_features",)}
SHAPES: dict[str, Shapes] = {
    "SVMRanker": LINEAR,
    "ClassificationRanker": LINEAR,
    "LatentPerceptronRanker": LINEAR,
    "LatentSVMRanker": {
        **LINEAR,
        "start_coef_": ("n_features",),
        "objective_trace_": ("rounds",),
    },
    "PolynomialRanker": {"support_vectors_": ("vectors", "n_features"), "dual_coef_": ("vectors",)},
    "CoreferenceResolver": LINEAR,
    "BoostingReranker": LINEAR,
    "LowRankReranker": {
        "A_": ("n_features", "components"),
        "B_": ("outputs", "components"),
        "correlations_": ("components",),
        "slacks_": ("lists",),
    },
    "LatentStructuredPerceptron": {"coef_": ("weights",)},
    "LatentStructuredSVM": {"coef_": ("weights",)},
    "StructuredPerceptron": {"coef_": ("weights",)},
    "StructuredSVM": {"coef_": ("weights",)},
    "Bag": {"names_": ("letters",)},
    "JointFeatures": {"names_": ("letters",), "deviations_": ("number_names_",)},
    "ScoreBinner": {"thresholds_": ("thresholds",), "column_": ("thresholds",)},
    "MaxAbsScaler": dict.fromkeys(("scale_", "max_abs_"), ("n_features",)),
    "MinMaxScaler": dict.fromkeys(STATE["MinMaxScaler"][:-1], ("n_features",)),
    "StandardScaler": dict.fromkeys(("scale_", "mean_", "var_"), ("n_features",)),
}

# Types of learned arrays, whose names end in "_"; all others are of floats.
TYPES = {
    **dict.fromkeys(("names_", "levels_"), "u1"),
    **dict.fromkeys(("column_", "pairs_"), "i8"),
    "nominal_": "b1",
    "signs_": "i1",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_count(value: Any) -> bool:
    return is_whole(value) and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


# What plain values of a record must be, whatever class has them, if a prediction depends on them:
# a value that is not is refused here rather than met where it is used.
VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        ("intercept_", "gamma_", "weight_", "decoder_weight_", "coef0"), ("a number", _is_number)
    ),
    "scale_": ("a number or null", lambda value: value is None or _is_number(value)),
    **dict.fromkeys(("n_queries_", "length_", "vector_length_", "degree"), ("a count", _is_count)),
    **dict.fromkeys(
        ("tags_", "words_", "suffixes_", "characters_", "labels_", "classes_", "number_names_"),
        ("texts", _are_texts),
    ),
    **dict.fromkeys(
        ("uses_decoder_", "clip", "with_mean", "with_std"),
        ("true or false", lambda value: isinstance(value, bool)),
    ),
    **dict.fromkeys(
        ("model_", "joint_", "input_view_", "output_view_"),
        ("a part", lambda value: value is None),
    ),
    "feature_range": ("two numbers", _is_range),
    "n_jobs": ("a number", lambda value: value is None or type(value) is int),
}

# Parameters that are not part of a model: our classes name theirs in `_transient`.
TRANSIENT = {"Pipeline": ("steps", "memory")}

# Parameters that once had another name, so that older files are read.
RENAMED = {"seed": "random_state"}

# Values that have a text, by their root class, and the function that reads the text.
READERS = {
    "didyma.ranking.losses.ItemwiseLoss": "didyma.ranking.losses.parse_loss",
    "didyma.ranking.feature_maps.FeatureMap": "didyma.ranking.feature_maps.parse_feature_map",
    "ir_measures.measures.base.Measure": "didyma.metrics.measures.parse",
}

Record: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model as plain values: a record (see above) and its arrays.

    >>> from didyma.ranking.svm import SVMRanker
    >>> X, y, qid = np.array([[3.0], [1.0], [2.0]]), np.array([1.0, 0.0, 0.0]), np.zeros(3)
    >>> model = Model.of(SVMRanker(C=10).fit(X, y))
    >>> np.argmax(model.predict(Lists(X, y, qid)))
    np.int64(0)
    """

    record: Record
    tensors: Tensors
    summary: Record
    library_version: str = __version__
    format_version: int = FORMAT_VERSION

    @classmethod
    def of(cls, estimator: Any, summary: Mapping[str, Any] | None = None) -> Model:
        """The model of a fitted estimator, or of a pipeline of such; see `save`."""
        if not _keeps_state(type(estimator)):
            *_, last = _leaves(estimator)
            check_is_fitted(last)
        tensors: Tensors = {}
        record = _record(estimator, tensors, "")
        return cls(record, tensors, {**summary_of(estimator), **(summary or {})})

    @classmethod
    def scaler(cls, name: str, lists: Lists) -> Model:
        """A scaler, of a class in `scoring.SCALERS`, that has learned from the rows of lists."""
        return cls.scaling(name, learn_scaling(name, lists.X, lists.groups), lists.features)

    @classmethod
    def scaling(cls, name: str, state: Mapping[str, Any], features: Features) -> Model:
        """A scaler with these parameters and attributes, which end in "_"."""
        parameters = {key: _plain(value) for key, value in state.items() if key[-1] != "_"}
        learned = {key: value for key, value in state.items() if key not in parameters}
        arrays = {key: value for key, value in learned.items() if isinstance(value, np.ndarray)}
        rest = {key: value for key, value in learned.items() if key not in arrays}
        record = {
            "class": name,
            "parameters": parameters,
            "lost": {},
            "attributes": _attributes(rest, name),
            "parts": {},
            "arrays": {},
            "n_features": features.count,
            "feature_names": None if features.names is None else list(features.names),
            "zero_based": features.zero_based,
        }
        return cls(record, arrays, {})

    def transform(self, lists: Lists) -> Lists:
        """The lists with rows as scalers make them, if there is nothing else."""
        return replace(lists, items=self._scaled(lists, self.steps))

    @classmethod
    def restored(cls, record: Record, tensors: Tensors, *described: Any) -> Model:
        """The model of a record that was read, once the sizes of its arrays have been checked."""
        model = cls(record, tensors, *(described or ({},)))
        for name, array in tensors.items():
            _check_type(name, array)
        for part, prefix in model.steps:
            _check_shapes(part, tensors, prefix)
        return model

    def behind(self, scaler: Model) -> Model:
        """A pipeline of a scaler and this."""
        tensors = {f"0/{name}": array for name, array in scaler.tensors.items()}
        tensors |= {f"1/{name}": array for name, array in self.tensors.items()}
        steps = [[part.name.lower(), part.record] for part in (scaler, self)]
        record = {"class": "Pipeline", "parameters": {}, "lost": {}, "steps": steps}
        return Model(record, tensors, self.summary)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Model:
        """Read a model file."""
        texts, tensors = _read(path)

        def restore() -> Model:
            record, summary = json.loads(texts["model"]), json.loads(texts["summary"])
            version = int(texts["format_version"])
            return cls.restored(record, tensors, summary, texts["library_version"], version)

        return _parse(path, restore)

    def write(self, path: str | PathLike[str]) -> None:
        """Write a model file, whole or not at all."""
        from safetensors.numpy import save as serialise

        texts = {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "library_version": __version__,
            "model": json.dumps(self.record),
            "summary": json.dumps(self.summary),
        }
        contents = serialise(self.tensors, {**texts, "checksum": _checksum(texts, self.tensors)})
        with replace_when_done(path, "wb") as file:
            file.write(_in_order(contents))

    def describe(self) -> dict[str, Any]:
        """All of it as plain values; of arrays, type and shape."""
        return {
            "format_version": self.format_version,
            "library_version": self.library_version,
            **self.record,
            "summary": self.summary,
            "tensors": {
                name: {"dtype": str(array.dtype), "shape": list(array.shape)}
                for name, array in self.tensors.items()
            },
        }

    @cached_property
    def estimator(self) -> Any:
        """The estimator or pipeline with these parameters, which has learned this."""
        return _build(self.record, self.tensors, "")

    @cached_property
    def ranker(self) -> Any:
        """The estimator of the last step."""
        record, prefix = self.steps[-1]
        try:
            return _build(record, self.tensors, prefix)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the model cannot be restored ({error})") from error

    @cached_property
    def steps(self) -> list[tuple[Record, str]]:
        """The record of each step of a pipeline, however nested, and the prefix of its arrays."""
        return list(_steps(self.record, ""))

    @property
    def name(self) -> str:
        """The class of what predicts: the last step."""
        return str(self.steps[-1][0]["class"])

    @property
    def ranks(self) -> bool:
        """Whether it scores rows of features."""
        counted = self.steps[0][0].get("n_features") is not None
        return counted and hasattr(class_of(self.name), "predict")

    @property
    def allows_missing(self) -> bool:
        """Whether rows may have missing values."""
        return bool(getattr(class_of(self.name), "_allows_missing", False))

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each feature that a linear model sees, by its name; else nothing."""
        prefix = self.steps[-1][1]
        coef = self.tensors.get(f"{prefix}coef_")
        if coef is None:
            return {}
        names = self.features.labels
        if not self.scales:
            for step in list(_leaves(self.estimator))[:-1]:
                names = [str(name) for name in step.get_feature_names_out(names)]
        return dict(zip(names, coef.tolist()))

    @property
    def features(self) -> Features:
        """The columns that rows must have."""
        first, _ = self.steps[0]
        names, zero_based = first["feature_names"], first.get("zero_based")
        return Features(first["n_features"], None if names is None else tuple(names), zero_based)

    def predict(self, data: Lists) -> NDArray[np.float64]:
        """Score of each row; higher ranks first within a query."""
        if self._scores_rows:
            return self.score(self.inputs(data))
        return self._predict_by_estimator(self.features.arrange(data))

    def predict_blocks(self, parts: Iterable[Lists]) -> Iterator[Lists]:
        """The same of rows that come some at a time, to the bit: their scores in place of features.

        Rows that are scaled by the others of their query are cut into whole queries first.
        """
        from didyma.data.queries import in_blocks_of, whole_queries

        predict: Callable[[Lists], NDArray[np.float64]] = self.predict
        if any(part["class"].startswith("Query") for part, _ in self.steps):
            parts = whole_queries(parts)
            if not self._scores_rows:
                yield from (part.with_items(predict(part)[:, None]) for part in parts)
                return
            parts = (part.with_items(self.inputs(part)) for part in parts)
            predict = lambda part: self.score(part.X)  # noqa: E731
        for part in in_blocks_of(BLOCK, parts):  # a product of fewer rows would round otherwise
            yield part.with_items(predict(part)[:, None])

    def score(self, rows: Matrix) -> NDArray[np.float64]:
        """Score of each row, scaled already."""
        scores: NDArray[np.float64] = self.ranker._score_rows(rows)
        return scores

    @property
    def _scores_rows(self) -> bool:
        """Whether the last step ranks rows of features, and all before it scales them."""
        return self.scales and hasattr(class_of(self.name), "_score_rows")

    @property
    def scales(self) -> bool:
        """Whether all that stands before the last step scales features, one by one."""
        return all(part["class"] in SCALERS for part, _ in self.steps[:-1])

    def inputs(self, data: Lists) -> Matrix:
        """The rows as the last step sees them, if the others scale features."""
        data = self.features.arrange(data)
        return self._scaled(data, self.steps[:-1])

    def _scaled(self, data: Lists, scalers: Sequence[tuple[Record, str]]) -> Matrix:
        rows = data.X
        if isinstance(rows, np.ndarray):  # scores do not depend on how rows are stored
            rows = np.ascontiguousarray(rows)
        for part, prefix in scalers:
            rows = SCALERS[part["class"]](rows, data.groups, self._state(part, prefix))
        return rows

    @property
    def states(self) -> list[tuple[str, Record]]:
        """The class of each step, and its parameters, attributes and arrays by their names."""
        return [(part["class"], self._state(part, prefix)) for part, prefix in self.steps]

    @property
    def learned(self) -> Record:
        """Parameters, attributes and arrays of the last step by their names."""
        return self._state(*self.steps[-1])

    def _state(self, part: Record, prefix: str) -> Record:
        """Parameters, attributes and arrays of a step by their names."""
        own = {
            name.removeprefix(prefix): array
            for name, array in self.tensors.items()
            if name.startswith(prefix)
        }
        return {**part["parameters"], **part["attributes"], **own}

    def _predict_by_estimator(self, data: Lists) -> NDArray[np.float64]:
        """The same by the estimator; a pipeline that scales within queries is told the queries."""
        from sklearn import config_context

        with config_context(enable_metadata_routing=True), warnings.catch_warnings():
            # Columns have been matched by name already.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            wants_qid = self.estimator.get_metadata_routing().consumes("predict", ["qid"])
            scores: NDArray[np.float64] = self.estimator.predict(
                data.X, **({"qid": data.qid} if wants_qid else {})
            )
        return scores


def save(
    estimator: Any, path: str | PathLike[str], *, summary: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator, or a pipeline of such, to ``path``, whole or not at all.

    ``summary`` is added to the numbers of the estimator's ``result_``, which the file keeps for
    people to read. Warns of parameters that it cannot keep.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import SVMRanker
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(SVMRanker().fit([[1.0], [0.0]], [1, 0]), path)
    >>> load(path).predict([[2.0], [1.0]]).argmax()
    np.int64(0)
    """
    model = Model.of(estimator, summary)
    if lost := ", ".join(_lost(model.record)):
        warnings.warn(
            f"a model file cannot keep {lost}: the loaded model predicts as this one does, but "
            "needs set_params before another fit",
            stacklevel=3,
        )
    model.write(path)


def load(path: str | PathLike[str]) -> Any:
    """Read the estimator or pipeline that `save` wrote.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import SVMRanker
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(SVMRanker(C=3.0).fit([[1.0], [0.0]], [1, 0]), path)
    >>> load(path).C
    3.0
    """
    model = Model.read(path)
    return _parse(path, lambda: model.estimator)


class Lost:
    """What stands for a parameter that a model file could not keep."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}, which the model file does not hold>"


class Savable:
    """What every estimator of ours can do: be written to a model file, and be read from one."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file (see `didyma.model`)."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model file that holds a model of this class."""
        found = load(path)
        if not isinstance(found, cls):
            raise ModelFileError(f"{path}: holds a {type(found).__name__}, not a {cls.__name__}")
        return found

    def _check_restored(self) -> None:
        """Refuse to go on without parameters that were lost in a model file."""
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            if isinstance(value, Lost):
                raise DataError(
                    f"was {value.what}, which the model file does not hold: set it, "
                    f"set_params({name}=…)",
                    field=name,
                )

    def _check_state(self) -> None:
        """Raise ValueError if what a model file brought does not fit together; allocate nothing."""


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model file holds, as plain values, without building the model.

    The keys are those of the record (see above) and ``format_version``, ``library_version``,
    ``summary`` and ``tensors`` (type and shape of each array).
    """
    return Model.read(path).describe()


def _parse(path: str | PathLike[str], make: Callable[[], Any]) -> Any:
    """What ``make`` makes of the file's contents, if they mean anything."""
    try:
        return make()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: the model cannot be restored ({error})") from error


def _record(estimator: Any, tensors: Tensors, prefix: str) -> Record:
    """Describe an estimator, and put its arrays into ``tensors``."""
    name = type(estimator).__name__
    if name not in CLASSES or type(estimator) is not class_of(name):
        known = ", ".join(CLASSES)
        raise DataError(f"a {name} cannot be saved in a model file; what can is {known}")
    if _keeps_state(type(estimator)):
        return _stated(estimator, tensors, prefix)
    parameters, lost = _parameters(estimator)
    described = {"class": name, "parameters": parameters, "lost": lost}
    if name == "Pipeline":
        steps = [
            [step, _record(part, tensors, f"{prefix}{i}/")]
            for i, (step, part) in enumerate(estimator.steps)
        ]
        return {**described, "steps": steps}
    state = {attribute: getattr(estimator, attribute) for attribute in _state(name)}
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    parts = {key: value for key, value in state.items() if type(value).__name__ in CLASSES}
    families = {key: value for key, value in state.items() if _is_family(value)}
    for key, family in families.items():
        arrays |= {f"{key}/{member}": array for member, array in family.items()}
    tensors |= {prefix + key: np.ascontiguousarray(array) for key, array in arrays.items()}
    special = {*arrays, *parts, *families}
    scalars = {key: value for key, value in state.items() if key not in special}
    names = getattr(estimator, "feature_names_in_", None)
    return {
        **described,
        "attributes": _attributes(scalars, name),
        "parts": {key: _record(part, tensors, f"{prefix}{key}/") for key, part in parts.items()},
        "arrays": {key: list(family) for key, family in families.items()},
        "n_features": getattr(estimator, "n_features_in_", None),
        "feature_names": None if names is None else list(names),
        "zero_based": getattr(estimator, "zero_based_in_", None),
    }


def _stated(model: Any, tensors: Tensors, prefix: str) -> Record:
    """Describe what keeps its own state."""
    arrays, state = model.state()
    tensors |= {prefix + key: np.ascontiguousarray(array) for key, array in arrays.items()}
    plain: Record = {"parameters": {}, "lost": {}, "attributes": {}}
    return {"class": type(model).__name__, **plain, "state": state, "n_features": None}


def _build(record: Record, tensors: Tensors, prefix: str) -> Any:
    """The estimator of a record; the inverse of `_record`."""
    name = record["class"]
    if _keeps_state(class_of(name)):
        own = {
            key.removeprefix(prefix): array
            for key, array in tensors.items()
            if key.startswith(prefix)
        }
        return class_of(name).from_state(own, record["state"])
    parameters = {
        RENAMED.get(key, key): _tuples(value) for key, value in record.get("parameters", {}).items()
    }
    parameters |= {key: Lost(what) for key, what in record.get("lost", {}).items()}
    _check_shapes(record, tensors, prefix)
    if name == "Pipeline":
        steps = [
            (step, _build(part, tensors, f"{prefix}{i}/"))
            for i, (step, part) in enumerate(record["steps"])
        ]
        return class_of(name)(steps, **parameters)
    estimator = class_of(name)(**parameters)
    for attribute in _state(name):
        setattr(estimator, attribute, _attribute(attribute, record, tensors, prefix))
    if record["n_features"] is not None:
        estimator.n_features_in_ = record["n_features"]
        estimator.zero_based_in_ = record["zero_based"]
    if record["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    if hasattr(estimator, "_check_state"):
        estimator._check_state()
    return estimator


def _leaves(estimator: Any) -> Iterator[Any]:
    """The steps of a pipeline, however nested."""
    if not hasattr(estimator, "steps"):
        yield estimator
        return
    for _, step in estimator.steps:
        yield from _leaves(step)


def _steps(record: Record, prefix: str) -> Iterator[tuple[Record, str]]:
    if record["class"] != "Pipeline":
        yield record, prefix
        return
    for i, (_, part) in enumerate(record["steps"]):
        yield from _steps(part, f"{prefix}{i}/")


def _check_shapes(record: Record, tensors: Tensors, prefix: str) -> None:
    """Compare what a record declares with its arrays, and look at its plain values."""
    name = record["class"]
    if name not in CLASSES:
        raise ValueError(f"it is of a class that this version does not know, {name}")
    attributes = record.get("attributes", {})
    _check_values(record)
    sizes: Record = {
        key: len(value) for key, value in attributes.items() if isinstance(value, list)
    }
    sizes["n_features"] = record.get("n_features")
    for array, letters in SHAPES.get(name, {}).items():
        if prefix + array not in tensors and attributes.get(array, 0) is None:
            continue
        shape = tensors[prefix + array].shape
        expected = [sizes.setdefault(letter, size) for letter, size in zip(letters, shape)]
        if len(shape) != len(letters) or list(shape) != expected:
            declared = "×".join(str(sizes.get(letter, letter)) for letter in letters)
            raise ValueError(f"{name}.{array} should be {declared}, but is {_product(shape)}")


def _check_values(record: Record) -> None:
    for name, value in {**record.get("parameters", {}), **record.get("attributes", {})}.items():
        if name in VALUES and not VALUES[name][1](value):
            expected = VALUES[name][0]
            raise ValueError(f"{record['class']}.{name} should be {expected}, but is {value!r:.40}")
    names, count = record.get("feature_names"), record.get("n_features")
    if not (names is None or (_are_texts(names) and len(names) == count)):
        raise ValueError(f"expected names of {count!r:.20} features, found {names!r:.40}")
    if not (count is None or _is_count(count)):
        raise ValueError(f"expected a number of features, found {count!r:.40}")


def _check_type(name: str, array: NDArray[Any]) -> None:
    learned = name.rpartition("/")[2]
    if not learned.endswith("_"):
        return
    expected = [TYPES[learned]] if learned in TYPES else ["f8", "f4"]
    if not any(array.dtype == np.dtype(own) for own in expected):
        raise ValueError(f"{name} should be {np.dtype(expected[0])}, but is {array.dtype}")


def _product(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "one number"


def _parameters(estimator: Any) -> tuple[Record, Record]:
    """The parameters that a file can keep, and what those are that it cannot."""
    name = type(estimator).__name__
    transient = TRANSIENT[name] if name in TRANSIENT else getattr(estimator, "_transient", ())
    values = estimator.get_params(deep=False)
    kept = {key: value for key, value in values.items() if key not in transient}
    lost = {key: _called(value) for key, value in kept.items() if not _is_plain(value)}
    return {key: _plain(value) for key, value in kept.items() if key not in lost}, lost


def _lost(record: Record) -> Iterator[str]:
    """What a record could not keep, with the places."""
    for name, what in record["lost"].items():
        yield f"{record['class']}.{name} ({what})"
    parts = [part for _, part in record.get("steps", [])]
    for part in (*parts, *record.get("parts", {}).values()):
        yield from _lost(part)


def _called(value: Any) -> str:
    """What to call a parameter that is lost."""
    if isinstance(value, Lost):
        return value.what
    name = getattr(value, "__qualname__", None)
    return f"a {type(value).__name__}" if name is None else f"the {type(value).__name__} {name}"


def _attribute(name: str, record: Record, tensors: Tensors, prefix: str) -> Any:
    """What an estimator has learned under this name."""
    if prefix + name in tensors:
        return tensors[prefix + name]
    if name in record.get("parts", {}):
        return _build(record["parts"][name], tensors, f"{prefix}{name}/")
    if name in record.get("arrays", {}):
        members = record["arrays"][name]
        return {member: tensors[f"{prefix}{name}/{member}"] for member in members}
    return record["attributes"][name]


def _read(path: str | PathLike[str]) -> tuple[dict[str, str], Tensors]:
    """The metadata and arrays of a file that is whole, ours, and of a version that we know."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        contents = read_regular(path)
        tensors = load(contents)  # which checks the header
        texts = _header(contents).get("__metadata__") or {}
        _check_format(path, texts)
    except DataError as error:
        raise ModelFileError(str(error)) from None
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (OSError, SafetensorError, AttributeError, TypeError, KeyError) as error:
        raise ModelFileError(f"{path}: damaged, or not a model file ({error})") from None
    checksum = texts.pop("checksum", None)
    if checksum != _checksum(texts, tensors):
        raise ModelFileError(f"{path}: damaged, its contents do not match their checksum")
    return texts, tensors


def _check_format(path: str | PathLike[str], texts: Mapping[str, str]) -> None:
    if texts.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a model of this library")
    version = texts.get("format_version", "")
    if not re.fullmatch("[0-9]{1,9}", version):
        raise ModelFileError(f"{path}: damaged, its format version is {version[:20]!r}")
    if int(version) > FORMAT_VERSION:
        writer = texts.get("library_version", "of a later version")
        raise ModelFileError(
            f"{path}: written by didyma {writer} in format {version}, but this is didyma "
            f"{__version__}, which reads format {FORMAT_VERSION}: upgrade to load it"
        )


def _in_order(contents: bytes) -> bytes:
    """The same file with its texts sorted: as safetensors writes them, their order is random."""
    header = _header(contents)
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    end = 8 + int.from_bytes(contents[:8], "little")
    return len(text).to_bytes(8, "little") + text + contents[end:]


def _header(contents: bytes) -> Record:
    return json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])


def _checksum(texts: Mapping[str, str], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _keeps_state(kind: type[Any]) -> bool:
    """Whether it is no estimator, and says itself what it has learned."""
    return hasattr(kind, "from_state") and not hasattr(kind, "get_params")


def class_of(name: str) -> Any:
    """The class that a file names."""
    if name not in CLASSES:
        raise ValueError(f"it is of a class that this version does not know, {name}")
    return getattr(import_module(CLASSES[name]), name)


def _state(name: str) -> tuple[str, ...]:
    return STATE[name] if name in STATE else getattr(class_of(name), "_state", ())


def summary_of(estimator: Any) -> dict[str, Any]:
    """The plain values of the ``result_`` of an estimator, or of a pipeline's last step.

    Times are left out: files of equal training are equal.
    """
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    result = getattr(final, "result_", None)
    names = [field.name for field in fields(result)] if is_dataclass(result) else []
    found = {name: getattr(result, name) for name in names if name != "seconds"}
    found["n_queries"] = getattr(final, "n_queries_", None)
    brief = {key: value for key, value in found.items() if not isinstance(value, np.ndarray)}
    return {key: _plain(value) for key, value in brief.items() if _is_plain(value)}


def _attributes(values: Mapping[str, Any], owner: str) -> Record:
    for key, value in values.items():
        if not _is_plain(value):
            raise DataError(
                f"a value of type {type(value).__name__} cannot be saved in a model file",
                field=f"{owner}.{key}",
            )
    return {key: _plain(value) for key, value in values.items()}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(value[key]) for key in value)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufU"
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return True
    return _text(value) is not None


def _is_family(value: Any) -> bool:
    """Whether this is a dictionary of arrays, as a network's parameters are."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(array, np.ndarray) for array in value.values())
    )


def _text(value: Any) -> str | None:
    """The text that restores a value whole, as users type it, if there is one."""
    for cls in type(value).__mro__:
        if reader := READERS.get(f"{cls.__module__}.{cls.__qualname__}"):
            module, _, function = reader.rpartition(".")
            try:
                read = getattr(import_module(module), function)(str(value))
            except DataError:
                return None
            return str(value) if read == value else None
    return None


def _plain(value: Any) -> Any:
    """JSON for a plain value."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _text(value)


def _tuples(value: Any) -> Any:
    """JSON has no tuples, parameters no lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
