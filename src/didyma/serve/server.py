"""The server process: its socket, its signals and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from didyma.errors import DataError
from didyma.serve.app import Service
from didyma.serve.connections import ACCEPTED_AT_ONCE, BoundedConnection, connections_within
from didyma.serve.logs import log
from didyma.serve.memory import keep_memory_steady

WAITING = 2048  # connections that are not accepted yet
KEEP_ALIVE = 5  # seconds that a connection without a request is kept
ENDING = 5.0  # seconds to end in, after those that requests may take


class ListeningSocket(socket.socket):
    """A socket at which many clients may wait, however few are accepted at once.

    It says that it speaks TCP, which asyncio looks at before it turns off Nagle's delays.
    """

    def listen(self, backlog: int = WAITING, /) -> None:
        """From now on clients wait instead of being turned away.

        asyncio has one number for those who wait and those who are accepted at once.
        """
        super().listen(max(backlog, WAITING))


def listen(host: str, port: int) -> ListeningSocket:
    """A socket that listens on an address; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        with ExitStack() as closing:
            listening = closing.enter_context(ListeningSocket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
            closing.pop_all()  # which is needed only if it cannot be bound
        return listening
    except OSError as error:
        raise DataError(f"cannot listen on {host}, port {port}: {error.strerror}") from None


class EndingServer(uvicorn.Server):
    """A server whose process exits a while after its graceful shutdown, whatever its threads do."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down, and exit when the time for that is over."""
        if not self.should_exit:
            grace = self.config.timeout_graceful_shutdown or 0
            ending = threading.Timer(grace + ENDING, end_process, ["not ended in time"])
            ending.daemon = True
            ending.start()
        super().handle_exit(sig, frame)


def end_process(event: str, **fields: Any) -> None:
    """Exit at once, without a wait for threads."""
    log(logging.WARNING, event, **fields)
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(0)


def make_server(service: Service) -> EndingServer:
    """The uvicorn server of a service."""
    limits = service.limits
    service.connections.most = connections_within(limits.connections)
    config = uvicorn.Config(
        service.app,
        http=partial(BoundedConnection, service.connections),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
    )
    return EndingServer(config)


def serve(service: Service, host: str, port: int) -> None:
    """Answer until SIGINT or SIGTERM; what has begun is ended first. SIGHUP loads models anew.

    A request that is not answered by then, within the time that it may take, is left undone.
    """
    listening = listen(host, port)
    server = make_server(service)
    keep_memory_steady()

    async def run() -> None:
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, service.reload)
        log(logging.INFO, "listening", host=host, port=listening.getsockname()[1])
        await server.serve([listening])

    with suppress(KeyboardInterrupt):  # which uvicorn raises again when it has ended well
        asyncio.run(run())
    log(logging.INFO, "ended")
    if service.queue.pending:
        end_process("left undone", requests=service.queue.pending)
