"""Compile kernels: one decorator, and templates that are specialised by name.

A kernel is an ordinary function over arrays. It validates nothing (its public caller does),
releases the GIL and is cached on disk. Numba is imported when the first kernel is called, so that a
module with kernels costs nothing to import; a *light* kernel, whose work is a step or two for each
number that it is given, runs as plain Python on few numbers if Numba has not been loaded by then,
which would take longer.

Numba notices a change only in the file of the function itself, so the name of a kernel in the cache
ends in the fingerprint of all that is compiled with it: an edited or upgraded library never meets a
stale kernel, and compiles only what has changed. An entry that cannot be loaded is made anew. A
cache that cannot be written, as in an image, is read; what it lacks, each process compiles.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any

from didyma.caches import cache_home
from didyma.kernels.fingerprint import fingerprint

__all__ = ["Kernel", "bind", "cache_folder", "jit", "jit_light", "jit_sum", "specialise"]

# What lets a sum vectorise; NaN and infinity keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}
FEW = 10_000  # numbers that plain Python is through with before Numba would be loaded

_LOCK = RLock()


@cache
def cache_folder() -> str | None:
    """Where compiled kernels are kept, or None; what an image holds can only be read."""
    import numba

    checked = "-checked" if numba.config.BOUNDSCHECK else ""  # indices: these are other kernels
    own = cache_home()
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        own.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(own):
            warnings.warn(
                f"{own} can be written by others, who could plant code there: kernels are compiled "
                "in each process instead; remove it, or set NUMBA_CACHE_DIR",
                stacklevel=2,
            )
            return None
        folder = own / f"numba-{numba.__version__}{checked}"
        folder.mkdir(exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK) or any(folder.iterdir()):
            return str(folder)
    except OSError:
        pass
    return None


def _is_private(folder: Path) -> bool:
    """Whether only this user, or root, can write there: pickles of Numba's caches can run code."""
    if sys.platform == "win32":  # where folders of a user are private, and modes mean nothing
        return True
    found = folder.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid in (os.getuid(), 0)
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


class Kernel:
    """A function that is compiled, or found in the cache, when it is first called."""

    def __init__(
        self, function: Callable[..., Any], *, cached: bool, light: bool, **options: Any
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._cached, self._light = cached, light
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher."""
        if self._compiled is None:
            with _LOCK:
                if self._compiled is None:
                    self._compiled = self._decorate()
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes this for, inside another kernel."""
        return self.compiled._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        if self._compiled is not None:
            return self._compiled(*arguments)
        if self._light and "numba" not in sys.modules and _count(arguments) <= FEW:
            return self.py_func(*arguments)
        return self.compiled(*arguments)

    def _decorate(self) -> Any:
        import numba

        from didyma.kernels.cache import KernelCache

        folder = cache_folder() if self._cached else None
        function = self.py_func
        if folder is not None:
            try:
                function = bind(function, f"{function.__qualname__}_{fingerprint(self)}")
            except TypeError:  # a user's function uses what has no description
                folder = None
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder or before
        try:  # a cache reads the folder when it is made
            dispatcher = numba.njit(
                function,
                nogil=True,
                error_model="numpy",
                no_cfunc_wrapper=True,
                **self.options,
            )
            if folder is not None:
                dispatcher._cache = KernelCache(function)
            return dispatcher
        finally:
            numba.config.CACHE_DIR = before


def _count(arguments: tuple[Any, ...]) -> int:
    return sum(getattr(argument, "size", 1) for argument in arguments)


def jit(function: Callable[..., Any], *, cached: bool = True, **options: Any) -> Any:
    """Compile a kernel without the GIL, in strict arithmetic.

    ``cached=False`` is for a user's function, which need not stand in a file; what it is compiled
    into is cached, if all that the function uses can be described.
    """
    return Kernel(function, cached=cached, light=False, **options)


def jit_light(function: Callable[..., Any]) -> Any:
    """Compile a light kernel (see above); what it calls must be light too."""
    return Kernel(function, cached=True, light=True)


def jit_sum(function: Callable[..., Any]) -> Any:
    """Compile a sum whose order the compiler may choose.

    It is inlined into its callers: with copies of its own, optimised here and there, a process that
    compiles and one that finds the kernels in the cache would round differently.
    """
    return jit(function, fastmath=REORDER, forceinline=True)


def specialise(template: Callable[..., Any], name: str, **functions: Any) -> Any:
    """Compile ``template`` with some of its global names bound to ``functions``.

    Passing a compiled function as an argument, or closing over one, defeats Numba's disk cache;
    rebinding a global does not. The same template, not compiled, serves plain Python functions
    through `bind`.
    """
    return jit(bind(template, name, **functions))


def bind(template: Callable[..., Any], name: str, **functions: Any) -> FunctionType:
    """A copy of ``template`` whose global names include ``functions``."""
    assert isinstance(template, FunctionType)
    bound = FunctionType(
        template.__code__,
        {**template.__globals__, **functions},
        name,
        template.__defaults__,
        template.__closure__,
    )
    bound.__qualname__ = name
    bound.__module__ = template.__module__
    bound.__doc__ = template.__doc__
    return bound
