"""A memory budget for the bodies of all requests together, and memory given back to the system.

A request has its share from before the body is read until the response is sent. As small bodies are
bounded by the number of connections, the first bytes of each are free.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from didyma.serve.responses import HTTPError

FREE = 1 << 16  # bytes of each body that do not count
GRACE = 2.0  # seconds that a client may be idle, or late, while others wait for memory
RATE = 1 << 20  # bytes a second, at which a client is not late
LARGE = 1 << 20  # bytes, after which memory is given back

# Of glibc's mallopt.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8


class MemoryShare:
    """The bytes of the budget that one request holds."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._limit: asyncio.Timeout | None = None  # of the wait for the client
        self.waits_since: float | None = None  # for the client, if it does
        self.size = 0

    @asynccontextmanager
    async def waiting(self, seconds: float) -> AsyncIterator[None]:
        """Wait for the client, at most so long, and less if others need the memory."""
        async with asyncio.timeout(seconds) as self._limit:
            try:
                self.waits_since = _now()
                yield
            finally:
                self.waits_since = None

    async def take(self, size: int) -> None:
        """Wait, while the client does, until so many bytes are free."""
        assert self._limit is not None
        left = (self._limit.when() or 0.0) - _now()
        self._limit.reschedule(None)
        self.waits_since = None
        await self._budget.take(self, max(0, size - FREE))
        self.waits_since = _now()
        self._limit.reschedule(_now() + left)

    def received(self, size: int) -> None:
        """The client has sent so many bytes: its wait counts from later on, at most from now."""
        if self.waits_since is not None:
            self.waits_since = min(self.waits_since + size / RATE, _now())

    def resize(self, size: int) -> None:
        """Change the share to so many bytes, beyond the budget if need be."""
        self._budget.resize(self, max(0, size - FREE))

    def give_way(self) -> None:
        """Wait for the client no longer."""
        assert self._limit is not None
        self.waits_since = None
        self._limit.reschedule(_now())


class MemoryBudget:
    """A limit of the bytes of all requests that are under way.

    Beyond it, requests that have waited longest for their clients are ended.

    Parameters
    ----------
    most : int
        Bytes; a single body may have more.
    seconds : float
        To wait for a share.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.taken = most, 0
        self.had_large = False
        self._seconds = seconds
        self._shares: dict[MemoryShare, None] = {}
        self._line: dict[MemoryShare, None] = {}  # those that wait for room
        self._changed = asyncio.Event()

    @contextmanager
    def share(self) -> Iterator[MemoryShare]:
        """The share of one request, from its head to the end of its response."""
        share = MemoryShare(self)
        self._shares[share] = None
        try:
            yield share
        finally:
            del self._shares[share]
            self.resize(share, 0)

    async def take(self, share: MemoryShare, size: int) -> None:
        """Wait for so many bytes, first come first served."""
        ends = _now() + self._seconds
        self._line[share] = None
        try:
            while next(iter(self._line)) is not share or self.taken + size > max(self.most, size):
                if _now() >= ends:
                    raise HTTPError(503, "too many large requests are under way", retry_after=1)
                self._make_room(size, before=_now() - GRACE)
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(GRACE / 4, ends - _now())):
                        await self._changed.wait()
            self.resize(share, size)
        finally:
            del self._line[share]
            self._changed.set()

    def resize(self, share: MemoryShare, size: int) -> None:
        """Change what a request has; if that is more than there is, others give way."""
        self.had_large |= share.size >= LARGE
        self.taken += size - share.size
        share.size = size
        self._changed.set()
        self._make_room(0, before=_now(), but=share)

    def _make_room(self, size: int, *, before: float, but: MemoryShare | None = None) -> None:
        """Let requests give way that have waited long enough, the longest wait first."""
        missing = self.taken + size - self.most
        if missing <= 0:
            return
        waiting = [
            (share.waits_since, share) for share in self._shares if share.waits_since is not None
        ]
        for since, share in sorted(waiting, key=lambda wait: wait[0]):
            if missing > 0 and since <= before and share.size and share is not but:
                missing -= share.size
                share.give_way()


def _now() -> float:
    return asyncio.get_running_loop().time()


def keep_memory_steady() -> None:
    """Tune glibc's malloc so that large free blocks go back to the system."""
    if (libc := _glibc()) is not None:
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_TRIM_THRESHOLD, 16 * LARGE)
        libc.mallopt(M_ARENA_MAX, 4)


def give_memory_back() -> None:
    """Return free memory to the system (glibc's ``malloc_trim``)."""
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None
