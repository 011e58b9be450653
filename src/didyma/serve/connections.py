"""A limit of the number of connections, and timeouts of each.

A connection waits for its client while the head or the body of a request is not whole, while a
response is not taken, and between two requests. Each of these waits has a timeout. Where there are
too many connections, the one that has waited longest for its client is ended.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from didyma.errors import DataError
from didyma.serve.access import PROBES
from didyma.serve.responses import HTTPError, error_response

HEAD_SECONDS = 10.0  # from a connection, or the first byte of a later request, to a whole head
SPARE_CONNECTIONS = 16  # beyond the limit, on which probes of health are answered
ACCEPTED_AT_ONCE = 32  # before any of them can end another
SPARE_FILES = 64 + 2 * ACCEPTED_AT_ONCE + SPARE_CONNECTIONS
LEAST_CONNECTIONS = 8
READ_AT_ONCE = 1 << 16  # bytes, which a request has before the application takes them


def connections_within(most: int) -> int:
    """As many connections as are wanted, or as the limit of open files allows."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return most
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    room = soft - 2 * _open_files() - SPARE_FILES  # files are open twice while they are reloaded
    if room < LEAST_CONNECTIONS:
        raise DataError(
            f"{soft} open files are too few for a server: allow {soft - room + LEAST_CONNECTIONS} "
            "(ulimit -n)"
        )
    return min(most, room)


def _open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))
    return 32


class Awaited(Enum):
    """What a connection waits for."""

    HEAD = "the head of a request"
    BODY = "its body"
    SERVER = "an answer"
    TAKING = "the client to take it"
    NEXT = "another request"
    CLOSING = "the client to take the rest"


class ConnectionLimit:
    """A bounded set of connections, and those that wait for their clients, longest first.

    Parameters
    ----------
    most : int
        Connections; for probes of health there are some more.
    seconds : float
        For a client to send the head of a request, if that is less than `HEAD_SECONDS`, and to
        take an answer.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.head_seconds, self.taking_seconds = min(HEAD_SECONDS, seconds), seconds
        self._connections: set[BoundedConnection] = set()
        self._waiting: dict[BoundedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def enter(self, connection: BoundedConnection) -> None:
        """Add a connection, in the place of another one if need be."""
        if len(self) >= self.most and self._waiting:
            longest = next(iter(self._waiting))
            self.leave(longest)
            longest.transport.abort()
        if len(self) >= self.most + SPARE_CONNECTIONS:
            connection.transport.abort()
            return
        if len(self) >= self.most:
            connection.app = _probes_alone(connection.app)
        self._connections.add(connection)

    def leave(self, connection: BoundedConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        self._waiting.pop(connection, None)

    def note(self, connection: BoundedConnection, *, waits_for_client: bool) -> None:
        """Remember whom a connection waits for."""
        if connection not in self._connections or not waits_for_client:
            self._waiting.pop(connection, None)
        else:
            self._waiting.setdefault(connection)


def _probes_alone(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in PROBES:
            await app(scope, receive, send)
            return
        response = error_response(HTTPError(503, "there are too many connections", retry_after=1))
        response.headers["connection"] = "close"
        await response(scope, receive, send)

    return answer


def _then_reset_timeout(handle: Callable[..., None]) -> Any:
    """An event of uvicorn's, after which the connection may wait for something else."""

    def handle_and_reset(self: BoundedConnection, *arguments: Any) -> None:
        handle(self, *arguments)
        self._reset_timeout()

    return handle_and_reset


class BoundedConnection(H11Protocol):
    """A connection of uvicorn's with timeouts for what its client does."""

    def __init__(self, connections: ConnectionLimit, /, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections
        self._awaited: Awaited | None = None
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection."""
        if hasattr(transport, "max_size"):
            transport.max_size = READ_AT_ONCE
        super().connection_made(transport)
        self._all.enter(self)
        self._reset_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        super().connection_lost(exc)
        self._all.leave(self)
        self._unset_keepalive_if_required()
        if self._limit is not None:
            self._limit.cancel()

    data_received = _then_reset_timeout(H11Protocol.data_received)
    on_response_complete = _then_reset_timeout(H11Protocol.on_response_complete)
    timeout_keep_alive_handler = _then_reset_timeout(H11Protocol.timeout_keep_alive_handler)
    shutdown = _then_reset_timeout(H11Protocol.shutdown)
    pause_writing = _then_reset_timeout(H11Protocol.pause_writing)
    resume_writing = _then_reset_timeout(H11Protocol.resume_writing)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, unless an answer has begun; the application answers no more."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _reset_timeout(self) -> None:
        """Set the timeout of what is waited for now, unless that was waited for before."""
        awaited = self._now_awaited()
        if awaited is self._awaited:
            return
        self._awaited = awaited
        self._all.note(self, waits_for_client=awaited is not Awaited.SERVER)
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if awaited is Awaited.HEAD:
            self._limit = self.loop.call_later(self._all.head_seconds, self._end_without_head)
        elif awaited in (Awaited.TAKING, Awaited.CLOSING):
            self._limit = self.loop.call_later(self._all.taking_seconds, self.transport.abort)

    def _now_awaited(self) -> Awaited:
        if self.transport.is_closing():
            return Awaited.CLOSING
        if self.cycle is None or self.cycle.response_complete:
            has_limit = self.timeout_keep_alive_task is not None
            return Awaited.NEXT if has_limit else Awaited.HEAD
        if self.flow.write_paused:
            return Awaited.TAKING
        # For a body, the application has a limit.
        return Awaited.BODY if self.cycle.more_body else Awaited.SERVER

    def _end_without_head(self) -> None:
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(LATE)
        self.transport.close()
        self._reset_timeout()


def _late() -> bytes:
    body = error_response(HTTPError(408, "the head of a request did not arrive in time")).body
    return (
        b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), bytes(body))
    )


LATE = _late()
