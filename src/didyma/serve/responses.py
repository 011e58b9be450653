"""JSON responses, and errors with their bodies in each dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from didyma.errors import DidymaError

CHUNK = 1 << 16  # bytes of a response that are sent at once


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


class HTTPError(DidymaError):
    """An error response: a status, a message and headers.

    >>> HTTPError(429, "64 requests are waiting", retry_after=1).headers
    {'retry-after': '1'}
    """

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return headers | ({"www-authenticate": "Bearer"} if self.status == 401 else {})


class ErrorKind(NamedTuple):
    """What vLLM and TEI call an error."""

    vllm: str
    tei: str


# Of each status that is answered.
KINDS = {
    400: ErrorKind("BadRequestError", "Validation"),
    401: ErrorKind("AuthenticationError", "Unauthorized"),
    403: ErrorKind("PermissionDeniedError", "Unauthorized"),
    404: ErrorKind("NotFoundError", "Validation"),
    405: ErrorKind("MethodNotAllowedError", "Validation"),
    408: ErrorKind("TimeoutError", "Validation"),
    413: ErrorKind("RequestEntityTooLargeError", "Validation"),
    415: ErrorKind("UnsupportedMediaTypeError", "Validation"),
    422: ErrorKind("UnprocessableEntityError", "Validation"),
    429: ErrorKind("RateLimitError", "Overloaded"),
    500: ErrorKind("InternalServerError", "Backend"),
    503: ErrorKind("ServiceUnavailableError", "Overloaded"),
}


class ErrorBody(Struct):
    """The body of an error."""

    @classmethod
    def of(cls, error: HTTPError) -> ErrorBody:
        """The body that says what went wrong."""
        raise NotImplementedError


class ErrorDetail(Struct):
    """The error as vLLM's clients read it."""

    message: str
    type: str
    code: int


class DocumentsError(ErrorBody):
    """An error for clients that look under message, detail or error."""

    message: str
    detail: str
    error: ErrorDetail

    @classmethod
    def of(cls, error: HTTPError) -> DocumentsError:
        """The same message in all three places."""
        message, kind = str(error), KINDS[error.status].vllm
        return cls(message, message, ErrorDetail(message, kind, error.status))


class TextsError(ErrorBody):
    """The error as TEI's clients read it."""

    error: str
    error_type: str

    @classmethod
    def of(cls, error: HTTPError) -> TextsError:
        """Message and kind."""
        return cls(str(error), KINDS[error.status].tei)


def error_response(error: HTTPError, headers: Mapping[str, str] | None = None) -> JsonResponse:
    """An error outside of any dialect, in the shape that most clients know."""
    body = msgspec.json.encode(DocumentsError.of(error))
    return JsonResponse(body, error.status, error.headers if headers is None else headers)
