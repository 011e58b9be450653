"""A server in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Self

import httpx


class ServerProcess:
    """`didyma serve` on a free port, and a client of it; ``before`` stands before the command."""

    def __init__(self, *arguments: object, before: Sequence[str] = ()) -> None:
        command = [sys.executable, "-m", "didyma", "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen([*before, *command], stderr=subprocess.PIPE, text=True)
        self.before: list[dict[str, Any]] = []  # what it has said up to the event asked for last
        self._log: SimpleQueue[str] = SimpleQueue()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        self.address = f"http://127.0.0.1:{self.said('listening')['port']}"
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def _read(self) -> None:
        """Take what the server says off its hands: a full pipe would stop it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._log.put(line)

    def said(self, event: str) -> dict[str, Any]:
        """Read the log up to an event."""
        self.before = []
        while True:
            found = json.loads(self._log.get(timeout=60))
            if found["event"] == event:
                return found
            self.before.append(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.process.terminate()
        self._reading.join()
        self.process.communicate()
