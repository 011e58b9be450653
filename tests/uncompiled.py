"""What is compiled for a test, and what need not be: compiling a combination takes seconds.

With NUMBA_DISABLE_JIT=1 kernels are plain Python, and some tests too long or about nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import cycle, islice, product
from typing import Any

import pytest

__all__ = ["UNCOMPILED", "combinations", "compiled_only"]

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

compiled_only = pytest.mark.skipif(UNCOMPILED, reason="about compiled kernels")


def combinations(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any]]:
    """All pairs where kernels are plain Python, as `make kernels` runs them; else each value once.

    A pair is compiled from the same source as the others, so that what compiling could break shows
    in any of them.
    """
    if UNCOMPILED:
        return list(product(first, second))
    count = max(len(first), len(second))
    return list(zip(islice(cycle(first), count), islice(cycle(second), count)))
