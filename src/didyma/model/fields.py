"""Typed fields: what an object keeps in a model file, read from the annotations of its class.

What is no array is plain: a value that JSON can hold, or one with a text that users type.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from math import isfinite
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.parameters import Lost
from didyma.protocol import Estimator
from didyma.values import is_whole

REQUIRED: Any = object()  # the default of a field that has none


class Saved:
    """In `Annotated`, marks an attribute that a model file keeps.

    ``shape`` is that of an array: each size is a number, "n_features", the name of a parameter, the
    name of a list, which has this length, or any other word, which is one size wherever it stands
    in the class. ``key`` is the name in the file, by default that of the attribute without "_"; an
    ``inline`` object has its fields among those of the object that it belongs to. A file has
    nothing of an attribute that is its ``default``, as files from before there was one have not.

    >>> class Line:
    ...     slopes_: Annotated[NDArray[np.float64], Saved("n_features")]
    ...     n_points_: Annotated[int, Saved()]
    >>> list(fields_of(Line))
    ['slopes_', 'n_points_']
    """

    def __init__(
        self,
        *shape: str | int,
        key: str | None = None,
        inline: bool = False,
        default: Any = REQUIRED,
    ) -> None:
        self.shape, self.key, self.inline, self.default = shape, key, inline, default


class Field(NamedTuple):
    """A field of a class; ``place`` is its name in messages, ``key`` that in a file."""

    place: str
    key: str
    kind: Any
    shape: tuple[str | int, ...]
    inline: bool
    default: Any
    is_brief: bool  # a file does not have the default

    def is_left_out(self, value: Any) -> bool:
        """Whether a file needs nothing of this value."""
        return self.is_brief and (
            value is self.default or (type(value) is type(self.default) and value == self.default)
        )

    def check_array(self, array: NDArray[Any], sizes: dict[Any, Any]) -> NDArray[Any]:
        """The array, if type and shape are those of the field; ``sizes`` learns new words."""
        scalars = [scalar for option in options(self.kind) if (scalar := _scalar(option))]
        if not any(_is_of(array, scalar) for scalar in scalars):
            expected = scalars[0].__name__ if scalars else _spelled(self.kind)
            raise ValueError(f"{self.place} should be {expected}, but is {array.dtype}")
        if not self.shape:
            return array
        for word, size in zip(self.shape, array.shape):
            sizes.setdefault(word, word if isinstance(word, int) else size)
        expected_shape = tuple(sizes.get(word, word) for word in self.shape)
        if array.shape != expected_shape:
            declared, actual = (
                "×".join(map(str, shape)) for shape in (expected_shape, array.shape)
            )
            raise ValueError(f"{self.place} should be {declared}, but is {actual or 'one number'}")
        return array

    def check_part(self, part: Any) -> Any:
        """The object, if it is of the field's class."""
        if not any(option is Any or type(part) is option for option in options(self.kind)):
            name = type(part).__name__
            raise ValueError(f"{self.place} should be {_spelled(self.kind)}, but is a {name}")
        return part

    def check_plain(self, value: Any) -> Any:
        """The value of JSON as one of the field's type; numbers are finite, whole ones counts."""
        value = convert(self.place, value, self.kind)
        if is_whole(value) and value < 0:
            raise ValueError(f"{self.place} should be a count, but is {value}")
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"{self.place} should be a finite number, but is {value}")
        return value


@cache
def fields_of(cls: Any) -> dict[str, Field]:
    """What a file keeps of a class: attributes and properties marked `Saved`.

    Of data classes that are no estimators, all fields are kept.
    A subclass may mark an attribute of its base anew, or with None if it does not keep it.
    """
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        is_value = "__dataclass_fields__" in vars(base) and not issubclass(base, Estimator)
        annotations = inspect.get_annotations(base)
        for name, member in vars(base).items():
            if isinstance(member, property) and member.fset is not None:
                annotations[name] = member.fget.__annotations__.get("return", Any)
        for name, annotation in annotations.items():
            kind = _evaluated(annotation, vars(sys.modules[base.__module__]))
            kind, *marks = get_args(kind) if get_origin(kind) is Annotated else (kind,)
            if isinstance(mark := marks[0] if marks else Saved(), Saved) and (marks or is_value):
                default = vars(base).get(name, REQUIRED) if is_value else mark.default
                place, key = f"{cls.__name__.strip('_')}.{name}", mark.key or name.strip("_")
                is_brief = mark.default is not REQUIRED
                fields[name] = Field(place, key, kind, mark.shape, mark.inline, default, is_brief)
            elif marks:
                fields.pop(name, None)
    return fields


def check_parameters(
    cls: Any, values: Mapping[str, Any], names: Sequence[str] | None = None
) -> None:
    """Raise ValueError if values are not those of a class's parameters, or of these of them."""
    kind_of, owner = _parameters_of(cls), cls.__name__.strip("_")
    for name, value in values.items():
        if name not in (kind_of if names is None else names):
            raise ValueError(f"{owner}.{name}: there is no such parameter")
        kinds = [option for option in options(kind_of[name]) if option not in SCALARS]
        if not (isinstance(value, str) and any(isinstance(option, type) for option in kinds)):
            convert(f"{owner}.{name}", value, kind_of[name])  # others are texts that users type


@cache
def _parameters_of(cls: Any) -> dict[str, Any]:
    """The type of each parameter of a constructor."""
    if cls.__init__ is object.__init__:
        return {}
    (_, *parameters) = inspect.signature(cls.__init__).parameters.values()
    namespace: dict[str, Any] = {}  # fields of a data class are annotated where they are declared
    for base in reversed(cls.__mro__):
        namespace |= vars(sys.modules[base.__module__])
    return {parameter.name: _evaluated(parameter.annotation, namespace) for parameter in parameters}


