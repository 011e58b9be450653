"""Memory of this process, and work in processes of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["STATUS", "child", "peak", "status"]

ROOT = Path(__file__).parents[1]

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


def child(module: str, *arguments: object, environment: dict[str, str] | None = None) -> Any:
    """The JSON that a module of the benchmarks prints last, run as a program."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])
