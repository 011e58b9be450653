"""`didyma serve` on one core, asked over loopback by one client for passages of 100 words.

Its own share is what a request takes beyond ranking, as the answer's ``server-timing`` tells. Then
32 clients ask at once for a minute, every text with words that are new to the server. A tenth of
them are hostile in all ways that we know (`benchmarks.hostile`).
``python -m benchmarks.serve --seconds 300`` does that alone, for longer.
"""

from __future__ import annotations

import argparse
import json
import os
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
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.row import Row
from didyma.data.lists import Lists
from didyma.serve.afterwards import Observer
from didyma.serve.served import NamedSource, ServedModels
from didyma.serve.watch import Watch
from didyma.text.observation import Scored, observing
from didyma.text.text_reranker import TextReranker

SIZES, WORDS, ASKED, N_WORDS = (10, 100, 1000), 100, 10, 20_000
TIMES, LISTS = 300, 200
P50, OWN, START = 8.0, 2.0, 2.0  # milliseconds for 100 passages, twice; seconds
CLIENTS, HOSTILE, SECONDS = 32, 3, 60.0
COUNT = 2.0  # percent
NEW = 10  # words of each text that are new to the server
TAIL = 3.0  # p99 over p50
GROWTH = 1.05  # of memory, between the first sixth of the time and its end
MEMORY = 400.0  # megabytes
ROOT = Path(__file__).parents[1]
LARGEST = 5  # packages that are named


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
        rows += watching(model, rng, max(3, round(TIMES * scale)))
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


def watching(model: Path, rng: np.random.Generator, times: int) -> list[Row]:
    """Processor time that watching takes, as a share of ranking 100 passages, in this process.

    What counts answers is part of the request. Drift is looked at when the answer is sent, at most
    ten times a second.
    """
    models = ServedModels([NamedSource(model, "model")])
    served = models.by_name["model"]
    observer = Observer(Watch(models, Counter()))
    spent: dict[str, list[float]] = {"rank": [], "count": [], "drift": []}
    for _ in range(times):
        content = json.loads(body(rng, 100))
        query, scored = content["query"], list[Scored]()
        began = time.thread_time()
        with observing(scored.append):
            ranking = served.reranker.rank(query, content["documents"])
        ranked = time.thread_time()
        works = observer.note("model", served, query, ranking, scored, len)
        counted = time.thread_time()
        for _, work in works:
            work()
        ended = time.thread_time()
        for name, seconds in zip(spent, (ranked - began, counted - ranked, ended - counted)):
            spent[name].append(seconds)
    rank, count, drift = (float(np.mean(seconds)) for seconds in spent.values())
    return [
        Row.at_most(
            "100 passages, to count the answer, of ranking", 100 * count / rank, "%", COUNT
        ),
        Row("100 passages, to look for drift, of ranking", 100 * drift / rank, "%"),
    ]


def crowd(server: Server, seconds: float) -> list[Row]:
    """Many clients at once, a tenth of them hostile."""
    outcomes: Counter[str] = Counter()
    times: list[float] = []
    begins = time.perf_counter()
    ends = begins + seconds
    command = [sys.executable, "-m", "benchmarks.hostile"]
    attacks = [str(value) for value in (server.port, seconds, HOSTILE)]
    with subprocess.Popen([*command, *attacks], stdout=subprocess.PIPE, cwd=ROOT) as hostile:
        clients = [
            threading.Thread(target=_client, args=(server.port, n, ends, outcomes, times))
            for n in range(CLIENTS - HOSTILE)
        ]
        for client in clients:
            client.start()
        used = []
        while time.perf_counter() < ends:
            time.sleep(seconds / 60)
            used.append(memory(server.pid))
        for client in clients:
            client.join()
        wall = time.perf_counter() - begins
        assert hostile.stdout is not None
        attacked = Counter(json.loads(hostile.stdout.read()))
    time.sleep(min(3.0, seconds))  # within which memory is given back
    after, early = memory(server.pid), min(used[:10])
    p50, p99 = float(np.median(times)), float(np.quantile(times, 0.99))
    whole = f"{CLIENTS} clients for {seconds:g} s"
    wrong = sum(attacked.values()) - attacked["attacks"]
    for answer in attacked:
        print(f"{attacked[answer]:>8} {answer}", file=sys.stderr)
    return [
        Row.at_most(f"{whole}: good requests that failed", outcomes["failed"], "", 0),
        Row(f"{whole}: attacks", attacked["attacks"], ""),
        Row.at_most(f"{whole}: attacks not answered as they should", wrong, "", 0),
        Row(f"{whole}: good requests answered", outcomes["good"] / wall, "1/s"),
        Row(f"{whole}: p50 of 10 passages", p50, "ms"),
        Row(f"{whole}: p99 of 10 passages", p99, "ms"),
        Row.at_most(f"{whole}: p99 over p50", p99 / p50, "x", TAIL),
        Row.at_most(f"{whole}: most memory", max(used), "MB", MEMORY),
        Row.at_most(f"{whole}: memory in the end over that early on", after / early, "x", GROWTH),
    ]


def _client(port: int, n: int, ends: float, outcomes: Counter[str], times: list[float]) -> None:
    """Ask until the time is up."""
    rng = np.random.default_rng(n)
    texts = [text(rng, WORDS - NEW) for _ in range(SIZES[0])]
    asked = text(rng, ASKED)
    client = HTTPConnection("127.0.0.1", port, timeout=60)
    for number in count(n * 10**9):
        if time.perf_counter() >= ends:
            break
        documents = [f"{one} {unheard_of(SIZES[0] * number + m)}" for m, one in enumerate(texts)]
        content = json.dumps({"query": asked, "documents": documents}).encode()
        began = time.perf_counter()
        try:
            client.request("POST", "/v2/rerank", content)
            answer = client.getresponse()
            answer.read()
            status = str(answer.status)
        except (OSError, HTTPException) as error:
            client.close()
            status = repr(error)
        times.append(1e3 * (time.perf_counter() - began))
        outcomes["good" if status == "200" else "failed"] += 1
        if status != "200":
            print(f"a good request failed: {status}", file=sys.stderr)
    client.close()


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


def unheard_of(number: int) -> str:
    """Words that no other text has."""
    return " ".join(f"n{number:x}e{n:x}w" for n in range(NEW))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long clients ask")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model.safetensors"
        train(np.random.default_rng(0), LISTS).save(model)
        with served(model) as server:
            for row in crowd(server, seconds):
                print(f"{row.name:<70}{row.figure:>10} {row.unit:<5}{row.target:<8}{row.verdict}")


if __name__ == "__main__":
    main()
