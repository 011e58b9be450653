"""What the server writes: JSON alone, and only so much of it."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys

from didyma.serve.logs import LINES, PERIOD, BoundedStream, log

EVERYBODY = """
import asyncio, logging, sys, threading, warnings
from didyma.serve.logs import log, log_to_stderr
with log_to_stderr():
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    warnings.warn("of a library")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

    class Broken:
        def __del__(self):
            raise ValueError("when it is too late")

    Broken()

    async def fail():
        loop = asyncio.get_running_loop()
        for _ in range(1000):
            try:
                raise OSError(24, "Too many open files")
            except OSError as error:
                what = "socket.accept() out of system resource"
                loop.call_exception_handler({"message": what, "exception": error})

    asyncio.run(fail())
"""


def test_whoever_speaks_every_line_is_json_and_there_are_few():
    found = subprocess.run([sys.executable, "-c", EVERYBODY], capture_output=True, text=True)
    assert found.returncode == 0
    said = [json.loads(line) for line in found.stderr.splitlines()]
    assert {"time", "level", "event"} <= set.intersection(*map(set, said))
    events = [one["event"].partition("\n")[0] for one in said]
    assert events.count("socket.accept() out of system resource") == LINES
    assert events[0] == "Invalid HTTP request received."
    assert "of a library" in events[1]
    assert events[2:4] == ["fault", "fault"]


def test_lines_of_a_kind_are_bounded_and_counted(monkeypatch):
    stream, now = io.StringIO(), [0.0]
    handler = BoundedStream(stream, lambda: now[0])
    logger = logging.Logger("didyma.serve", logging.INFO)
    logger.addHandler(handler)
    monkeypatch.setattr("didyma.serve.logs.LOGGER", logger)
    for _ in range(LINES + 7):
        log(logging.INFO, "request", status=413)
        log(logging.INFO, "request", status=200)
    now[0] = PERIOD
    log(logging.INFO, "reload", model="first")
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    statuses = [one.get("status") for one in said if one["event"] == "request"]
    assert statuses.count(413) == LINES
    assert statuses.count(200) == LINES + 7
    assert said[-2]["event"] == "left out"
    assert (said[-2]["of"], said[-2]["status"], said[-2]["lines"]) == ("request", 413, 7)
    assert said[-1]["event"] == "reload"
