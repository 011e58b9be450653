"""A million passages on disk, found by BM25: our index beside bm25s and tantivy, one thread each.

Each reads lines of an id, a tab and a text of 30 to 80 words, and then finds the best 100 passages
for queries of six words. Peers use their own tokenisers, in the environment of `benchmarks.peers`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import ONE_THREAD, environment
from benchmarks.row import Row
from didyma.text.index import PassageIndex

PASSAGES, WORDS, ASKED, QUERIES, K = 1_000_000, 300_000, 6, 200, 100
QUERY = 5.0  # milliseconds
WORKER = Path(__file__).with_name("search_worker.py")


def run(scale: float = 1.0) -> list[Row]:
    n_passages = max(200, round(PASSAGES * scale))
    with tempfile.TemporaryDirectory() as name:
        texts, queries = Path(name, "texts.tsv"), Path(name, "queries.txt")
        write(texts, queries, n_passages)
        asked = queries.read_text().splitlines()
        PassageIndex.build(["a storm"], Path(name, "first")).top(["storm"], K)  # warms up
        began = time.perf_counter()
        index = PassageIndex.build(texts, Path(name, "index"), language="english")
        built = time.perf_counter() - began
        milliseconds = timed(lambda query: index.top([query], K), asked)
        whole = timed(lambda query: index.search(query, 10), asked)
        size = (index.n_bytes - Path(name, "index", "passages.jsonl").stat().st_size) / 1e6
        rows = [
            Row(f"{n_passages:,} passages: build", built, "s"),
            Row("size without the texts", size, "MB"),
            Row.at_most("the best 100, p50", float(np.median(milliseconds)), "ms", QUERY),
            Row("the best 100, p99", float(np.quantile(milliseconds, 0.99)), "ms"),
            Row("the best 10 with their texts, p50", float(np.median(whole)), "ms"),
        ]
        for peer in ("bm25s", "tantivy"):
            found = measured(peer, texts, queries, Path(name, peer))
            if found is None:
                rows.append(Row.absent(peer))
                continue
            rows += [
                Row(f"{peer}: build, time over ours", found["seconds"] / built, "x"),
                Row(f"{peer}: size", found["bytes"] / 1e6, "MB"),
                Row(
                    f"{peer}: the best 100, time over ours",
                    float(np.median(found["milliseconds"]) / np.median(milliseconds)),
                    "x",
                ),
            ]
    return rows


def timed(ask: Any, queries: list[str]) -> list[float]:
    """Milliseconds of each query; all are asked once before."""
    found = []
    for _ in range(2):
        found = []
        for query in queries:
            began = time.perf_counter()
            ask(query)
            found.append(1e3 * (time.perf_counter() - began))
    return found


def measured(peer: str, texts: Path, queries: Path, folder: Path) -> dict[str, Any] | None:
    """What a peer takes, in a process of its own; None if it cannot be installed."""
    needed = ("bm25s[core]", "numba") if peer == "bm25s" else (peer,)
    pythons = [environment(package) for package in needed]
    if any(python is None for python in pythons):
        return None
    command = [str(pythons[0]), str(WORKER), peer, str(texts), str(queries), str(folder), str(K)]
    child = subprocess.run(command, capture_output=True, text=True, env={**ONE_THREAD})
    if child.returncode:
        print(child.stderr, file=sys.stderr)
        return None
    return json.loads(child.stdout.splitlines()[-1])


def write(texts: Path, queries: Path, n_passages: int) -> None:
    """Words as frequent as those of a language, queries of less frequent ones."""
    rng = np.random.default_rng(0)
    words = np.array([np.base_repr(n + 1296, 36).lower() for n in range(WORDS)])
    shares = np.cumsum(1 / (np.arange(WORDS) + 2.7) ** 1.05)
    with texts.open("w") as file:
        for first in range(0, n_passages, 10_000):
            lengths = rng.integers(30, 80, min(10_000, n_passages - first))
            places = np.searchsorted(shares, rng.random(lengths.sum()) * shares[-1])
            drawn = iter(words[np.minimum(places, WORDS - 1)].tolist())
            for n, length in enumerate(lengths.tolist(), first):
                file.write(f"{n}\t{' '.join(next(drawn) for _ in range(length))}\n")
    queries.write_text("\n".join(_queries(words, rng)) + "\n")


def _queries(words: Any, rng: np.random.Generator) -> Iterator[str]:
    for _ in range(QUERIES):
        yield " ".join(words[(100 * np.exp(5 * rng.random(ASKED))).astype(int)])
