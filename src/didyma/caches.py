"""Where this user's caches are kept."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

__all__ = ["cache_home"]


def cache_home() -> Path:
    """A folder of this user's, below ``NUMBA_CACHE_DIR`` if that is set; it may not exist yet."""
    if configured := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(configured, "didyma")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()), "didyma")
    if configured := os.environ.get("XDG_CACHE_HOME"):
        return Path(configured, "didyma")
    try:
        return Path.home() / ".cache" / "didyma"
    except RuntimeError:  # no home folder
        return Path(tempfile.gettempdir(), f"didyma-{os.getuid()}")
