"""What a compiled kernel depends on, as a short text.

A kernel is compiled together with everything that it calls, so its machine code is out of date when
any of that changes. The fingerprint covers the code of the function and, by name, each global that
it uses: other kernels, plain functions, constants. Two functions with one fingerprint compile to
the same thing.
"""

from __future__ import annotations

import hashlib
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["fingerprint"]

RELEASED = ("numpy", "numba", "scipy")  # whose functions Numba knows by name
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


def fingerprint(kernel: Any) -> str:
    """A text that changes whenever what a function or `Kernel` compiles to may change.

    >>> first = fingerprint(lambda x: x + 1)
    >>> first == fingerprint(lambda x: x + 1), first == fingerprint(lambda x: x + 2)
    (True, False)
    """
    return hashlib.sha256(repr(_value(kernel, [], ())).encode()).hexdigest()[:16]


def _function(function: Any, callers: tuple[Any, ...]) -> Any:
    if function in callers:  # it calls itself
        return "caller", callers.index(function)
    callers = (*callers, function)
    names = sorted(_names(function.__code__))
    scope = function.__globals__
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return (
        _code(function.__code__),
        [_value(value, names, callers) for value in (*(function.__defaults__ or ()), *cells)],
        [(name, _value(scope[name], names, callers)) for name in names if name in scope],
    )


def _names(code: CodeType) -> set[str]:
    """The names of globals and attributes in a code and in the functions that it defines."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _code(code: CodeType) -> Any:
    constants = [
        _code(constant) if isinstance(constant, CodeType) else repr(constant)
        for constant in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _value(value: Any, names: list[str], callers: tuple[Any, ...]) -> Any:
    """What a kernel sees of a global value, some of whose attributes it may use by ``names``."""
    if isinstance(value, FunctionType):
        return _function(value, callers)
    if isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] in RELEASED:
            return value.__name__
        used = [name for name in names if hasattr(value, name)]
        return [(name, _value(getattr(value, name), names, callers)) for name in used]
    if hasattr(value, "py_func"):  # a kernel
        options = {name: _ordered(option) for name, option in sorted(value.options.items())}
        return options, _function(value.py_func, callers)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return [_value(item, names, callers) for item in value]
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, type | BuiltinFunctionType | np.ufunc):
        return type(value).__name__, value.__name__, getattr(value, "_fields", ())
    raise TypeError(f"a kernel uses a global value of type {type(value).__name__}")


def _ordered(option: Any) -> Any:
    """The same with the elements of a set in order, which otherwise differs between processes."""
    return sorted(option) if isinstance(option, set | frozenset) else option