def _evaluated(annotation: Any, namespace: dict[str, Any]) -> Any:
    """The type that an annotation means; anything, if it names what only type checkers import."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, namespace, include_extras=True)["it"]
    except (NameError, TypeError):  # of ClassVar, and where there is no annotation
        return Any


def convert(place: str, value: Any, kind: Any) -> Any:
    """A value of JSON as one of this type, so that tuples are tuples; ValueError if it is none."""
    try:
        return _converted(value, kind)
    except _Misfit:
        raise ValueError(f"{place} should be {_spelled(kind)}, but is {value!r:.40}") from None


class _Misfit(Exception):
    pass


SCALARS: dict[Any, Callable[[Any], bool]] = {
    Any: lambda value: True,
    bool: lambda value: isinstance(value, bool),
    int: is_whole,
    float: lambda value: is_whole(value) or isinstance(value, float),
    str: lambda value: isinstance(value, str),
    type(None): lambda value: value is None,
}
WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "null",
    np.ndarray: "an array",
    dict: "a mapping",
    Mapping: "a mapping",
    **dict.fromkeys((list, tuple, Sequence), "a list"),
}


def _converted(value: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        for option in inner:
            try:
                return _converted(value, option)
            except _Misfit:
                continue
        raise _Misfit
    if origin in (dict, Mapping):
        _require(isinstance(value, Mapping))
        return {_converted(k, inner[0]): _converted(item, inner[1]) for k, item in value.items()}
    is_record = isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_make")
    if is_record or origin in (list, tuple, Sequence):
        _require(isinstance(value, (list, tuple)))
        if is_record:
            space = vars(sys.modules[kind.__module__])
            kinds = [_evaluated(item, space) for item in inspect.get_annotations(kind).values()]
        else:
            fixed = origin is tuple and inner[-1] is not ...
            kinds = list(inner) if fixed else [inner[0]] * len(value)
        _require(len(value) == len(kinds))
        items = map(_converted, value, kinds)
        return kind(*items) if is_record else tuple(items) if origin is tuple else list(items)
    if origin is Literal:
        _require(isinstance(value, str) and value in inner)
    else:  # no value of JSON is an object of another class
        _require(SCALARS[kind](value) if kind in SCALARS else not isinstance(kind, type))
    return value


def _require(condition: bool) -> None:
    if not condition:
        raise _Misfit


def _spelled(kind: Any) -> str:
    """A type in the words of a message.

    >>> _spelled(float | None), _spelled(tuple[str, ...])
    ('a number or null', 'a list')
    """
    kinds = [get_origin(option) or option for option in options(kind)]
    words = (WORDS.get(each) or str(getattr(each, "__name__", "another value")) for each in kinds)
    return " or ".join(dict.fromkeys(words))


def options(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _scalar(kind: Any) -> Any:
    """The type of the numbers of an array, None of what is no array."""
    if get_origin(kind) is not np.ndarray:
        return None
    scalar = get_args(get_args(kind)[1])[0]
    return np.generic if scalar is Any else get_origin(scalar) or scalar


def _is_of(array: NDArray[Any], scalar: Any) -> bool:
    """Numbers of double precision may have been kept in single precision."""
    if scalar in (np.float64, np.floating):
        return array.dtype in (np.float64, np.float32)
    return np.issubdtype(array.dtype, scalar)


# Values that have a text, by their root class, and the function that reads the text.
READERS = {
    "didyma.ranking.losses.ItemwiseLoss": "didyma.ranking.losses.parse_loss",
    "didyma.ranking.feature_maps.FeatureMap": "didyma.ranking.feature_maps.parse_feature_map",
    "ir_measures.measures.base.Measure": "didyma.metrics.measures.parse",
}


def called(value: Any) -> str:
    """What to call a parameter that is lost."""
    if isinstance(value, Lost):
        return value.what
    name = getattr(value, "__qualname__", None)
    return f"a {type(value).__name__}" if name is None else f"the {type(value).__name__} {name}"


def summary_of(estimator: Any) -> dict[str, Any]:
    """The plain values of the ``result_`` of an estimator, or of a pipeline's last step.

    Times are left out: files of equal training are equal.
    """
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    result = getattr(final, "result_", None)
    names = [field.name for field in fields(result)] if is_dataclass(result) else []
    values = {name: getattr(result, name) for name in names if name != "seconds"}
    values["n_queries"] = getattr(final, "n_queries_", None)
    brief = {key: value for key, value in values.items() if not isinstance(value, np.ndarray)}
    return {key: plain(value) for key, value in brief.items() if is_plain(value)}


def is_plain(value: Any) -> bool:
    """Whether `plain` can make JSON of a value."""
    try:
        plain(value)
    except _Misfit:
        return False
    return True


def plain(value: Any) -> Any:
    """JSON for a plain value."""
    if isinstance(value, Mapping):
        _require(all(isinstance(key, str) for key in value))
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        _require(value.dtype.kind in "biufU")
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _text_of(value)


def _text_of(value: Any) -> str:
    """The text that restores a value whole, as users type it."""
    for cls in type(value).__mro__:
        if reader := READERS.get(f"{cls.__module__}.{cls.__qualname__}"):
            module, _, function = reader.rpartition(".")
            try:
                _require(getattr(import_module(module), function)(str(value)) == value)
            except DataError:
                break
            return str(value)
    raise _Misfit


def tuples(value: Any) -> Any:
    """JSON has no tuples, parameters no lists."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def checked_plain(value: Any, place: str) -> Any:
    """JSON for a plain value, or an error that says where the value is that has none."""
    try:
        return plain(value)
    except _Misfit:
        problem = f"a value of type {type(value).__name__} cannot be saved in a model file"
        raise DataError(problem, field=place) from None
