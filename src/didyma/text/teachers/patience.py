"""A limit to the time that one waits for a call, whether or not the call can be ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def within(seconds: float | None, function: Callable[[], T]) -> T:
    """What a function returns or raises; TimeoutError if that takes longer than so many seconds.

    A function that is waited for no longer runs to its end on a thread that ends with the process.

    >>> within(60.0, lambda: 7)
    7
    """
    if seconds is None:
        return function()
    answer: dict[str, Any] = {}

    def run() -> None:
        try:
            answer["value"] = function()
        except BaseException as error:
            answer["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in answer:
        raise answer["error"]
    if "value" not in answer:
        raise TimeoutError(f"no answer after {seconds:g} s")
    value: T = answer["value"]
    return value
