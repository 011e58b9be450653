"""What a model file holds, as plain values, which ranks as the estimator does that it is of."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma import __version__
from didyma.data.lists import Lists
from didyma.data.matrix import Columns, Matrix
from didyma.errors import ModelFileError
from didyma.lazy import cached_property
from didyma.learning.scoring import BLOCK, SCALERS, learn_scaling
from didyma.model.codec import (
    Record,
    Serialisable,
    State,
    Tensors,
    check,
    decode,
    encode,
    lost_parts,
    over,
    record_of,
    under,
)
from didyma.model.container import (
    FORMAT_VERSION,
    ModelVersion,
    checksum,
    now,
    read_container,
    write_container,
)
from didyma.model.fields import summary_of, tuples
from didyma.model.registry import Trusted, check_trust, class_of, trusting
from didyma.protocol import call_routed, check_is_fitted


@dataclass(frozen=True, eq=False)
class Model(Serialisable):
    """A fitted model as plain values: a record (see `didyma.model`) and its arrays.

    scikit-learn is imported only for a pipeline that does more than scale.

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
    trust: Trusted = ()
    origin: Record | None = None

    @classmethod
    def of(
        cls, estimator: Any, summary: Mapping[str, Any] | None = None, parent: Any = None
    ) -> Model:
        """The model of a fitted estimator, or of a pipeline of such; see `save`."""
        if hasattr(estimator, "get_params"):
            *_, last = _leaves(estimator)
            check_is_fitted(last)
        arrays, record = encode(estimator)
        summary = {**summary_of(estimator), **(summary or {})}
        data = getattr(estimator, "trained_on_", None)
        origin = {
            "created": now(),
            "data": None if data is None else data.fingerprint,
            "parent": None if parent is None else version_of(parent).id,
        }
        return cls(record, arrays, summary, trust=None, origin=origin)  # classes are here already

    @classmethod
    def scaler(cls, name: str, lists: Lists) -> Model:
        """A scaler, of a class in `scoring.SCALERS`, that has learned from the rows of lists."""
        return cls.scaling(name, learn_scaling(name, lists.X, lists.groups), lists.features)

    @classmethod
    def scaling(cls, name: str, state: Mapping[str, Any], features: Columns) -> Model:
        """A scaler with these parameters and attributes, which end in "_"."""
        learned = {key: value for key, value in state.items() if key[-1] == "_"}
        parameters = {key: value for key, value in state.items() if key not in learned}
        columns = features.count, features.names, features.zero_based
        arrays, record = record_of(name, parameters, learned, *columns)
        return cls(record, arrays, {})

    def transform(self, lists: Lists) -> Lists:
        """The lists with rows as scalers make them, if there is nothing else."""
        return replace(lists, items=self._scaled(lists, self.steps))

    def state(self) -> State:
        """The arrays and the record."""
        return self.tensors, self.record

    @classmethod
    def from_state(cls, arrays: Tensors, values: Record) -> Model:
        """The model of a record that was read, once values and sizes have been checked."""
        check(values, arrays)
        return cls(values, arrays, {})

    def behind(self, scaler: Model) -> Model:
        """A pipeline of a scaler and this."""
        tensors = over("0/", scaler.tensors) | over("1/", self.tensors)
        steps = [[part.name.lower(), part.record] for part in (scaler, self)]
        record = {"class": "Pipeline", "parameters": {}, "lost": {}, "steps": steps}
        return Model(record, tensors, self.summary)

    @classmethod
    def read(cls, path: str | PathLike[str], trust: Iterable[str] = ()) -> Model:
        """Read a model file; see `load`."""
        trusted = check_trust(trust)
        texts, tensors = read_container(path)
        with restoring(path):
            model = cls.from_state(tensors, json.loads(texts["model"]))
            version, writer = int(texts["format_version"]), texts["library_version"]
            summary = json.loads(texts["summary"])
            origin = json.loads(texts.get("version", "null"))
            described = replace(model, summary=summary, library_version=writer, origin=origin)
            described.version  # noqa: B018 - which checks what it is
            return replace(described, format_version=version, trust=trusted)

    def write(self, path: str | PathLike[str]) -> None:
        """Write a model file, whole or not at all."""
        origin = {} if self.origin is None else {"version": self.origin}
        write_container(self.tensors, path, model=self.record, summary=self.summary, **origin)

    @cached_property
    def version(self) -> ModelVersion:
        """A hash of record and arrays, and what is known of their origin."""
        content = checksum({"model": json.dumps(self.record)}, self.tensors)
        return ModelVersion.restored(content, self.origin)

    def describe(self) -> dict[str, Any]:
        """All of it as plain values; of arrays, type and shape."""
        return {
            "format_version": self.format_version,
            "library_version": self.library_version,
            "version": self.version.to_dict(),
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
        with trusting(self.trust):
            estimator = decode(self.record, self.tensors)
        if isinstance(estimator, Savable):
            estimator.version_ = self.version
        return estimator

    @cached_property
    def ranker(self) -> Any:
        """The estimator of the last step."""
        record, prefix = self.steps[-1]
        with restoring(None):
            return decode(record, under(prefix, self.tensors))

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
        return self._reads_rows and hasattr(class_of(self.name), "_score_rows")

    @property
    def _reads_rows(self) -> bool:
        """Whether its input has features that are counted."""
        return self.steps[0][0].get("n_features") is not None

    @property
    def allows_missing(self) -> bool:
        """Whether rows may have missing values."""
        return bool(getattr(class_of(self.name), "_allows_missing", False))

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each feature that a linear model of rows sees, by name; else nothing."""
        prefix = self.steps[-1][1]
        coef = self.tensors.get(f"{prefix}coef_")
        if coef is None or not self._reads_rows:
            return {}
        names = self.features.labels
        if not self.scales:
            for step in list(_leaves(self.estimator))[:-1]:
                names = [str(name) for name in step.get_feature_names_out(names)]
        return dict(zip(names, coef.tolist()))

    @property
    def features(self) -> Columns:
        """The columns that rows must have."""
        first, _ = self.steps[0]
        names, texts = (tuples(first.get(key)) for key in ("feature_names", "categories"))
        return Columns(first["n_features"], names, first.get("zero_based"), texts)

    def predict(self, data: Lists) -> NDArray[np.float64]:
        """Score of each row; higher ranks first within a query."""
        if self._scores_rows:
            return self.score(self.inputs(data))
        return self._predict_by_estimator(self.features.arrange(data))

    def predict_blocks(self, parts: Iterable[Lists]) -> Iterator[Lists]:
        """The same of rows that come some at a time, to the bit: their scores in place of features.

        Rows that are scaled by the others of their query are cut into whole queries first.
        """
        from didyma.data.row_blocks import rebatch, whole_queries

        predict: Callable[[Lists], NDArray[np.float64]] = self.predict
        if any(part["class"].startswith("Query") for part, _ in self.steps):
            parts = whole_queries(parts)
            if not self._scores_rows:
                yield from (part.with_items(predict(part)[:, None]) for part in parts)
                return
            parts = (part.with_items(self.inputs(part)) for part in parts)
            predict = lambda part: self.score(part.X)  # noqa: E731
        for part in rebatch(BLOCK, parts):  # a product of fewer rows would round otherwise
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
        return {**part["parameters"], **part["attributes"], **under(prefix, self.tensors)}

    def _predict_by_estimator(self, data: Lists) -> NDArray[np.float64]:
        """The same by the estimator; a pipeline that scales within queries is told the queries."""
        scores: NDArray[np.float64] = call_routed(self.estimator, "predict", data.X, qid=data.qid)
        return scores


@contextmanager
def restoring(path: str | PathLike[str] | None) -> Iterator[None]:
    """Turn what goes wrong with a file's contents into a ModelFileError that names the file."""
    try:
        yield
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        place = "" if path is None else f"{path}: "
        raise ModelFileError(f"{place}the model cannot be restored ({error})") from error


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


def version_of(model: Any) -> ModelVersion:
    """The version of a model: of what was loaded, of a file, or of an estimator here.

    >>> from didyma import SVMRanker
    >>> len(version_of(SVMRanker().fit([[1.0], [0.0]], [1, 0])).id)
    12
    """
    if isinstance(model, (str, PathLike)):
        return Model.read(model).version
    version: ModelVersion | None = getattr(model, "version_", None)
    return Model.of(model).version if version is None else version


def save(
    estimator: Any,
    path: str | PathLike[str],
    *,
    summary: Mapping[str, Any] | None = None,
    parent: Any = None,
) -> None:
    """Write a fitted estimator, or a pipeline of such, to ``path``, whole or not at all.

    ``summary`` is added to the numbers of the estimator's ``result_``, which the file keeps for
    people to read; ``parent`` is the model, or its file, that this one is to replace
    (`ModelVersion`). Warns of parameters that the file cannot keep.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import SVMRanker
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(SVMRanker().fit([[1.0], [0.0]], [1, 0]), path)
    >>> load(path).predict([[2.0], [1.0]]).argmax()
    np.int64(0)
    """
    model = Model.of(estimator, summary, parent)
    if lost := ", ".join(lost_parts(model.record)):
        warnings.warn(
            f"a model file cannot keep {lost}: the loaded model predicts as this one does, but "
            "needs set_params before another fit",
            stacklevel=3,
        )
    model.write(path)


def load(path: str | PathLike[str], trust: Iterable[str] = ()) -> Any:
    """Read the estimator or pipeline that `save` wrote.

    ``trust`` are import paths of classes that are not of this library, such as
    ["my.module:Length"] of a featuriser of one's own. A file that names another one is refused, and
    nothing of it is imported.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import SVMRanker
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(SVMRanker(C=3.0).fit([[1.0], [0.0]], [1, 0]), path)
    >>> load(path).C
    3.0
    """
    model = Model.read(path, trust)
    with restoring(path):
        return model.estimator


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model file holds, as plain values, without building the model.

    The keys are those of the record (see `didyma.model`) and ``format_version``,
    ``library_version``, ``version``, ``summary`` and ``tensors`` (type and shape of each array).
    """
    return Model.read(path).describe()


class Savable:
    """What every estimator of ours can do: be written to a model file, and be read from one.

    One that was read knows its version as ``version_``.
    """

    version_: ModelVersion | None = None

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file (see `didyma.model`)."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], trust: Iterable[str] = ()) -> Self:
        """Read a model file that holds a model of this class; see `didyma.load`."""
        loaded = load(path, trust)
        if not isinstance(loaded, cls):
            raise ModelFileError(f"{path}: holds a {type(loaded).__name__}, not a {cls.__name__}")
        return loaded

    def _check_state(self) -> None:
        """Raise ValueError if what a model file brought does not fit together; allocate nothing."""
