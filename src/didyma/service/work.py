"""Threads that answer, and a line of limited length before them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from didyma.service.refusal import Refused

__all__ = ["WorkQueue", "on_own_thread"]

T = TypeVar("T")


class WorkQueue:
    """Runs work on threads, so that the event loop is always free to accept and to refuse.

    What has begun cannot be ended: it keeps its thread, and its place in the line, until it is
    done, also if nobody waits for it any longer.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "didyma-serve")
        self._lock = threading.Lock()
        self.room, self.pending = threads + waiting, 0

    @property
    def full(self) -> bool:
        """Whether the next request would be refused."""
        return self.pending >= self.room

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """The result of the work, if there is room for it and it is done in time."""
        with self._lock:
            if self.full:
                raise Refused(429, f"{self.pending} requests are under way", retry_after=1)
            self.pending += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._leave)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Refused(429, f"no answer within {seconds:g} s", retry_after=1) from None
        finally:
            del future  # whose exception has this frame, and all that the work has seen

    def _leave(self, _: Future[Any]) -> None:
        with self._lock:
            self.pending -= 1

    def close(self) -> None:
        """End the threads when they are done."""
        self._pool.shutdown()


async def on_own_thread(work: Callable[[], T]) -> T:
    """The result of work that may never end: nothing waits for its thread, not even the end."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # so that it has a result whoever waits for it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)
