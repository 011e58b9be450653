"""Access control: bearer tokens, and checks of Host and Origin against DNS rebinding.

A page of any site can have its own name point to this machine: a browser then takes the server for
a part of that site, and lets the page read responses. But ``Host`` has that name, and ``Origin``
that site.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from didyma.errors import DataError
from didyma.files import read_lines
from didyma.serve.logs import log
from didyma.serve.responses import HTTPError, error_response

VARIABLE = "DIDYMA_TOKENS"
NOT_ASCII = "expected tokens of ASCII characters, as headers can have no others"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PROBES = ("/health", "/ready")  # which tell nothing: they need no token, and any Host will do
AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/?#@\[\]]+)(:[0-9]*)?", re.ASCII)


def is_loopback(host: str) -> bool:
    """Whether an address is one of the loopback interface."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def check_host(host: str, *, has_tokens: bool, insecure: bool) -> None:
    """Raise for an address that other machines reach without a token.

    >>> check_host("127.0.0.1", has_tokens=False, insecure=False)
    >>> check_host("0.0.0.0", has_tokens=False, insecure=False)
    Traceback (most recent call last):
    didyma.errors.DataError: 0.0.0.0 is open to other machines: give a file of tokens, or --insecure
    """
    if not (is_loopback(host) or has_tokens or insecure):
        raise DataError(f"{host} is open to other machines: give a file of tokens, or --insecure")


class BearerTokens:
    """Tokens, one of which a request must have; without any, all requests are accepted.

    >>> tokens = BearerTokens(["first", "second"])
    >>> tokens.check("Bearer second") == tokens.check("second")
    True
    >>> tokens.check("third")
    Traceback (most recent call last):
    didyma.serve.responses.HTTPError: expected a valid token as Authorization: Bearer …
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        listed = list(tokens)
        if not all(token.isascii() for token in listed):
            raise DataError(NOT_ASCII)
        self._digests = [_digest(token) for token in listed]

    @classmethod
    def read(cls, path: Path | None) -> Self:
        """The tokens of a file, one a line, and of the environment, separated by spaces."""
        tokens = os.environ.get(VARIABLE, "").split()
        if path is not None:
            listed = [line.strip() for line in read_lines(path)]
            for number, line in enumerate(listed, 1):
                if not line.startswith("#") and not line.isascii():
                    raise DataError(NOT_ASCII, path=path, line=number)
            tokens += [line for line in listed if line and not line.startswith("#")]
            if not tokens:
                raise DataError("expected a token, found none", path=path)
        return cls(tokens)

    def __len__(self) -> int:
        return len(self._digests)

    def check(self, authorization: str | None) -> bytes | None:
        """Check an Authorization header in constant time; status 401 if it has no valid token.

        Returns the digest of the token, if there are tokens.
        """
        if not self._digests:
            return None
        header = authorization or ""
        scheme, _, token = header.partition(" ")
        digest_sent = _digest((token if scheme.lower() == "bearer" else header).strip())
        if not sum([hmac.compare_digest(digest_sent, digest) for digest in self._digests]):
            raise HTTPError(401, "expected a valid token as Authorization: Bearer …")
        return digest_sent


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


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
    didyma.serve.responses.HTTPError: expected Host to be localhost, ...
    """

    def __init__(self, bound: str, named: Sequence[str] = ()) -> None:
        for name in named:
            if _name(name) != name.lower():
                raise DataError(f"expected a host without port or path, found {name!r:.80}")
        bound_name = f"[{bound}]" if ":" in bound else bound
        self._any = not (is_loopback(bound) or named)
        self._names = dict.fromkeys(
            [*LOOPBACK, bound_name.lower(), *(name.lower() for name in named)]
        )

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
        if scope["type"] == "http" and scope["path"] not in PROBES:
            headers = Headers(scope=scope)
            try:
                self._hosts.check(headers.get("host"), headers.get("origin"))
            except HTTPError as error:
                log(logging.WARNING, "request", status=error.status, reason=str(error))
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)
