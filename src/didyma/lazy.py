"""Names of a package, and values of an object, that are found when they are first used."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__all__ = ["attach", "cached_property", "moved"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """That of Python 3.12: without a lock, which a process forked meanwhile would find held."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """The value, which from then on stands in the object itself."""
            if instance is None:
                return self
            return vars(instance).setdefault(self.name, self.function(instance))


EXPORT = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def attach(
    package: str, file: str, former: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    The public names stand once, in ``__init__.pyi``, as type checkers read them
    (``from module import Name as Name``). ``former`` are names of 0.2, and where the
    things are now.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in EXPORT.findall(stub)}
    from_elsewhere = moved(package, former or {})

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            return from_elsewhere(name)
        if home == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(home), name)

    return find, lambda: sorted(homes), sorted(homes)


def moved(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of former names: each is found where it is now, with a warning."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        message = f"{package}.{name} is {homes[name]} now; the old name will go in 0.4"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        home, _, attribute = homes[name].rpartition(".")
        return getattr(import_module(home), attribute, None) or import_module(homes[name])

    return find
