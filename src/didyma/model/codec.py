"""Objects as records of plain values and arrays, and back, by the typed fields of their classes.

`Serialisable` are objects that are no estimators; `encode` and `decode` take estimators, pipelines
and these.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.model.fields import (
    REQUIRED,
    Field,
    called,
    check_parameters,
    checked_plain,
    convert,
    fields_of,
    is_plain,
    options,
    plain,
    tuples,
)
from didyma.model.registry import CLASSES, class_of, declaration, is_own, name_of
from didyma.parameters import Lost
from didyma.values import is_whole

Record: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, NDArray[Any]]
State: TypeAlias = tuple[Tensors, Record]
"""What was learned: arrays by name, and values that JSON can hold."""


class Serialisable:
    """What a model file keeps of an object that is no estimator: its fields (`Saved`).

    A field that is such an object itself has its values under the field's key, its arrays as
    "key/name"; where the field's class is abstract, they stand with the name of the class. Of
    several in a tuple, the arrays are "0/name", "1/name", …

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Line(Serialisable):
    ...     slope: float
    ...     points: NDArray[np.float64]
    >>> Line(2.0, np.ones(1)).state()
    ({'points': array([1.])}, {'slope': 2.0})
    >>> Line.from_state({"points": np.ones(1)}, {"slope": "steep"})
    Traceback (most recent call last):
    ...
    ValueError: Line.slope should be a number, but is 'steep'
    """

    def state(self) -> State:
        """What was chosen and learned, as arrays and values that JSON can hold."""
        arrays: Tensors = {}
        values: Record = {}
        cls: Any = type(self)
        for name, field in fields_of(cls).items():
            key, value = field.key, getattr(self, name)
            if field.is_left_out(value):
                continue
            if isinstance(value, np.ndarray):
                arrays[key] = value
            elif isinstance(value, Serialisable):
                inner, record = _state(value, field.kind)
                arrays |= inner if field.inline else over(f"{key}/", inner)
                values |= record if field.inline else {key: record}
            elif kind := _kind_of_items(field.kind):
                states = [_state(item, kind) for item in value]
                values[key] = [record for _, record in states]
                for n, (inner, _) in enumerate(states):
                    arrays |= over(f"{n}/", inner)
            else:
                values[key] = checked_plain(value, field.place)
        return arrays, values

    @classmethod
    def from_state(cls, arrays: Tensors, values: Record) -> Self:
        """The object that has this state; ValueError if it does not fit together."""
        arrays, values, declared = dict(arrays), dict(values), fields_of(cls)  # type: ignore[arg-type]
        sizes: Record = {
            key: len(entry) for key, entry in values.items() if isinstance(entry, list)
        }
        learned = {
            name: _taken(field, arrays, values, sizes)
            for name, field in sorted(declared.items(), key=lambda item: item[1].inline)
        }
        if unknown := [*arrays, *values]:
            raise ValueError(f"{cls.__name__} has no {', '.join(unknown)}")
        parameters = inspect.signature(cls).parameters
        needed = {name for name, entry in parameters.items() if entry.default is entry.empty}
        if needed <= learned.keys():
            made = cls(**{name: learned.pop(name) for name in [*learned] if name in parameters})
        else:  # such as an estimator to fit, of which a file has what it has learned
            made = cls.__new__(cls)
        vars(made).update(learned)
        made._check_state()
        return made

    def _check_state(self) -> None:
        """Raise ValueError if what a file brought does not fit together; allocate nothing."""


def _taken(field: Field, arrays: Tensors, values: Record, sizes: Record) -> Any:
    """The value of a field, which is removed from arrays and values."""
    key, kind = field.key, field.kind
    if field.inline:
        state = dict(arrays), dict(values)
        arrays.clear()
        values.clear()
        return kind.from_state(*state)
    if key in arrays:
        return field.check_array(arrays.pop(key), sizes)
    if key not in values:
        if field.default is REQUIRED:
            raise ValueError(f"{field.place} is missing")
        return field.default
    value = values.pop(key)
    part = next((item for item in options(kind) if _is_part(item)), None)
    if part is not None and value is not None:
        return _restored(pop_under(f"{key}/", arrays), value, part)
    if inner := _kind_of_items(kind):
        states = [(pop_under(f"{n}/", arrays), item) for n, item in enumerate(value)]
        return tuple(_restored(*state, inner) for state in states)
    return field.check_plain(value)


def _state(value: Serialisable, kind: Any) -> State:
    """The state of an object, with the name of its class where only an abstract one is declared."""
    arrays, record = value.state()
    if not inspect.isabstract(kind):
        return arrays, record
    return arrays, {"class": name_of(type(value)), "state": record}


def _restored(arrays: Tensors, record: Any, kind: Any) -> Any:
    if not inspect.isabstract(kind):
        return kind.from_state(arrays, record)
    cls = class_of(record["class"])
    is_kind = isinstance(cls, type) and issubclass(cls, kind)
    if not is_kind:
        raise ValueError(f"{record['class']} is no {kind.__name__}")
    return cls.from_state(arrays, record["state"])


def _kind_of_items(kind: Any) -> Any:
    """The class of the objects of a tuple, None if they are plain."""
    first = get_args(kind)[0] if get_origin(kind) is tuple else None
    return first if _is_part(first) else None


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Serialisable)


def under(prefix: str, arrays: Tensors) -> Tensors:
    """The arrays whose names begin with ``prefix``, by what follows it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def pop_under(prefix: str, arrays: Tensors) -> Tensors:
    """The same, which are removed from ``arrays``."""
    chosen = under(prefix, arrays)
    for name in chosen:
        del arrays[prefix + name]
    return chosen


