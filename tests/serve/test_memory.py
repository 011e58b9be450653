"""What requests may have of memory together, and that it is given back."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
import weakref
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.serve.limits import Limits
from didyma.serve.memory import FREE, MemoryBudget
from didyma.serve.responses import HTTPError
from didyma.serve.work import WorkQueue
from tests.serve.conftest import BODY, connected, eventually, make_service, running
from tests.serve.process import ServerProcess

HEAD = b"POST /v2/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=12),
    stalled=st.sets(st.integers(0, 11)),
)
def test_whoever_comes_there_is_only_so_much_and_everybody_ends(sizes, stalled):
    """A law: together they never have more than the room, and those that stall give way."""
    unit, grace = FREE, 0.01

    async def ask(room: MemoryBudget, n: int, most: list[int]) -> str:
        with room.share() as share:
            try:
                async with share.waiting(60):
                    await share.take(sizes[n] * unit)
                    most.append(room.taken)
                    await asyncio.sleep(60 if n in stalled and sizes[n] > 1 else 0)
            except TimeoutError:
                return "gave way"
            return "answered"

    async def all_of_them() -> None:
        room, most = MemoryBudget(10 * unit, 60), [0]
        asked = [asyncio.create_task(ask(room, n, most)) for n in range(len(sizes))]
        moving = [task for n, task in enumerate(asked) if n not in stalled or sizes[n] <= 1]
        assert {await task for task in moving} <= {"answered"}
        assert max(most) <= max(10, max(sizes) - 1) * unit
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert room.taken == 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("didyma.serve.memory.GRACE", grace)
        asyncio.run(all_of_them())


def test_stalled_bodies_give_way_and_small_requests_never_wait(model, monkeypatch):
    monkeypatch.setattr("didyma.serve.memory.GRACE", 0.1)
    limits = Limits(in_flight=1_000_000, body=900_000)
    service = make_service(model, limits=limits)
    with running(service) as client:
        with connected(client, HEAD % 900_000 + b" " * 800_000) as stalled:
            eventually(lambda: service.memory.taken >= 800_000)
            assert client.post("/v2/rerank", json=BODY).status_code == 200
            large = json.dumps(BODY).encode() + b" " * 800_000
            assert client.post("/v2/rerank", content=large).status_code == 200
            assert stalled.recv(1000).startswith(b"HTTP/1.1 408")
        assert client.get("/health").status_code == 200
        assert service.memory.taken == 0


def test_answers_that_nobody_takes_give_way(model):
    limits = Limits(in_flight=20_000_000)
    service = make_service(model, limits=limits)
    body = {**BODY, "documents": ["a " * 40_000] * 120, "return_documents": True}
    content = json.dumps(body).encode()
    request = HEAD.replace(b"v2", b"v1") % len(content) + content
    with running(service) as client, ExitStack() as stack:
        for _ in range(4):
            assert stack.enter_context(connected(client, request)).recv(1) == b"H"
            assert service.memory.taken <= 2 * limits.in_flight
        assert client.post("/v2/rerank", json=BODY).status_code == 200


def test_what_a_refused_request_has_seen_is_forgotten_at_once():
    """Without the garbage collector, for which a few large texts are no reason to run."""

    class Texts:
        pass

    def refuse(seen: list[weakref.ref[Texts]]) -> None:
        texts = Texts()
        seen.append(weakref.ref(texts))
        raise HTTPError(413, "too long")

    async def ask(queue: WorkQueue) -> None:
        seen: list[weakref.ref[Texts]] = []
        with suppress(HTTPError):
            await queue.run(lambda: refuse(seen), 20)
        until = time.monotonic() + 20
        while seen[0]() is not None:  # the thread may be about to let go of it
            assert time.monotonic() < until
            await asyncio.sleep(0.01)

    queue = WorkQueue(1, 1)
    gc.disable()
    try:
        asyncio.run(ask(queue))
    finally:
        gc.enable()
        queue.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_many_large_bodies_take_little_memory_and_give_it_back(model_file):
    content = json.dumps({"query": "a", "documents": ["a" * 99_000] * 160}).encode()

    def memory(which: str) -> float:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith(which)]
        return int(line.split()[1]) / 1e3

    with ServerProcess(model_file) as server:
        body = {"query": "when?", "documents": ["Here.", "There."]}
        assert server.client.post("/v2/rerank", json=body).status_code == 200
        before = memory("VmRSS:")
        statuses: list[int] = []

        def ask() -> None:
            statuses.append(server.client.post("/v2/rerank", content=content).status_code)

        askers = [threading.Thread(target=ask) for _ in range(20)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert set(statuses) == {413}
        assert memory("VmHWM:") < before + 200
        eventually(lambda: memory("VmRSS:") <= before + 40)
