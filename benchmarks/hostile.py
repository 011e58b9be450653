"""Clients that mean harm to `didyma serve`, one way after the other, in a process of their own.

``python -m benchmarks.hostile PORT SECONDS CLIENTS`` asks for so long, and prints as JSON how many
attacks there were, and which were answered as they should not be.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from itertools import count

import numpy as np

IDLE = 40  # connections at once, of each client
REFUSED = (400, 403, 408, 413, 422, 429, 503)
ANSWERED = (200, 429, 503)  # what is right but much
HEAD = b"POST /v1/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
LARGEST = 16 << 20  # bytes of a body

NUMBERS = count()


def new_words(size: int) -> str:
    """So many characters of words that nobody has ever used."""
    begin = next(NUMBERS) * 10_000_000
    return " ".join(np.base_repr(begin + n, 36).lower() for n in range(size // 6))[:size]


def body(documents: list[str], **more: object) -> bytes:
    return json.dumps({"query": "who are they", "documents": documents, **more}).encode()


BAD = [
    b"{",
    b"[" * 200_000,
    b'{"query": 7, "documents": ["a"]}',
    b'{"query": "\\ud800", "documents": ["b"]}',
    b'{"query": "a", "documents": ["b"], "top_n": -1}',
    body(["b"] * 1001),
    b'{"query": "a", "documents": [' + b"{}," * (LARGEST // 3 - 20) + b"{}]}",
    body(["a" * 99_000] * 160),
]


class Attacker:
    """One client."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.outcomes: Counter[str] = Counter()
        self._texts = [new_words(90_000) for _ in range(20)]

    def run(self, ends: float) -> None:
        """Attack until the time is up."""
        for attack in self._attacks():
            if time.perf_counter() >= ends:
                return
            with suppress(OSError, HTTPException):  # a connection that is ended is an answer too
                attack()
            self.outcomes["attacks"] += 1

    def _attacks(self) -> Iterator[Callable[[], None]]:
        while True:
            for bad in BAD:
                yield lambda bad=bad: self._expect(REFUSED, bad)
            yield lambda: self._expect(ANSWERED, body([new_words(90_000), *self._texts]))
            yield lambda: self._expect(ANSWERED, body([new_words(50)] * 500, explain=True))
            yield lambda: self._expect((403,), body(["a"]), host="elsewhere.example")
            yield lambda: self._leave(b"", IDLE)
            yield lambda: self._leave(b"POST /v1/rerank HTTP/1.1\r\nHost: loc", IDLE)
            yield lambda: self._leave(HEAD % LARGEST + b" " * 100_000, 4)
            yield lambda: self._leave(HEAD % 100 + b"{", IDLE)
            yield self._never_read

    def _expect(self, statuses: tuple[int, ...], content: bytes, host: str = "localhost") -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", "/v1/rerank", content, {"Host": host})
            status = connection.getresponse().status
        finally:
            connection.close()
        if status not in statuses:
            self.outcomes[f"answered by {status}: {content[:40]!r}"] += 1

    def _leave(self, sent: bytes, connections: int) -> None:
        """Open connections, send the beginning of a request on each, and wait a little."""
        with ExitStack() as stack:
            for _ in range(connections):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", self.port), 60))
                one.sendall(sent)
            time.sleep(0.5)

    def _never_read(self) -> None:
        content = body(self._texts, return_documents=True)
        with socket.create_connection(("127.0.0.1", self.port), 60) as one:
            one.sendall(HEAD % len(content) + content)
            time.sleep(1)


def main() -> None:
    port, seconds, clients = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    ends = time.perf_counter() + seconds
    attackers = [Attacker(port) for _ in range(clients)]
    threads = [threading.Thread(target=one.run, args=[ends]) for one in attackers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(sum((one.outcomes for one in attackers), Counter())))


if __name__ == "__main__":
    main()
