"""`didyma serve` on one core, asked over loopback by one client for passages of 100 words.

Its own share is what a request takes beyond ranking, as the answer's ``server-timing`` tells. Then
32 clients ask at once for a minute, one request in ten a bad one, beside connections that send
slowly or not at all. ``python -m benchmarks.serve --minutes 5`` does that alone, for longer.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.row import Row
from didyma.data import Lists
from didyma.rerank.text import TextReranker

SIZES, WORDS, ASKED, N_WORDS = (10, 100, 1000), 100, 10, 20_000
TIMES, LISTS = 300, 200
P50, OWN, START = 8.0, 2.0, 2.0  # milliseconds for 100 passages, twice; seconds
CLIENTS, SECONDS, EVERY_BAD, IDLE = 32, 60.0, 10, 8
GROWTH = 1.05  # of memory, between the first sixth of the time and its end
ROOT = Path(__file__).parents[1]
LARGEST = 5  # packages that are named
HEAD = b"POST /v2/rerank HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n"

BAD = (  # bodies, and the status that each should have
    (b"{", 400),
    (b'{"query": 7, "documents": ["a"]}', 400),
    (b'{"query": "a", "documents": ["b"], "top_n": -1}', 400),
    (b'{"query": "\\ud800", "documents": ["b"]}', 400),
    (json.dumps({"query": "a", "documents": ["b"] * 1001}).encode(), 413),
)


class Server(NamedTuple):
    """A server, a client of it, and the seconds from its start to its first answer."""

    pid: int
    port: int
    client: HTTPConnection
    seconds: float


def run(scale: float = 1.0) -> list[Row]:
    rng = np.random.default_rng(0)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model.safetensors"
        train(rng, max(12, round(LISTS * scale))).save(model)
        with served(model):  # so that kernels are in the cache
            pass
        with served(model) as server:
            rows.append(
                Row.at_most("from the start to the first answer", server.seconds, "s", START)
            )
            for size in SIZES:
                rows += latencies(server.client, rng, size, max(3, round(TIMES * scale)))
            rows += crowd(server, max(0.5, SECONDS * scale))
    return rows + (installed() if scale >= 1 else [])


def latencies(client: HTTPConnection, rng: np.random.Generator, size: int, times: int) -> list[Row]:
    """Of lists that differ, one after the other."""
    whole, own = [], []
    for _ in range(times):
        content = body(rng, size)
        began = time.perf_counter()
        timing = ask(client, content)
        whole.append(1e3 * (time.perf_counter() - began))
        own.append(whole[-1] - float(timing.partition("=")[2]))
    name = f"{size:,} passages"
    p50, p99, share = np.median(whole), np.quantile(whole, 0.99), np.median(own)
    if size != 100:
        return [Row(f"{name}, p50", p50, "ms"), Row(f"{name}, p99", p99, "ms")]
    return [
        Row.at_most(f"{name}, p50", p50, "ms", P50),
        Row(f"{name}, p99", p99, "ms"),
        Row.at_most(f"{name}, of p50 the server, HTTP and JSON", share, "ms", OWN),
    ]


def crowd(server: Server, seconds: float) -> list[Row]:
    """Many clients at once, some of whose requests are bad, beside connections that block."""
    outcomes: Counter[str] = Counter()
    times: list[float] = []
    begins = time.perf_counter()
    ends = begins + seconds
    with ExitStack() as stack:
        for n in range(IDLE):
            stack.enter_context(blocking(server.port, slow=n % 2 == 0))
        clients = [
            threading.Thread(target=_client, args=(server.port, n, ends, outcomes, times))
            for n in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        time.sleep(seconds / 6)
        before = memory(server.pid)
        for client in clients:
            client.join()
        after = memory(server.pid)
    wall = time.perf_counter() - begins
    answered = f"{CLIENTS} clients for {seconds:g} s"
    return [
        Row.at_most(f"{answered}: good requests that failed", outcomes["failed"], "", 0),
        Row.at_most(f"{answered}: bad ones not refused as they should", outcomes["taken"], "", 0),
        Row(f"{answered}: good requests answered", outcomes["good"] / wall, "1/s"),
        Row(f"{answered}: p50 of 10 passages", float(np.median(times)), "ms"),
        Row(f"{answered}: p99 of 10 passages", float(np.quantile(times, 0.99)), "ms"),
        Row(f"{answered}: memory in the end", after, "MB"),
        Row.at_most(f"{answered}: that over memory early on", after / before, "x", GROWTH),
    ]


def _client(port: int, n: int, ends: float, outcomes: Counter[str], times: list[float]) -> None:
    """Ask until the time is up; every tenth request is a bad one."""
    rng = np.random.default_rng(n)
    client = HTTPConnection("127.0.0.1", port, timeout=60)
    number = n
    while time.perf_counter() < ends:
        number += 1
        bad, wanted = BAD[number // EVERY_BAD % len(BAD)]
        is_bad = number % EVERY_BAD == 0
        content = bad if is_bad else body(rng, SIZES[0])
        began = time.perf_counter()
        try:
            client.request("POST", "/v2/rerank", content)
            found = client.getresponse()
            found.read()
            status = found.status
        except (OSError, HTTPException):
            client.close()
            status = 0
        if is_bad:
            outcomes["refused" if status == wanted else "taken"] += 1
        else:
            outcomes["good" if status == 200 else "failed"] += 1
            times.append(1e3 * (time.perf_counter() - began))
    client.close()


@contextmanager
def blocking(port: int, *, slow: bool) -> Iterator[None]:
    """A connection that sends a request bit by bit, or the beginning of one and no more."""
    stopped = threading.Event()

    def send() -> None:
        while not stopped.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(HEAD + (b"\r\n{" if slow else b"X-Half:"))
                while slow and not stopped.wait(0.5):
                    connection.sendall(b" ")
                stopped.wait()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def memory(pid: int) -> float:
    """Megabytes that a process has in memory; 1 where that cannot be read."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1e3
    return 1.0


