"""Work that can be ended between two steps, as a server does at a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_check: ContextVar[Callable[[], object] | None] = ContextVar("check", default=None)
_until: ContextVar[float] = ContextVar("until", default=inf)


@contextmanager
def interruptible(check: Callable[[], object], until: float = inf) -> Iterator[None]:
    """Call ``check`` now and then in this block, on this thread; what it raises ends the work.

    At ``until``, by the clock of `time.monotonic`, work ends that can be done without.

    Texts are read in chunks of some hundred thousand characters, and it is called before each,
    and before each part of the features.

    >>> from didyma.text.features.lexicon import Lexicon
    >>> with interruptible(lambda: print("read on")):
    ...     tokens = Lexicon(None).read(["a few words"])
    read on
    """
    tokens = _check.set(check), _until.set(until)
    try:
        yield
    finally:
        _check.reset(tokens[0])
        _until.reset(tokens[1])


def time_left() -> float:
    """Seconds for work that can be done without; infinite but in a block that says otherwise."""
    return _until.get() - time.monotonic()


def check_interruption() -> None:
    """Call what `interruptible` was given, if there is something."""
    check = _check.get()
    if check is not None:
        check()
