"""Typed fields: what an object keeps in a model file, read from the annotations of its class."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from didyma.values import is_whole

__all__ = [
    "REQUIRED",
    "Field",
    "Saved",
    "check_parameters",
    "check_value",
    "fields_of",
    "parameters_of",
]

Function = TypeVar("Function", bound=Callable[..., Any])

REQUIRED: Any = object()  # the default of a field that has none


def _once(function: Function) -> Function:
    """`functools.cache`, without what type checkers say about classes as keys."""
    return cast(Function, cache(function))


class Saved:
    """In `Annotated`, marks an attribute that a model file keeps.

    ``shape`` is that of an array: each size is a number, "n_features", the name of a parameter, the
    name of a list, which has this length, or any other word, which is one size wherever it stands
    in the class. ``key`` is the name in the file, by default that of the attribute without the last
    "_"; an ``inline`` object has its fields among those of the object that it belongs to.

    >>> class Line:
    ...     slopes_: Annotated[NDArray[np.float64], Saved("n_features")]
    ...     n_points_: Annotated[int, Saved()]
    >>> list(fields_of(Line))
    ['slopes_', 'n_points_']
    """

    def __init__(self, *shape: str | int, key: str | None = None, inline: bool = False) -> None:
        self.shape, self.key, self.inline = shape, key, inline


class Field(NamedTuple):
    """A field of a class: its name, type and what `Saved` says of it."""

    name: str
    kind: Any
    saved: Saved | None  # None of a field of a dataclass that is not marked
    default: Any = REQUIRED

    @property
    def key(self) -> str:
        """Its name in a file."""
        return (self.saved and self.saved.key) or self.name.strip("_")

    @property
    def inline(self) -> bool:
        """Whether its own fields stand in its place."""
        return self.saved is not None and self.saved.inline

    def check_array(self, place: str, array: NDArray[Any], sizes: dict[str, Any]) -> NDArray[Any]:
        """The array, if type and shape are those of the field; ``sizes`` learns new words."""
        types = [_scalar(option) for option in _options(self.kind)]
        allowed = [scalar for scalar in types if scalar is not None]
        if not any(_is_of(array, scalar) for scalar in allowed):
            expected = allowed[0].__name__ if allowed else spelled(self.kind)
            raise ValueError(f"{place} should be {expected}, but is {array.dtype}")
        if self.saved is None or not self.saved.shape:
            return array
        words = self.saved.shape
        expected_shape = [
            word if isinstance(word, int) else sizes.setdefault(word, size)
            for word, size in zip(words, array.shape)
        ]
        if array.ndim != len(words) or list(array.shape) != expected_shape:
            declared = "×".join(
                str(word if isinstance(word, int) else sizes.get(word, word)) for word in words
            )
            found = "×".join(map(str, array.shape)) or "one number"
            raise ValueError(f"{place} should be {declared}, but is {found}")
        return array

    def check_part(self, place: str, part: Any) -> Any:
        """The object, if it is of the field's class."""
        if not any(own is Any or type(part) is own for own in _options(self.kind)):
            raise ValueError(
                f"{place} should be {spelled(self.kind)}, but is a {type(part).__name__}"
            )
        return part

    def check_plain(self, place: str, value: Any) -> Any:
        """The value of JSON as one of the field's type.

        Of what was learned, numbers are finite and whole numbers are counts.
        """
        value = check_value(place, value, self.kind)
        if self.saved is not None and not isinstance(value, bool):
            if is_whole(value) and value < 0:
                raise ValueError(f"{place} should be a count, but is {value}")
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"{place} should be a finite number, but is {value}")
        return value


@_once
def fields_of(cls: Any) -> dict[str, Field]:
    """What a file keeps of a class: attributes and properties marked `Saved`, in dataclasses all.

    A subclass may mark an attribute of its base anew, or with None if it does not keep it.
    """
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        is_dataclass = "__dataclass_fields__" in vars(base)
        properties = {
            name: own.fget.__annotations__.get("return", Any)
            for name, own in vars(base).items()
            if isinstance(own, property) and own.fset is not None
        }
        for name, annotation in {**inspect.get_annotations(base), **properties}.items():
            if "ClassVar" in str(annotation):
                continue
            kind = _evaluated(annotation, vars(sys.modules[base.__module__]))
            kind, *marks = get_args(kind) if get_origin(kind) is Annotated else (kind,)
            mark = marks[0] if marks else None
            default = vars(base).get(name, REQUIRED) if is_dataclass else REQUIRED
            if is_dataclass or isinstance(mark, Saved):
                found[name] = Field(name, kind, mark, default)
            elif marks:
                found.pop(name, None)
    return found