def installed() -> list[Row]:
    """What a fresh environment with the extra of the server holds, without pip."""
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=True)
        python = Path(name, "Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        command = [python, "-m", "pip", "install", "--quiet", f"{ROOT}[serve]"]
        if subprocess.run(command, capture_output=True).returncode:
            return [Row.absent("installed, core and serve")]
        paths = [str(path) for path in Path(name).rglob("site-packages")]
        found = {own.name: size_of(own) for own in distributions(path=paths)}
    found = {name: found[name] for name in found if name not in ("pip", "setuptools")}
    rows = [Row("installed, core and serve", sum(found.values()), "MB")]
    largest = sorted(found, key=lambda package: -found[package])[:LARGEST]
    rows += [Row(f"of that {package}", found[package], "MB") for package in largest]
    return [*rows, Row("of that didyma", found["didyma"], "MB")]


def size_of(package: Distribution) -> float:
    """Megabytes of a package's files."""
    places = [Path(str(package.locate_file(file))) for file in package.files or []]
    return sum(place.stat().st_size for place in places if place.is_file()) / 1e6


def ask(client: HTTPConnection, content: bytes) -> str:
    """Have an answer, and return what it says about time."""
    client.request("POST", "/v2/rerank", content)
    found = client.getresponse()
    text = found.read()
    assert found.status == 200, text
    return found.headers["server-timing"]


def train(rng: np.random.Generator, n_lists: int) -> TextReranker:
    """A reranker of random texts, the first of each list relevant and with words of the query."""
    queries, passages, labels = [], [], []
    for _ in range(n_lists):
        queries.append(text(rng, ASKED))
        own = [text(rng, WORDS) for _ in range(10)]
        own[0] = f"{queries[-1]} {own[0]}"
        passages.append(own)
        labels.append([1.0] + [0.0] * 9)
    return TextReranker(language="english").fit(Lists.of_texts(queries, passages, labels))


@contextmanager
def served(model: Path) -> Iterator[Server]:
    """A server on one core."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "didyma", "serve", str(model), "--port", "0", "--jobs", "1"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
        ExitStack() as ending,
    ):
        ending.callback(process.terminate)
        assert process.stderr is not None
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, [max(os.sched_getaffinity(0))])
        port = _port(process.stderr)
        reading = threading.Thread(target=_forget, args=(process.stderr,))
        reading.start()
        ending.callback(reading.join)
        ending.callback(process.terminate)  # and then the log ends
        client = HTTPConnection("127.0.0.1", port, timeout=60)
        ask(client, b'{"query": "first", "documents": ["the first", "the second"]}')
        yield Server(process.pid, port, client, time.perf_counter() - began)
        client.close()


def _port(log: Iterable[str]) -> int:
    """Read a log up to the line that tells where the server listens."""
    said = []
    for line in log:
        said.append(line)
        if '"listening"' in line:
            return json.loads(line)["port"]
    raise RuntimeError("".join(said))


def _forget(log: Iterable[str]) -> None:
    """Read a log to its end, as it must not fill up."""
    for _ in log:
        pass


def body(rng: np.random.Generator, size: int) -> bytes:
    """A request for passages that differ from those of all others."""
    documents = [text(rng, WORDS) for _ in range(size)]
    return json.dumps({"query": text(rng, ASKED), "documents": documents}).encode()


def text(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(np.base_repr(n + 1296, 36).lower() for n in rng.zipf(1.2, n_words) % N_WORDS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long clients ask")
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model.safetensors"
        train(np.random.default_rng(0), LISTS).save(model)
        with served(model) as server:
            for row in crowd(server, 60 * minutes):
                print(f"{row.name:<70}{row.figure:>10} {row.unit:<5}{row.target:<8}{row.verdict}")


if __name__ == "__main__":
    main()
