"""Work that can be ended between two steps, as a server does at a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["check_interruption", "interruptible"]

_check: ContextVar[Callable[[], object] | None] = ContextVar("check", default=None)


@contextmanager
def interruptible(check: Callable[[], object]) -> Iterator[None]:
    """Call ``check`` now and then in this block, on this thread; what it raises ends the work.

    Texts are read in chunks of some hundred thousand characters, and it is called before each,
    and before each part of the features.

    >>> from didyma.text.features.lexicon import Lexicon
    >>> with interruptible(lambda: print("read on")):
    ...     tokens = Lexicon(None).read(["a few words"])
    read on
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check_interruption() -> None:
    """Call what `interruptible` was given, if there is something."""
    check = _check.get()
    if check is not None:
        check()