@_once
def parameters_of(cls: Any) -> dict[str, Any]:
    """The type of each parameter of a constructor."""
    if cls.__init__ is object.__init__:
        return {}
    (_, *parameters) = inspect.signature(cls.__init__).parameters.values()
    namespace = getattr(cls.__init__, "__globals__", {})
    return {own.name: _evaluated(own.annotation, namespace) for own in parameters}


def check_parameters(owner: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ValueError if values are not those of parameters of these types."""
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{owner}.{name}: there is no such parameter")
        check_value(f"{owner}.{name}", value, known[name])


def _evaluated(annotation: Any, namespace: dict[str, Any]) -> Any:
    """The type that an annotation means; anything, if it names what only type checkers import."""
    if annotation is inspect.Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, namespace, include_extras=True)["it"]
    except NameError:
        return Any


def check_value(place: str, value: Any, kind: Any) -> Any:
    """A value of JSON as one of this type: where it says tuple, a list is one."""
    try:
        return _converted(value, kind)
    except _Misfit:
        raise ValueError(f"{place} should be {spelled(kind)}, but is {value!r:.40}") from None


class _Misfit(Exception):
    pass


SCALARS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", is_whole),
    float: ("a number", lambda value: is_whole(value) or isinstance(value, float)),
    str: ("a text", lambda value: isinstance(value, str)),
    type(None): ("null", lambda value: value is None),
}
SEQUENCES = (list, tuple, Sequence)


def _converted(value: Any, kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if kind in SCALARS:
        return _checked(value, SCALARS[kind][1](value))
    if origin in (Union, types.UnionType):
        return _first(value, arguments)
    if origin is Literal:
        return _checked(value, isinstance(value, str) and value in arguments)
    if origin in SEQUENCES:
        _checked(value, isinstance(value, (list, tuple)))
        if origin is not tuple or arguments[-1] is ...:
            arguments = (arguments[0],) * len(value)
        _checked(value, len(value) == len(arguments))
        items = map(_converted, value, arguments)
        return tuple(items) if origin is tuple else list(items)
    if origin in (dict, Mapping):
        _checked(value, isinstance(value, Mapping))
        return {_converted(k, arguments[0]): _converted(v, arguments[1]) for k, v in value.items()}
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        namespace = vars(sys.modules[kind.__module__])
        kinds = [_evaluated(own, namespace) for own in inspect.get_annotations(kind).values()]
        _checked(value, isinstance(value, (list, tuple)) and len(value) == len(kinds))
        return kind(*map(_converted, value, kinds))
    # What else a parameter may be has a text that users type; what has no type may be anything.
    return _checked(value, not isinstance(kind, type) or isinstance(value, str))


def _checked(value: Any, is_right: bool) -> Any:
    if not is_right:
        raise _Misfit
    return value


def _first(value: Any, kinds: Sequence[Any]) -> Any:
    """The value as one of the first of these types that it fits."""
    for kind in kinds:
        try:
            return _converted(value, kind)
        except _Misfit:
            continue
    raise _Misfit


def spelled(kind: Any) -> str:
    """A type in the words of a message.

    >>> spelled(float | None), spelled(tuple[str, ...]), spelled(tuple[float, float])
    ('a number or null', 'a list', 'a list of 2')
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in SCALARS:
        return SCALARS[kind][0]
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(spelled, arguments)))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is np.ndarray:
        return "an array"
    if origin is tuple and arguments[-1] is not ...:
        return f"a list of {len(arguments)}"
    if origin in SEQUENCES:
        return "a list"
    if origin in (dict, Mapping):
        return "a mapping"
    return f"a {kind.__name__}" if isinstance(kind, type) else "a plain value"


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


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
