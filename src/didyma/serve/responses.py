"""JSON responses."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from didyma.serve.dialects import JINA
from didyma.serve.errors import HTTPError

CHUNK = 1 << 16  # bytes


class JsonResponse(Response):
    """JSON, sent in chunks.

    The next chunk waits until the client has taken most of those before it, so that a response that
    nobody takes is known as one, and counted, until its connection is ended.
    """

    media_type = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send head and chunks."""
        head = {"type": "http.response.start", "status": self.status_code}
        await send({**head, "headers": self.raw_headers})
        for begin in range(0, max(len(self.body), 1), CHUNK):
            more = begin + CHUNK < len(self.body)
            piece = bytes(self.body[begin : begin + CHUNK])
            await send({"type": "http.response.body", "body": piece, "more_body": more})


def error_response(error: HTTPError, headers: Mapping[str, str] | None = None) -> JsonResponse:
    """An error outside of any dialect, in the shape that most clients know."""
    return JsonResponse(
        JINA.refuse(error), error.status, error.headers if headers is None else headers
    )
