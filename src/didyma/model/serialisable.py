"""Objects that are no estimators as plain values and arrays, and back, by their typed fields."""

from __future__ import annotations

import inspect
from typing import Any, Self, TypeAlias, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from didyma.model.fields import REQUIRED, Field, fields_of, options
from didyma.model.plain import checked_plain
from didyma.model.registry import class_of, name_of

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
