"""Errors that are sent to clients, and their bodies in each dialect."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from didyma.errors import DidymaError


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
    """One error for all who look for it, be it under message, detail or error."""

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
