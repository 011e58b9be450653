"""`didyma serve` on one core, asked over loopback by one client for passages of 100 words.

Its own share is what a request takes beyond ranking, as the answer's ``server-timing`` tells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

from benchmarks.row import Row
from didyma.data import Lists
from didyma.rerank.text import TextReranker

SIZES, WORDS, ASKED, N_WORDS = (10, 100, 1000), 100, 10, 20_000
TIMES, LISTS = 300, 200
P50, OWN, START = 8.0, 2.0, 2.0  # milliseconds for 100 passages, twice; seconds


def run(scale: float = 1.0) -> list[Row]:
    rng = np.random.default_rng(0)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model.safetensors"
        train(rng, max(12, round(LISTS * scale))).save(model)
        with served(model):  # so that kernels are in the cache
            pass
        with served(model) as (client, seconds):
            rows.append(Row.at_most("from the start to the first answer", seconds, "s", START))
            for size in SIZES:
                rows += latencies(client, rng, size, max(3, round(TIMES * scale)))
    return rows


def latencies(client: HTTPConnection, rng: np.random.Generator, size: int, times: int) -> list[Row]:
    """Of lists that differ, one after the other."""
    whole, own = [], []
    for _ in range(times):
        body = {"query": text(rng, ASKED), "documents": [text(rng, WORDS) for _ in range(size)]}
        content = json.dumps(body).encode()
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
def served(model: Path) -> Iterator[tuple[HTTPConnection, float]]:
    """A client of a server on one core, and the seconds from its start to its first answer."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "didyma", "serve", str(model), "--port", "0", "--jobs", "1"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, [max(os.sched_getaffinity(0))])
        port = json.loads(process.stderr.readline())["port"]
        reading = threading.Thread(target=process.stderr.read)  # the log, which must not fill up
        reading.start()
        try:
            client = HTTPConnection("127.0.0.1", port, timeout=60)
            ask(client, b'{"query": "first", "documents": ["the first", "the second"]}')
            yield client, time.perf_counter() - began
            client.close()
        finally:
            process.terminate()
            reading.join()


def text(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(np.base_repr(n + 1296, 36).lower() for n in rng.zipf(1.2, n_words) % N_WORDS)
