"""Checks of the Host and Origin headers, against DNS rebinding.

A page of any site can have its own name point to this machine: a browser then takes the server for
a part of that site, and lets the page read responses. But ``Host`` has that name, and ``Origin``
that site.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Sequence
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from didyma.errors import DataError
from didyma.serve.errors import HTTPError
from didyma.serve.logs import log
from didyma.serve.responses import error_response

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PROBED = ("/health", "/ready")  # by addresses that nobody can list; they tell nothing
AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/?#@\[\]]+)(:[0-9]*)?", re.ASCII)


def is_loopback(host: str) -> bool:
    """Whether an address is one of the loopback interface."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class AllowedHosts:
    """Host names that are allowed in ``Host`` and ``Origin``, with any port.

    Parameters
    ----------
    bound : str
        The address that the server listens on.
    named : sequence of str
        Names that are allowed besides those of the loopback interface. Without any, a server that
        other machines can reach accepts every name, as it cannot know its own.

    >>> hosts = AllowedHosts("127.0.0.1", ["rerank.example.org"])
    >>> hosts.check("localhost:8000", None)
    >>> hosts.check("127.0.0.1:8000", "https://rerank.example.org")
    >>> hosts.check("elsewhere.example", None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    didyma.serve.errors.HTTPError: expected Host to be localhost, ...
    """

    def __init__(self, bound: str, named: Sequence[str] = ()) -> None:
        for name in named:
            if _name(name) != name.lower():
                raise DataError(f"expected a host without port or path, found {name!r:.80}")
        own = f"[{bound}]" if ":" in bound else bound
        self._any = not (is_loopback(bound) or named)
        self._names = dict.fromkeys([*LOOPBACK, own.lower(), *(name.lower() for name in named)])

    def check(self, host: str | None, origin: str | None) -> None:
        """Raise status 403 for another host, or for a page of another site."""
        if self._any:
            return
        self._check("Host", host, host or "")
        if origin is not None:
            self._check("Origin", origin, origin.partition("://")[2])

    def _check(self, header: str, value: str | None, authority: str) -> None:
        if _name(authority) in self._names:
            return
        *names, last = self._names
        raise HTTPError(
            403,
            f"expected {header} to be {', '.join(names)} or {last}, found {value!r:.80}: "
            "didyma serve --allowed-host allows others",
        )


def _name(authority: str) -> str | None:
    """The host of an authority, without its port; None if it is malformed."""
    match = AUTHORITY.fullmatch(authority.lower())
    return None if match is None else match[1].removesuffix(".")


class HostCheck:
    """ASGI middleware that passes on requests for allowed hosts only."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or respond with an error."""
        if scope["type"] == "http" and scope["path"] not in PROBED:
            headers = Headers(scope=scope)
            try:
                self._hosts.check(headers.get("host"), headers.get("origin"))
            except HTTPError as error:
                log(logging.WARNING, "request", status=error.status, reason=str(error))
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)
