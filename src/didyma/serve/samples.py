"""A sample of requests with their answers, kept in a file to be judged."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranked

Record: TypeAlias = dict[str, Any]
Redact: TypeAlias = Callable[[Record], Record | None]


class SampleFile:
    """Appends a share of all requests to a file of JSON lines, which only its owner can read.

    A line has ``time``, ``model``, ``version``, ``query`` and ``documents`` as they were answered,
    each with ``id`` (if it had one), ``text``, ``score`` and ``probability``. It is
    written at once, so that several servers can share a file, and only while the file is smaller
    than ``n_bytes``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "requests.jsonl")
    >>> samples = SampleFile(path, share=1.0, redact=lambda record: {"query": "…"})
    >>> samples.write({"query": "my number is 555"})
    >>> path.read_text(), dict(samples.outcomes)
    ('{"query":"…"}\\n', {'written': 1})

    Parameters
    ----------
    path : path
    share : float
        Of requests, in [0, 1].
    n_bytes : int
        Size of the file from which on nothing is written.
    redact : callable, optional
        Returns a record as it may be kept, or None to leave it out. If it fails, the record is left
        out.
    """

    def __init__(
        self,
        path: Path,
        share: float,
        n_bytes: int = 100 << 20,
        redact: Redact | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        if not 0 <= share <= 1:
            raise DataError(f"expected a share in [0, 1], found {share!r}", field="sample")
        self.path, self.share, self.n_bytes = path, share, n_bytes
        self._redact, self._draw = redact, draw
        self._lock = threading.Lock()
        self.outcomes: Counter[str] = Counter()
        os.close(self._open())  # a folder that is not there is told at once

    def chooses(self) -> bool:
        """Whether the next request is one of the sample."""
        return self._draw() < self.share

    def write(self, record: Record) -> None:
        """Append a record, unless it is left out or the file is full."""
        outcome = "failed"
        try:
            outcome = self._write(record)
        finally:
            self.outcomes[outcome] += 1

    def _write(self, record: Record) -> str:
        redacted = record if self._redact is None else self._redact(record)
        if redacted is None:
            return "left out"
        line = msgspec.json.encode(redacted) + b"\n"
        with self._lock:
            file = self._open()
            try:
                if os.fstat(file).st_size + len(line) > self.n_bytes:
                    return "full"
                if os.write(file, line) != len(line):
                    raise OSError("the disk is full")
            finally:
                os.close(file)
        return "written"

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", path=self.path) from None


def record_of(model: str, version: str, query: str, ranking: Sequence[Ranked]) -> Record:
    """What is kept of a request and its answer."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": model,
        "version": version,
        "query": query,
        "documents": [
            {
                **({} if one.id is None else {"id": str(one.id)}),
                "text": one.text,
                "score": one.score,
                "probability": one.probability,
            }
            for one in ranking
        ],
    }


def redaction(name: str) -> Redact:
    """The function that MODULE:FUNCTION names, which is imported: whoever gives the name agrees.

    >>> redaction("copy:copy")({"query": "q"})
    {'query': 'q'}
    """
    module, colon, function = name.partition(":")
    if not module or not colon or not function:
        raise DataError(f"expected MODULE:FUNCTION, found {name!r:.80}", field="redact")
    try:
        redact: Redact = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise DataError(f"cannot be imported: {error}", field="redact") from None
    if not callable(redact):
        raise DataError(f"expected a function, found {type(redact).__name__}", field="redact")
    return redact
