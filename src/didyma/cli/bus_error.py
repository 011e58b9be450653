"""A mapped file that is cut short ends its process, and with it must go one line that says so.

The system sends SIGBUS to whoever reads a page that its file no longer has, or that the disk cannot
give. That happens in the midst of compiled code, to which nothing can be returned, and where Python
is not asked. So the handler is compiled as well: it writes a line that is ready, and ends.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["tell_of_bus_errors"]

_kept: list[Any] = []  # what the handler points at must outlive it


def tell_of_bus_errors(folders: Iterable[Path]) -> None:
    """From now on the process ends with an error about these, rather than with none at all."""
    named = ", ".join(map(str, folders))
    if not named or not hasattr(signal, "SIGBUS"):
        return
    from numba import cfunc, config, types

    if config.DISABLE_JIT:
        return
    text = f"error: {named}: cut short, or no longer readable, while it was learned from\n".encode()
    line = ctypes.create_string_buffer(text)
    system = ctypes.CDLL(None)
    write, leave = system.write, system._exit
    write.argtypes, write.restype = (
        (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
        ctypes.c_ssize_t,
    )
    leave.argtypes, leave.restype = (ctypes.c_int,), None
    at, length = ctypes.addressof(line), len(text)

    def end(number: int) -> None:
        write(2, at, length)
        leave(1)

    handler = cfunc(types.void(types.int32))(end)
    _kept.extend((line, handler))
    sys.stderr.flush()
    system.signal(signal.SIGBUS, ctypes.c_void_p(handler.address))
