"""A bounded thread pool with time slices, deadlines and fair shares for clients.

As many requests run at the same time as there are turns. Long work yields its turn between two
steps, and comes back later the longer it has run, so that short requests pass it. Turns and places
in the queue are shared between clients: one with many requests waits for those with few.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from didyma.execution import interruptible
from didyma.serve.responses import HTTPError

T = TypeVar("T")

SLICE = 0.02  # seconds after which a turn is yielded, if others wait
RESERVE = 0.25  # of the time to answer, that work which can be done without leaves for the rest
BACK_AFTER = 8  # times as long as the turn took, others go first


class WorkQueue:
    """Runs work on threads, so that the event loop is always free to accept and to refuse.

    Work ends at its deadline if it calls `didyma.execution.check_interruption` now and then. If
    not, it keeps its thread, its turn and its place in the queue until it is done.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self.room = threads + waiting
        self._threads = _DaemonThreads()
        self._lock = threading.Lock()
        self._free_turns = threads
        self._pending: dict[_Work[Any], None] = {}
        self._line: list[_Work[Any]] = []  # those of them that wait for a turn
        self._last_turn: dict[object, int] = {}  # of each client, counted
        self._turns = 0

    @property
    def pending(self) -> int:
        """Requests at work or waiting."""
        return len(self._pending)

    @property
    def is_busy(self) -> bool:
        """Whether the next request would wait for a turn."""
        return not self._free_turns

    @property
    def full(self) -> bool:
        """Whether the next request would be refused."""
        return self.pending >= self.room

    async def run(self, work: Callable[[], T], seconds: float, client: object = None) -> T:
        """The result of the work; status 429 if the queue is full or the deadline passes."""
        one = _Work(self, work, seconds, client)
        self._enter(one)
        try:
            self._threads.start(one.run)
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(one.future)
        except TimeoutError:
            raise one.too_late() from None
        finally:
            self._withdraw(one)
            del one  # which has the exception that this frame belongs to

    def _enter(self, one: _Work[Any]) -> None:
        with self._lock:
            if self.full and not self._make_room(one.client):
                raise HTTPError(429, f"{self.pending} requests are under way", retry_after=1)
            self._pending[one] = None
            self._line.append(one)
            self._give_turns()

    def _make_room(self, client: object) -> bool:
        """Drop the last request of the client that has most, if it has more than this one."""
        counts = Counter(one.client for one in self._pending)
        for greedy, count in counts.most_common():
            waiting = [one for one in self._line if one.client == greedy and not one.has_begun]
            if count > counts[client] + 1 and waiting:
                self._leave(waiting[-1])
                message = f"{self.pending + 1} requests are under way, {count} of them from here"
                waiting[-1].future.set_exception(HTTPError(429, message, retry_after=1))
                return True
        return False

    def _give_turns(self) -> None:
        while self._free_turns and self._line:
            one = min(self._line, key=self._place)
            self._line.remove(one)
            self._free_turns -= 1
            self._turns += 1
            self._last_turn[one.client] = self._turns
            one.begin_turn()

    def _place(self, one: _Work[Any]) -> tuple[bool, int, float]:
        """Those that are due come first, and of them the client whose last turn is longest ago."""
        is_early = one.due > time.monotonic()
        return is_early, 0 if is_early else self._last_turn.get(one.client, 0), one.due

    def yield_turn(self, one: _Work[Any], worked: float) -> None:
        """Let others go first, if there are any."""
        with self._lock:
            if not self._line:
                return
            one.wait_until(time.monotonic() + BACK_AFTER * worked)
            self._line.append(one)
            self._free_turns += 1
            self._give_turns()

    def end(self, one: _Work[Any]) -> None:
        """Remove finished work, and give its turn to the next."""
        with self._lock:
            self._free_turns += one.has_turn
            self._leave(one)
            self._give_turns()

    def _withdraw(self, one: _Work[Any]) -> None:
        """The client is gone: work without a turn is not begun."""
        with self._lock:
            if not one.has_turn:
                self._leave(one)
            one.ends = 0.0

    def _leave(self, one: _Work[Any]) -> None:
        self._pending.pop(one, None)
        if one in self._line:
            self._line.remove(one)
            one.drop()
        if not any(other.client == one.client for other in self._pending):
            self._last_turn.pop(one.client, None)

    def close(self) -> None:
        """End the threads; one that is still at work ends when it is done, without a wait."""
        self._threads.close(wait=not self.pending)


class _Work(Generic[T]):
    """A request in the queue."""

    def __init__(
        self, queue: WorkQueue, work: Callable[[], T], seconds: float, client: object
    ) -> None:
        self.future: Future[T] = Future()
        self.client = client
        self.due = time.monotonic()
        self.ends = self.due + seconds
        self.has_begun = self.has_turn = False
        self._queue, self._call, self._seconds = queue, work, seconds
        self._began = 0.0
        self._called = threading.Event()

    def begin_turn(self) -> None:
        """Begin, or go on."""
        self.has_begun = self.has_turn = True
        self._began = time.monotonic()
        self._called.set()

    def wait_until(self, due: float) -> None:
        """Wait for the next turn."""
        self.has_turn, self.due = False, due
        self._called.clear()

    def drop(self) -> None:
        """Wake the thread without a turn: it ends."""
        self._called.set()

    def too_late(self) -> HTTPError:
        """The error of a deadline that has passed."""
        return HTTPError(429, f"no answer within {self._seconds:g} s", retry_after=1)

    def run(self) -> None:
        """Wait for a turn, and work; on a thread of its own."""
        self._called.wait()
        if not self.has_turn:
            return
        result: Any = None
        failed: BaseException | None = None
        try:
            with interruptible(self._check, self.ends - RESERVE * self._seconds):
                result = self._call()
        except HTTPError as refused:
            # Where it came from has all that the work has seen, and nobody asks for that.
            refused.__context__ = None
            failed = refused.with_traceback(None)
        except BaseException as error:
            failed = error
        self._queue.end(self)
        if not self.future.set_running_or_notify_cancel():
            return
        if failed is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(failed)

    def _check(self) -> None:
        """Between two steps: end at the deadline, and yield the turn after a slice."""
        now = time.monotonic()
        if now > self.ends:
            raise self.too_late()
        if now - self._began > SLICE:
            self._queue.yield_turn(self, now - self._began)
            self._called.wait()
            if not self.has_turn:
                raise self.too_late()


class _DaemonThreads:
    """Reused daemon threads, started when they are needed."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle = 0

    def start(self, call: Callable[[], None]) -> None:
        """Call it on a thread."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                thread = threading.Thread(target=self._loop, name="didyma-serve", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._calls.put(call)

    def _loop(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # and all that it has
            with self._lock:
                self._idle += 1

    def close(self, wait: bool) -> None:
        """Let each thread end when it has nothing to do, and perhaps wait for that."""
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()


async def on_own_thread(work: Callable[[], T]) -> T:
    """The result of work that may never end, on a daemon thread of its own."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # so that it has a result whoever waits for it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)
