"""Limits of what a request may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from didyma._core.data import count_values
from didyma.serve.memory import FREE, MemoryShare
from didyma.serve.responses import HTTPError

if TYPE_CHECKING:
    from starlette.requests import Request

    from didyma.serve.native import SearchBody

VALUES = 64  # of JSON, for each document


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes
    ----------
    body : int >= 1
        Bytes of a request.
    documents : int >= 1
        Documents of a request.
    characters : int >= 1
        Length of a query, and of each document.
    text : int >= 1
        Characters of a query and its documents together.
    seconds : float >= 0.1
        To read a request, and again to answer it.
    waiting : int >= 0
        Requests that wait while all threads work; more are refused (429).
    connections : int >= 1
        Connections at the same time; beyond them the one that has waited longest for its client is
        ended. Fewer if fewer files may be open.
    in_flight : int >= 1
        Bytes of all requests under way; large ones wait for room.
    """

    body: int = 16 << 20
    documents: int = 1000
    characters: int = 100_000
    text: int = 2_000_000
    seconds: float = 30.0
    waiting: int = 64
    connections: int = 512
    in_flight: int = 32 << 20

    async def read(self, request: Request, share: MemoryShare) -> bytearray:
        """Read the body of a request; status 413 as soon as it is known to be too long.

        A body that is compressed is refused (415): what it holds is not known before.
        """
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise HTTPError(415, f"expected a body that is not compressed, found {encoding!r:.40}")
        declared = request.headers.get("content-length", "")
        expected = int(declared) if declared.isdecimal() else self.body
        self._check_body(expected)
        body, has_room = bytearray(), False
        async with share.waiting(self.seconds):
            async for piece in request.stream():
                body += piece
                share.received(len(piece))
                self._check_body(len(body))
                if len(body) > FREE and not has_room:
                    await share.take(expected)
                    has_room = True
        share.resize(len(body))
        return body

    def _check_body(self, size: int) -> None:
        if size > self.body:
            raise HTTPError(413, f"expected a body of at most {self.body} bytes")

    def check_values(self, body: bytes | bytearray, dimension: int = 0) -> None:
        """Raise for a body of more JSON values than a request can need, before it is decoded.

        ``dimension`` is that of vectors which documents may have.
        """
        each = VALUES + dimension
        most = each * (self.documents + 1)
        if len(body) > most and values_of(body, most) > most:  # each takes a byte
            raise HTTPError(413, f"expected at most {most} values, which are {each} a document")

    def check_documents(self, n_documents: int) -> None:
        """Raise for too many documents."""
        if n_documents > self.documents:
            raise HTTPError(
                413, f"expected at most {self.documents} documents, found {n_documents}"
            )

    def check_sizes(self, questions: Sequence[tuple[str, Sequence[int]]]) -> None:
        """Raise for queries and documents, given by their characters, that are too long."""
        for query, sizes in questions:
            self._check_query(query)
            for n, size in enumerate(sizes):
                if size > self.characters:
                    raise HTTPError(
                        413,
                        f"expected documents of at most {self.characters} characters, "
                        f"found {size} in document {n}",
                    )
        total = sum(len(query) + sum(sizes) for query, sizes in questions)
        if total > self.text:
            raise HTTPError(413, f"expected at most {self.text} characters in all, found {total}")

    def check_search(self, question: SearchBody) -> None:
        """Raise for a query that is too long, or that asks for too many passages."""
        self._check_query(question.query)
        asked = int(max(question.top_n or 0, question.candidates or 0))
        if asked > self.documents:
            raise HTTPError(400, f"expected at most {self.documents} candidates, found {asked}")

    def _check_query(self, query: str) -> None:
        if len(query) > self.characters:
            raise HTTPError(413, f"expected a query of at most {self.characters} characters")


def values_of(body: bytes | bytearray, most: int) -> int:
    """How many values a body of JSON has; counting ends beyond ``most``."""
    return int(count_values(np.frombuffer(memoryview(body).toreadonly(), np.uint8), most))
