"""Structured logging: one JSON object a line, at a bounded rate, without queries."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

LOGGER = logging.getLogger("didyma.serve")

LINES, PERIOD = 20, 10.0  # of a kind; seconds


class JsonLines(logging.Formatter):
    """Log records as JSON: time, level, event, and the fields that `log` was given.

    >>> record = {"msg": "request", "created": 0.0, "levelname": "INFO", "fields": {"status": 200}}
    >>> JsonLines().format(logging.makeLogRecord(record))
    '{"time":"1970-01-01T00:00:00.000Z","level":"INFO","event":"request","status":200}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {
            "time": when.replace("+00:00", "Z"),
            "level": record.levelname,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()


def log(level: int, event: str, /, *, error: Exception | None = None, **fields: Any) -> None:
    """Log an event with fields."""
    LOGGER.log(level, event, exc_info=error, extra={"fields": fields})


class BoundedStream(logging.StreamHandler[TextIO]):
    """A rate limit: so many lines of a kind in a period, then how many were left out.

    Requests that were answered are all written. Of errors and what libraries log there could be any
    number: clients decide on it.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self.setFormatter(JsonLines())
        self._clock = clock
        self._until = 0.0
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it."""
        now = self._clock()
        if now >= self._until:
            self._tell_left_out()
            self._until = now + PERIOD
        status = getattr(record, "fields", {}).get("status", 0)
        kind = (record.name, str(record.msg).partition("\n")[0], status)
        self._counts[kind] += 1
        if 200 <= status < 300 or self._counts[kind] <= LINES:
            super().emit(record)

    def _tell_left_out(self) -> None:
        for (_, event, status), count in self._counts.items():
            if count > LINES and not 200 <= status < 300:
                fields = {"of": event, "lines": count - LINES} | (
                    {"status": status} if status else {}
                )
                record = {"msg": "left out", "levelname": "WARNING", "fields": fields}
                super().emit(logging.makeLogRecord(record))
        self._counts.clear()


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the log of the server, and all others of this process, to stderr."""
    root = logging.getLogger()
    before = root.handlers, root.level, LOGGER.level, threading.excepthook, sys.unraisablehook
    root.handlers = [BoundedStream(sys.stderr)]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(logging.INFO)
    logging.captureWarnings(True)
    threading.excepthook = lambda fault: _log_fault(fault.exc_value)
    sys.unraisablehook = lambda fault: _log_fault(fault.exc_value)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers, level, own, threading.excepthook, sys.unraisablehook = before
        root.setLevel(level)
        LOGGER.setLevel(own)


def _log_fault(error: BaseException | None) -> None:
    LOGGER.error("fault", exc_info=error)
