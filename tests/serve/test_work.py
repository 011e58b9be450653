"""Whose turn it is, who waits, and that the process ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.execution import check_interruption
from didyma.serve.limits import Limits
from didyma.serve.responses import HTTPError
from didyma.serve.work import WorkQueue
from tests.serve.conftest import (
    BODY,
    IN_TEI,
    best_score,
    eventually,
    make_service,
    running,
    trained_service,
)


async def until(check: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not check():
        assert time.monotonic() < ends
        await asyncio.sleep(0.005)


def run(ask: Callable[[WorkQueue], Awaitable[None]], threads: int, waiting: int) -> None:
    """Ask for work of a queue."""
    queue = WorkQueue(threads, waiting)
    asyncio.run(ask(queue))
    queue.close()


def test_turns_go_round_between_clients():
    """A client that asks for little waits for one turn of a client that asks for much."""
    order: list[str] = []

    async def ask(queue: WorkQueue) -> None:
        gate = threading.Event()
        first = asyncio.create_task(queue.run(gate.wait, 20, "much"))
        await until(lambda: queue.pending == 1)
        asked = []
        for n, client in enumerate(["much"] * 5 + ["little"] + ["much"] * 3 + ["other"]):
            asked.append(
                asyncio.create_task(queue.run(lambda c=client: order.append(c), 20, client))
            )
            await until(lambda n=n: queue.pending == n + 2)
        gate.set()
        await asyncio.gather(first, *asked)

    run(ask, 1, 20)
    assert sorted(order[:3]) == ["little", "much", "other"]
    assert len(order) == 10


@settings(max_examples=50, deadline=None)
@given(
    clients=st.lists(st.sampled_from("abc"), min_size=1, max_size=20),
    waiting=st.integers(0, 6),
    threads=st.integers(1, 2),
)
def test_only_those_who_ask_for_most_are_refused(clients, waiting, threads):
    """A law: whoever is refused has no fewer requests than any other that has one waiting."""

    async def ask(queue: WorkQueue) -> None:
        gate = threading.Event()
        asked: dict[asyncio.Task[bool], str] = {}
        refused = 0
        for client in clients:
            before = Counter(asked[task] for task in asked if not task.done())
            waiting_ones = {one.client for one in queue._line}
            asked[asyncio.create_task(queue.run(gate.wait, 20, client))] = client
            for _ in range(5):
                await asyncio.sleep(0)
            gone = [task for task in asked if task.done()]
            if len(gone) > refused:
                (last,) = {asked[task] for task in gone[refused:]}
                most = max((before[one] for one in waiting_ones), default=0)
                assert before[last] + (last == client) >= most
                assert sum(before.values()) == queue.room
            else:
                assert sum(before.values()) < queue.room
            refused = len(gone)
            asked = {task: asked[task] for task in [*gone, *(t for t in asked if not t.done())]}
            assert queue.pending <= queue.room
        gate.set()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(result is True for result in results) == len(clients) - refused
        assert all(result is True or isinstance(result, HTTPError) for result in results)
        assert queue.pending == 0

    run(ask, threads, waiting)


def test_long_work_lets_short_work_pass(monkeypatch):
    """On one thread: the long work ends only after the short one has."""
    monkeypatch.setattr("didyma.serve.work.SLICE", 0.0)
    done = threading.Event()

    def long() -> str:
        while not done.is_set():
            check_interruption()
        return "long"

    async def ask(queue: WorkQueue) -> None:
        first = asyncio.create_task(queue.run(long, 60))
        await until(lambda: queue.pending == 1)
        assert await queue.run(lambda: "short", 60) == "short"
        assert not first.done()
        done.set()
        assert await first == "long"

    run(ask, 1, 2)


@pytest.mark.parametrize("rivals", [0, 2])
def test_work_ends_at_its_deadline(monkeypatch, rivals):
    monkeypatch.setattr("didyma.serve.work.SLICE", 0.0)

    def for_ever() -> None:
        while True:
            check_interruption()

    async def ask(queue: WorkQueue) -> None:
        asked = [asyncio.create_task(queue.run(for_ever, 0.2)) for _ in range(1 + rivals)]
        for result in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(result, HTTPError)
            assert "no answer within 0.2 s" in str(result)
        await until(lambda: queue.pending == 0)
        assert await queue.run(lambda: "next", 20) == "next"

    run(ask, 1, 5)


def test_new_words_without_end_do_not_outlive_their_request(model_file):
    """Texts are read in steps, and the thread is free soon after the deadline."""
    limits = Limits(seconds=0.1, text=20_000_000, body=30_000_000, characters=10_000_000)
    service = trained_service(model_file, limits=limits, threads=1)
    texts = [" ".join(f"w{n}x{m}" for m in range(60_000)) for n in range(12)]
    with running(service) as client:
        found = client.post("/v2/rerank", json={"query": "w1x1", "documents": texts})
        assert found.status_code == 429
        eventually(lambda: not service.queue.pending, 60)
        service.limits = Limits()
        body = {"query": "when?", "documents": ["Here.", "There."]}
        eventually(lambda: client.post("/v2/rerank", json=body).status_code == 200, 60)


STUCK = """
import signal, sys, threading
from pathlib import Path
from didyma.serve.app import Service
from didyma.serve.limits import Limits
from didyma.serve.logs import log_to_stderr
from didyma.serve.served import NamedSource, ServedModels
from didyma.serve.server import serve
from tests.serve.standin import CommonWords

