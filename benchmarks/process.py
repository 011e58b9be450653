"""What the system says about this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["STATUS", "peak", "status"]

STATUS = Path("/proc/self/status")


def peak() -> int:
    """Most bytes this process held, since it last forgot."""
    if STATUS.exists():  # on Linux a process inherits ru_maxrss from the one that started it
        return status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def status(name: str) -> int:
    """A size that Linux tells, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(name)
