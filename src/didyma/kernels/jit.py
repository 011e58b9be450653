"""Compile kernels: one decorator, and templates that are specialised by name.

A kernel is an ordinary function over arrays. It validates nothing (its public caller does),
releases the GIL and is cached on disk. Numba notices a change only in the file of the function
itself, so the cache folder is named after the contents of every source that may be inlined: an
edited or upgraded library never meets a stale kernel. Where no folder can be written, kernels are
compiled in each process instead.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba

__all__ = ["bind", "jit", "jit_sum", "specialise"]

# What lets a sum vectorise; NaN and infinity keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


@cache
def cache_folder() -> str | None:
    """Where compiled kernels are kept, or None where nothing can be written."""
    package = Path(__file__).parents[1]
    sources = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        if b"jit" in (text := path.read_bytes()):
            sources.update(text)
    folder = _base_folder() / "didyma" / sources.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None


def _base_folder() -> Path:
    if configured := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(configured)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    if configured := os.environ.get("XDG_CACHE_HOME"):
        return Path(configured)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # no home folder
        return Path(tempfile.gettempdir())


def jit(function: Callable[..., Any], *, cached: bool = True, **options: Any) -> Any:
    """Compile a kernel without the GIL, in strict arithmetic.

    ``cached=False`` is for code that is not part of the library.
    """
    folder = cache_folder() if cached else None
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder or before
    try:  # Numba reads the folder while it decorates
        return numba.njit(
            function,
            cache=folder is not None,
            nogil=True,
            error_model="numpy",
            no_cfunc_wrapper=True,
            **options,
        )
    finally:
        numba.config.CACHE_DIR = before


def jit_sum(function: Callable[..., Any]) -> Any:
    """Compile a sum whose order the compiler may choose.

    It is inlined into its callers: with copies of its own, optimised here and there, a process that
    compiles and one that finds the kernels in the cache would round differently.
    """
    return jit(function, fastmath=REORDER, forceinline=True)


def specialise(
    template: Callable[..., Any], name: str, *, cached: bool = True, **functions: Any
) -> Any:
    """Compile ``template`` with some of its global names bound to ``functions``.

    Passing a compiled function as an argument, or closing over one, defeats Numba's disk cache;
    rebinding a global does not. The same template, not compiled, serves plain Python functions
    through `bind`.
    """
    return jit(bind(template, name, **functions), cached=cached)


def bind(template: Callable[..., Any], name: str, **functions: Any) -> FunctionType:
    """A copy of ``template`` whose global names include ``functions``."""
    assert isinstance(template, FunctionType)
    bound = FunctionType(
        template.__code__, {**template.__globals__, **functions}, name, template.__defaults__
    )
    bound.__qualname__ = name
    bound.__module__ = template.__module__
    bound.__doc__ = template.__doc__
    return bound