class Stuck(CommonWords):
    def rank(self, query, *others, **more):
        if query == "for ever":
            threading.Event().wait()
        return super().rank(query, *others, **more)

signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line has it
with log_to_stderr():
    models = ServedModels([NamedSource(Path(sys.argv[1]), None)], lambda path: Stuck())
    serve(Service(models, Limits(seconds=1.0), threads=4), "127.0.0.1", 0)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_process_ends_whatever_its_threads_do(model):
    command = [sys.executable, "-c", STUCK, model]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = f"http://127.0.0.1:{json.loads(process.stderr.readline())['port']}"
        stuck = {"query": "for ever", "documents": ["a"]}
        assert httpx.post(f"{address}/v2/rerank", json=stuck, timeout=60).status_code == 429
        assert httpx.post(f"{address}/v2/rerank", json=stuck | {"query": "a"}).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        said = [json.loads(line) for line in process.stderr]
    assert said[-1]["event"] == "left undone"
    assert said[-1]["requests"] == 1


def test_overload_is_429_and_ends(model):
    service = make_service(model, limits=Limits(waiting=1), threads=1)
    reranker = service.models.by_name["words"].reranker
    with running(service) as client:

        def ask() -> int:
            return httpx.post(
                f"{client.base_url}/v2/rerank", json=BODY | {"query": "wait"}
            ).status_code

        statuses: list[int] = []
        askers = [threading.Thread(target=lambda: statuses.append(ask())) for _ in range(2)]
        for asker in askers:
            asker.start()
        assert reranker.entered.acquire(timeout=20)
        eventually(lambda: service.queue.pending == 2)
        refused = client.post("/v2/rerank", json=BODY)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["error"]["type"] == "RateLimitError"
        assert client.post("/rerank", json=IN_TEI).json()["error_type"] == "Overloaded"
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
        reranker.gate.set()
        for asker in askers:
            asker.join()
        assert statuses == [200, 200]
        assert client.get("/ready").status_code == 200
        assert best_score(client) == 1.0


def test_what_takes_too_long_is_refused_and_keeps_its_place(model):
    service = make_service(model, limits=Limits(waiting=0, seconds=0.2), threads=1)
    reranker = service.models.by_name["words"].reranker
    with running(service) as client:
        late = client.post("/v2/rerank", json=BODY | {"query": "wait"})
        assert late.status_code == 429
        assert late.json()["message"] == "no answer within 0.2 s"
        assert service.queue.pending == 1  # the thread is still at it
        reranker.gate.set()
        eventually(lambda: not service.queue.pending)
        assert best_score(client) == 1.0


def test_what_waited_too_long_is_never_begun():
    async def ask(queue: WorkQueue) -> None:
        gate, begun = threading.Event(), []
        first = asyncio.create_task(queue.run(gate.wait, 20))
        await asyncio.sleep(0.05)
        with pytest.raises(HTTPError, match="no answer within"):
            await queue.run(lambda: begun.append(1), 0.05)
        assert queue.pending == 1
        gate.set()
        assert await first
        assert not begun

    run(ask, 1, 1)
