"""Why a request is not answered."""

from __future__ import annotations

from didyma.errors import DidymaError

__all__ = ["Refused"]


class Refused(DidymaError):
    """A request that is answered by a status and a sentence instead of a ranking.

    >>> Refused(429, "64 requests are waiting", retry_after=1).headers
    {'retry-after': '1'}
    """

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        found = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return found | ({"www-authenticate": "Bearer"} if self.status == 401 else {})
