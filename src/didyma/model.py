"""Model files: one safetensors file with the learned arrays and, in its header, what they mean.

The header's metadata are texts: ``format`` ("didyma"), ``format_version``, ``library_version``,
``model`` and ``summary`` (JSON) and ``checksum`` (SHA-256 over all of these and the arrays). The
model is a record

    {"class": "SVMRanker", "parameters": {…}, "lost": {}, "attributes": {…}, "n_features": 46,
     "feature_names": ["bm25", …] or null, "zero_based": true, false or null}

or, for a scikit-learn pipeline, ``{"class": "Pipeline", "steps": [[name, record], …]}``. The array
``coef_`` of a model is the tensor "coef_", that of a pipeline's second step "1/coef_". An attribute
that is a model itself stands under "parts" as a record of its own, its arrays as "name/coef_"; one
that is a dictionary of arrays has its keys under "arrays", and the tensors "name/key". Parameters
that have no text, such as a loss of one's own, are "lost": the file says what they were, `save`
warns, and the restored model predicts as before but refuses to be fitted until they are set.

Reading runs no code of the file: classes come from the table below, parameters are plain values or
the texts that users type, and everything is checked before anything is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from os import PathLike
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma import __version__
from didyma.errors import DataError, ModelFileError
from didyma.files import replace_when_done

__all__ = ["Lost", "Savable", "describe", "load", "save"]

FORMAT = "didyma"
FORMAT_VERSION = 1

# What a file may name, and the module that we import it from.
CLASSES = {
    "AdditiveSVMRanker": "didyma.estimators.additive",
    "SVMRanker": "didyma.estimators.svm",
    "ClassificationRanker": "didyma.estimators.classification",
    "LatentPerceptronRanker": "didyma.estimators.latent",
    "LatentSVMRanker": "didyma.estimators.latent",
    "PolynomialRanker": "didyma.estimators.classification",
    "CoreferenceResolver": "didyma.estimators.coreference",
    "MotifFinder": "didyma.estimators.motif",
    "TrigramTagger": "didyma.estimators.tagger",
    "LowRankReranker": "didyma.estimators.low_rank",
    "BoostingReranker": "didyma.estimators.boosting",
    "NBestReranker": "didyma.estimators.nbest",
    "DependencyParser": "didyma.nn.parser",
    "EntailmentClassifier": "didyma.nn.esim",
    "PassageRanker": "didyma.nn.passage",
    "LatentStructuredPerceptron": "didyma.estimators.structured",
    "LatentStructuredSVM": "didyma.estimators.structured",
    "StructuredPerceptron": "didyma.estimators.structured",
    "StructuredSVM": "didyma.estimators.structured",
    "Bag": "didyma.features.bags",
    "JointFeatures": "didyma.features.joint",
    "ScoreBinner": "didyma.features.binning",
    "QueryMinMaxScaler": "didyma.features.scaling",
    "QueryPercentileScaler": "didyma.features.scaling",
    "QueryStandardScaler": "didyma.features.scaling",
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

# Parameters that are not part of a model: our classes name theirs in `_transient`.
TRANSIENT = {"Pipeline": ("steps", "memory")}

# Values that have a text, by their root class, and the function that reads the text.
READERS = {
    "didyma.tasks.losses.RankingLoss": "didyma.tasks.losses.parse_loss",
    "didyma.tasks.feature_maps.FeatureMap": "didyma.tasks.feature_maps.parse_feature_map",
    "ir_measures.measures.base.Measure": "didyma.metrics.measures.parse",
}

Record: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, NDArray[Any]]


def save(
    estimator: Any, path: str | PathLike[str], *, summary: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator, or a pipeline of such, to ``path``, whole or not at all.

    ``summary`` is added to the numbers of the estimator's ``result_``, which the file keeps for
    people to read. Warns of parameters that it cannot keep.
    """
    from safetensors.numpy import save as serialise
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    tensors: Tensors = {}
    record = _record(estimator, tensors, "")
    if lost := ", ".join(_lost(record)):
        warnings.warn(
            f"a model file cannot keep {lost}: the loaded model predicts as this one does, but "
            "needs set_params before another fit",
            stacklevel=3,
        )
    texts = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "model": json.dumps(record),
        "summary": json.dumps({**_summary(estimator), **(summary or {})}),
    }
    contents = serialise(tensors, {**texts, "checksum": _checksum(texts, tensors)})
    with replace_when_done(path, "wb") as file:
        file.write(contents)


