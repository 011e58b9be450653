"""What the server says: one JSON object a line, without what people ask."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

__all__ = ["LOGGER", "JsonLines", "log", "log_to_stderr"]

LOGGER = logging.getLogger("didyma.service")


class JsonLines(logging.Formatter):
    """Records as JSON: when, how grave, what, and what `log` was given.

    >>> said = {"msg": "request", "created": 0.0, "levelname": "INFO", "fields": {"status": 200}}
    >>> JsonLines().format(logging.makeLogRecord(said))
    '{"time":"1970-01-01T00:00:00.000Z","level":"INFO","event":"request","status":200}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, Any] = {
            "time": when.replace("+00:00", "Z"),
            "level": record.levelname,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(found).decode()


def log(level: int, event: str, /, *, error: Exception | None = None, **fields: Any) -> None:
    """Say what has happened."""
    LOGGER.log(level, event, exc_info=error, extra={"fields": fields})


def log_to_stderr() -> None:
    """Write what the service and uvicorn say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("didyma.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
