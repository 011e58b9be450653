"""Bearer-token authentication."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from didyma.errors import DataError
from didyma.files import read_lines
from didyma.serve.errors import HTTPError

VARIABLE = "DIDYMA_TOKENS"
NOT_ASCII = "expected tokens of ASCII characters, as headers can have no others"


class BearerTokens:
    """Tokens, one of which a request must have; without any, all requests are accepted.

    >>> tokens = BearerTokens(["first", "second"])
    >>> tokens.check("Bearer second") == tokens.check("second")
    True
    >>> tokens.check("third")
    Traceback (most recent call last):
    didyma.serve.errors.HTTPError: expected a valid token as Authorization: Bearer …
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
        given = _digest((token if scheme.lower() == "bearer" else header).strip())
        if not sum([hmac.compare_digest(given, digest) for digest in self._digests]):
            raise HTTPError(401, "expected a valid token as Authorization: Bearer …")
        return given


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
