"""The process: where it listens, what it does on signals, how it ends."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from contextlib import ExitStack, suppress
from functools import partial

import uvicorn

from didyma.errors import DataError
from didyma.service.app import Service
from didyma.service.connections import ACCEPTED_AT_ONCE, BoundedConnection, connections_within
from didyma.service.hosts import is_loopback
from didyma.service.logs import log
from didyma.service.memory import keep_memory_steady

__all__ = ["check_host", "listen", "make_server", "serve"]


WAITING = 2048  # connections that are not accepted yet
KEEP_ALIVE = 5  # seconds that a connection without a request is kept


def check_host(host: str, *, has_tokens: bool, insecure: bool) -> None:
    """Refuse to let everybody in.

    >>> check_host("127.0.0.1", has_tokens=False, insecure=False)
    >>> check_host("0.0.0.0", has_tokens=False, insecure=False)
    Traceback (most recent call last):
    didyma.errors.DataError: 0.0.0.0 is open to other machines: give a file of tokens, or --insecure
    """
    if not (is_loopback(host) or has_tokens or insecure):
        raise DataError(f"{host} is open to other machines: give a file of tokens, or --insecure")


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
            found = closing.enter_context(ListeningSocket(family, kind, protocol))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen()
            closing.pop_all()  # which is needed only if it cannot be bound
        return found
    except OSError as error:
        raise DataError(f"cannot listen on {host}, port {port}: {error.strerror}") from None


def make_server(service: Service) -> uvicorn.Server:
    """A server with as many connections as the service allows."""
    limits = service.limits
    service.room.most = connections_within(limits.connections)
    config = uvicorn.Config(
        service.app,
        http=partial(BoundedConnection, service.room),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
    )
    return uvicorn.Server(config)


def serve(service: Service, host: str, port: int) -> None:
    """Answer until SIGINT or SIGTERM; what has begun is ended first. SIGHUP loads models anew."""
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