def over(prefix: str, arrays: Tensors) -> Tensors:
    """The arrays by ``prefix`` and their names."""
    return {prefix + name: array for name, array in arrays.items()}


KEYS = {
    *("class", "parameters", "lost", "attributes", "parts", "arrays", "steps", "state"),
    *("n_features", "feature_names", "zero_based", "categories"),
}

# Parameters that once had another name, so that older files are read.
RENAMED = {"seed": "random_state"}


def encode(model: Any) -> State:
    """The arrays and the record of an estimator, a pipeline or a `Serialisable`."""
    name = type(model).__name__
    if isinstance(model, Serialisable) and not hasattr(model, "get_params"):
        name = name_of(type(model))
        arrays, state = model.state()
        empty: Record = {"parameters": {}, "lost": {}, "attributes": {}}
        return _contiguous(arrays), {"class": name, **empty, "state": state, "n_features": None}
    if name not in CLASSES or class_of(name) is not type(model):
        savable = ", ".join(CLASSES)
        raise DataError(f"a {name} cannot be saved in a model file; what can is {savable}")
    declared = declaration(name)
    transient = getattr(declared, "_transient", ())
    values = model.get_params(deep=False).items()
    parameters = {key: value for key, value in values if key not in transient}
    if name == "Pipeline":
        states = [encode(step) for _, step in model.steps]
        arrays = {}
        for n, (inner, _) in enumerate(states):
            arrays |= over(f"{n}/", inner)
        steps = [[step, record] for (step, _), (_, record) in zip(model.steps, states)]
        return arrays, {"class": name, **_described(name, parameters), "steps": steps}
    learned = {attribute: getattr(model, attribute) for attribute in fields_of(declared)}
    names = getattr(model, "feature_names_in_", None)
    n_features = getattr(model, "n_features_in_", None)
    zero_based = getattr(model, "zero_based_in_", None)
    columns = n_features, None if names is None else tuple(names), zero_based
    arrays, record = record_of(name, parameters, learned, *columns)
    categories = getattr(model, "categories_in_", None)  # of which older files know nothing
    return arrays, record if categories is None else {**record, "categories": plain(categories)}


def record_of(
    name: str,
    parameters: Mapping[str, Any],
    learned: Mapping[str, Any],
    n_features: int | None,
    feature_names: Sequence[str] | None,
    zero_based: bool | None,
) -> State:
    """The arrays and the record of an estimator with these parameters, which has learned this."""
    arrays = {key: value for key, value in learned.items() if isinstance(value, np.ndarray)}
    parts = {
        key: encode(value) for key, value in learned.items() if type(value).__name__ in CLASSES
    }
    families = {key: value for key, value in learned.items() if _is_family(value)}
    special = {*arrays, *parts, *families}
    for key, family in families.items():
        arrays |= over(f"{key}/", family)
    for key, (inner, _) in parts.items():
        arrays |= over(f"{key}/", inner)
    attributes = {key: value for key, value in learned.items() if key not in special}
    return _contiguous(arrays), {
        "class": name,
        **_described(name, parameters),
        "attributes": {key: checked_plain(attributes[key], f"{name}.{key}") for key in attributes},
        "parts": {key: record for key, (_, record) in parts.items()},
        "arrays": {key: list(family) for key, family in families.items()},
        "n_features": n_features,
        "feature_names": None if feature_names is None else list(feature_names),
        "zero_based": zero_based,
    }


def check(record: Record, arrays: Tensors) -> None:
    """Raise ValueError if values and arrays are not those that the record's class declares.

    What has no columns, such as a network, is checked when it is built: its class may need another
    package.
    """
    if _name(record) == "Pipeline":
        for step, own_arrays in _inner_steps(record, arrays):
            check(step, own_arrays)
    elif record.get("n_features") is not None:
        _parameters(record)
        _learned(record, arrays)


