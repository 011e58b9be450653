"""The compiled core: loops in C++ over arrays that the caller has checked.

The builds beside this file come of the same sources and give the same bits: ``baseline`` runs on
every processor, ``v3`` on those with AVX2, ``checked`` tests every index. The environment variable
``DIDYMA_CORE`` names one; otherwise it is the fastest that this processor runs. Each family of
kernels is a module: ``from didyma._core.sums import dot``.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # families of kernels, which no checker can see


__all__ = ["BUILD"]

CHECKOUT = Path(__file__).parents[3]  # of an editable installation
RELEASED = ("baseline", "v3")
V3 = ("AVX2", "FMA3", "F16C")  # of x86-64-v3, those that NumPy knows by name


def _build() -> str:
    """Name of the build to load."""
    wanted = os.environ.get("DIDYMA_CORE", "")
    if wanted:
        return wanted
    from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]
        __cpu_features__ as features,
    )

    folder = Path(__file__).parent
    runs_v3 = all(features.get(name, False) for name in V3)
    return "v3" if runs_v3 and any(folder.glob("v3.*")) else "baseline"


def _load(build: str) -> None:
    """Import a build, and its families as modules of this package."""
    try:
        module = importlib.import_module(f"{__name__}.{build}")
    except ModuleNotFoundError:
        raise ImportError(
            f"didyma's compiled core has no build {build!r}: run `pip install .` in the checkout "
            "with a C++ compiler (or `make core` for an editable one)"
        ) from None
    if (CHECKOUT / "hatch_build.py").exists():
        _check_sources(module, build)
    for name, family in vars(module).items():
        if isinstance(family, ModuleType):
            sys.modules[f"{__name__}.{name}"] = family
            globals()[name] = family


def _check_sources(module: ModuleType, build: str) -> None:
    """Raise if a build is of other sources than those of the checkout that it lies in."""
    from didyma._core.sources import digest

    if getattr(module, "SOURCES", None) != digest(CHECKOUT / "src" / "core"):
        command = "make core" if build in RELEASED else f"python hatch_build.py --build {build}"
        raise ImportError(f"the core's build {build!r} is not of this src/core: run `{command}`")


BUILD = _build()
_load(BUILD)