def load(path: str | PathLike[str]) -> Any:
    """Read the estimator or pipeline that `save` wrote."""
    texts, tensors = _read(path)
    return _parse(path, lambda: _build(json.loads(texts["model"]), tensors, ""))


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


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model file holds, as plain values, without building the model.

    The keys are those of the record (see above) and ``format_version``, ``library_version``,
    ``summary`` and ``tensors`` (type and shape of each array).
    """
    texts, tensors = _read(path)
    return _parse(
        path,
        lambda: {
            "format_version": int(texts["format_version"]),
            "library_version": texts["library_version"],
            **json.loads(texts["model"]),
            "summary": json.loads(texts["summary"]),
            "tensors": {
                name: {"dtype": str(array.dtype), "shape": list(array.shape)}
                for name, array in tensors.items()
            },
        },
    )


def _parse(path: str | PathLike[str], make: Callable[[], Any]) -> Any:
    """What ``make`` makes of the file's contents, if they mean anything."""
    try:
        return make()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: the model cannot be restored ({error})") from error


def _record(estimator: Any, tensors: Tensors, prefix: str) -> Record:
    """Describe an estimator, and put its arrays into ``tensors``."""
    name = type(estimator).__name__
    if name not in CLASSES or type(estimator) is not _class(name):
        known = ", ".join(CLASSES)
        raise DataError(f"a {name} cannot be saved in a model file; what can is {known}")
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


def _build(record: Record, tensors: Tensors, prefix: str) -> Any:
    """The estimator of a record; the inverse of `_record`."""
    name = record["class"]
    if name not in CLASSES:
        raise ValueError(f"it is of a class that this version does not know, {name}")
    parameters = {key: _tuples(value) for key, value in record.get("parameters", {}).items()}
    parameters |= {key: Lost(what) for key, what in record.get("lost", {}).items()}
    if name == "Pipeline":
        steps = [
            (step, _build(part, tensors, f"{prefix}{i}/"))
            for i, (step, part) in enumerate(record["steps"])
        ]
        return _class(name)(steps, **parameters)
    estimator = _class(name)(**parameters)
    for attribute in _state(name):
        setattr(estimator, attribute, _attribute(attribute, record, tensors, prefix))
    if record["n_features"] is not None:
        estimator.n_features_in_ = record["n_features"]
        estimator.zero_based_in_ = record["zero_based"]
    if record["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    return estimator


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
    from safetensors import SafetensorError, safe_open

    if os.path.isdir(path):
        raise ModelFileError(f"{path}: expected a model file, found a folder")
    try:
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata() or {}
            _check_format(path, texts)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (OSError, SafetensorError, AttributeError, TypeError) as error:
        raise ModelFileError(f"{path}: damaged, or not a model file ({error})") from None
    checksum = texts.pop("checksum", None)
    if checksum != _checksum(texts, tensors):
        raise ModelFileError(f"{path}: damaged, its contents do not match their checksum")
    return texts, tensors


def _check_format(path: str | PathLike[str], texts: Mapping[str, str]) -> None:
    if texts.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a model of this library")
    version = texts.get("format_version", "")
    if not version.isdecimal():
        raise ModelFileError(f"{path}: damaged, its format version is {version!r}")
    if int(version) > FORMAT_VERSION:
        writer = texts.get("library_version", "of a later version")
        raise ModelFileError(
            f"{path}: written by didyma {writer} in format {version}, but this is didyma "
            f"{__version__}, which reads format {FORMAT_VERSION}: upgrade to load it"
        )


def _checksum(texts: Mapping[str, str], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _class(name: str) -> Any:
    return getattr(import_module(CLASSES[name]), name)


def _state(name: str) -> tuple[str, ...]:
    return STATE[name] if name in STATE else getattr(_class(name), "_state", ())


def _summary(estimator: Any) -> dict[str, Any]:
    """The plain values of the ``result_`` of an estimator, or of a pipeline's last step."""
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    result = getattr(final, "result_", None)
    names = [field.name for field in fields(result)] if is_dataclass(result) else []
    found = {name: getattr(result, name) for name in names}
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
