"""How much a request may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from didyma.service.refusal import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

    from didyma.service.dialects import Question
    from didyma.service.searching import SearchQuestion

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """The most of everything that is accepted.

    Attributes
    ----------
    body : int
        Bytes of a request.
    documents : int
        Of a request.
    characters : int
        Of a query, and of each document.
    seconds : float
        To read a request, and again to answer it.
    waiting : int
        Requests that wait while all threads work.
    connections : int
        At the same time; fewer if fewer files may be open.
    """

    body: int = 16 << 20
    documents: int = 1000
    characters: int = 100_000
    seconds: float = 30.0
    waiting: int = 64
    connections: int = 512

    async def read(self, request: Request) -> bytes:
        """The body of a request, refused as soon as it is known to be too long."""
        declared = request.headers.get("content-length", "")
        self._check_body(int(declared) if declared.isdecimal() else 0)
        pieces, size = [], 0
        async for piece in request.stream():
            pieces.append(piece)
            size += len(piece)
            self._check_body(size)
        return b"".join(pieces)

    def _check_body(self, size: int) -> None:
        if size > self.body:
            raise Refused(413, f"expected a body of at most {self.body} bytes")

    def check(self, question: Question) -> None:
        """Refuse what is too much or too long."""
        if len(question.documents) > self.documents:
            raise Refused(
                413,
                f"expected at most {self.documents} documents, found {len(question.documents)}",
            )
        self._check_query(question.query)
        for n, document in enumerate(question.documents):
            if len(document.text) > self.characters:
                raise Refused(
                    413,
                    f"expected documents of at most {self.characters} characters, "
                    f"found {len(document.text)} in document {n}",
                )

    def check_search(self, question: SearchQuestion) -> None:
        """Refuse a query that is too long, or that asks for too many passages."""
        self._check_query(question.query)
        asked = max(question.top_n, question.candidates)
        if asked > self.documents:
            raise Refused(413, f"expected at most {self.documents} candidates, found {asked}")

    def _check_query(self, query: str) -> None:
        if len(query) > self.characters:
            raise Refused(413, f"expected a query of at most {self.characters} characters")