def decode(record: Record, arrays: Tensors) -> Any:
    """The estimator, pipeline or `Serialisable` of a record; the inverse of `encode`."""
    name = _name(record)
    cls = class_of(name)
    if is_own(name) and not (isinstance(cls, type) and issubclass(cls, Serialisable)):
        raise ValueError(f"{name} is no Serialisable")
    if not hasattr(cls, "get_params"):
        return cls.from_state(arrays, record["state"])
    parameters = _parameters(record)
    if name == "Pipeline":
        steps = [decode(*step) for step in _inner_steps(record, arrays)]
        names = [step for step, _ in record["steps"]]
        return cls([*zip(names, steps)], **parameters)
    estimator = cls(**parameters)
    for attribute, value in _learned(record, arrays).items():
        setattr(estimator, attribute, value)
    for attribute, record_of_part in record.get("parts", {}).items():
        part = decode(record_of_part, under(f"{attribute}/", arrays))
        setattr(estimator, attribute, fields_of(cls)[attribute].check_part(part))
    if record["n_features"] is not None:
        estimator.n_features_in_ = record["n_features"]
        estimator.zero_based_in_ = record.get("zero_based")
        if "categories" in record:
            estimator.categories_in_ = tuples(record["categories"])
    if record["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    if hasattr(estimator, "_check_state"):
        estimator._check_state()
    return estimator


def _name(record: Record) -> str:
    """The class of a record that has nothing unknown."""
    name: str = record["class"]
    if name not in CLASSES and not is_own(name):
        raise ValueError(f"it is of a class that this version does not know, {name}")
    if unknown := record.keys() - KEYS:
        raise ValueError(f"{name} has no {', '.join(sorted(unknown))}")
    return name


def _inner_steps(record: Record, arrays: Tensors) -> Iterator[tuple[Record, Tensors]]:
    """The records of the steps of a pipeline with their arrays, of which none may be left."""
    arrays, steps = dict(arrays), record["steps"]
    for n, (_, step) in enumerate(steps):
        yield step, pop_under(f"{n}/", arrays)
    if arrays:
        raise ValueError(f"Pipeline has no {', '.join(arrays)}")


def _parameters(record: Record) -> Record:
    """The parameters of a record, if they are those of its class; lists of JSON are tuples."""
    values = {RENAMED.get(key, key): value for key, value in record.get("parameters", {}).items()}
    lost = {key: Lost(what) for key, what in record.get("lost", {}).items()}
    check_parameters(declaration(record["class"]), values)
    return {key: tuples(value) for key, value in values.items()} | lost


def _learned(record: Record, arrays: Tensors) -> Record:
    """What an estimator has learned but for its parts, if all of it is as its class declares."""
    name = record["class"]
    declared = fields_of(declaration(name))
    attributes, parts = record["attributes"], record.get("parts", {})
    families: Record = record.get("arrays", {})
    _check_columns(record)
    sizes: Record = {key: value for key, value in record["parameters"].items() if is_whole(value)}
    sizes |= {key: len(value) for key, value in attributes.items() if isinstance(value, list)}
    sizes["n_features"] = record["n_features"]
    arrays = {key: array for key, array in arrays.items() if key.partition("/")[0] not in parts}
    learned: Record = {}
    for key, field in declared.items():
        if key in arrays:
            learned[key] = field.check_array(arrays.pop(key), sizes)
        elif key in families:
            learned[key] = {member: arrays.pop(f"{key}/{member}") for member in families[key]}
        elif key in attributes:
            learned[key] = field.check_plain(attributes[key])
        elif key not in parts:
            raise ValueError(f"{field.place} is missing")
    names = (*attributes, *parts, *families)
    if unknown := [*arrays, *(key for key in names if key not in declared)]:
        raise ValueError(f"{name} has no {', '.join(unknown)}")
    return learned


def _check_columns(record: Record) -> None:
    names, count = record["feature_names"], record["n_features"]
    if not (count is None or (is_whole(count) and count >= 0)):
        raise ValueError(f"expected a number of features, found {count!r:.40}")
    convert("feature_names", names, list[str] | None)
    if names is not None and len(names) != count:
        raise ValueError(f"expected names of {count!r:.20} features, found {names!r:.40}")
    convert("zero_based", record.get("zero_based"), bool | None)
    texts = convert("categories", record.get("categories"), list[list[str] | None] | None)
    if texts is not None and len(texts) != count:
        raise ValueError(f"expected categories of {count!r:.20} features, found {len(texts)}")


def _described(name: str, parameters: Mapping[str, Any]) -> Record:
    """The parameters that a file can keep, and what those are that it cannot."""
    lost = {key: called(value) for key, value in parameters.items() if not is_plain(value)}
    texts = {key: plain(value) for key, value in parameters.items() if key not in lost}
    try:
        check_parameters(declaration(name), texts)
    except ValueError as error:
        raise DataError(f"a parameter cannot be saved in a model file: {error}") from None
    return {"parameters": texts, "lost": lost}


def lost_parts(record: Record) -> Iterator[str]:
    """What a record could not keep, with the places."""
    for name, what in record["lost"].items():
        yield f"{record['class']}.{name} ({what})"
    parts = [part for _, part in record.get("steps", [])]
    for part in (*parts, *record.get("parts", {}).values()):
        yield from lost_parts(part)


def _is_family(value: Any) -> bool:
    """Whether this is a dictionary of arrays, as a network's parameters are."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(array, np.ndarray) for array in value.values())
    )


def _contiguous(arrays: Tensors) -> Tensors:
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
