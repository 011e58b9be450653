"""With NUMBA_DISABLE_JIT=1 kernels are plain Python, and some tests too long or about nothing."""

from __future__ import annotations

import os

import pytest

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

compiled_only = pytest.mark.skipif(UNCOMPILED, reason="about compiled kernels")
