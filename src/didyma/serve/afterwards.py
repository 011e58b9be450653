"""Background work after a response, if there is time: drift, the shadow model, the sample."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from didyma.execution import interruptible
from didyma.serve.logs import log
from didyma.serve.samples import SampleFile, record_of
from didyma.serve.served import ServedModel, ServedModels
from didyma.serve.watch import ModelWatch, Watch
from didyma.serve.work import WorkQueue
from didyma.text.observation import Scored, observing

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranking

Works: TypeAlias = list[tuple[str, Callable[[], object]]]  # each with its kind

MOST = 8  # pieces of work that wait
PAUSE = 0.01  # seconds between two looks whether there is a free turn
ENDING = 1.0  # seconds that the last step has when the server ends
NICE = 10  # lower priority, where the system knows such of threads


class Afterwards:
    """One thread of low priority for work that can be left out.

    It begins, and goes on between two steps, only while a request would find a free turn. Work
    beyond ``n_bytes`` of requests, or beyond a few pieces, is dropped; so is work that has not come
    to its end after ``seconds``. All of it is counted in ``outcomes``, by kind and outcome.
    """

    def __init__(self, queue: WorkQueue, n_bytes: int, seconds: float) -> None:
        self._queue, self._n_bytes, self._seconds = queue, n_bytes, seconds
        self._waiting: SimpleQueue[tuple[int, float, Works]] = SimpleQueue()
        self._lock = threading.Lock()
        self._n_waiting = self._held = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def add(self, n_bytes: int, works: Works) -> None:
        """Do works later, each with its kind, that hold on to a request of so many bytes."""
        with self._lock:
            is_full = self._n_waiting >= MOST or self._held + n_bytes > self._n_bytes
            if is_full or self._is_closed:
                self._count("dropped", works)
                return
            self._n_waiting += 1
            self._held += n_bytes
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._loop, name="didyma-afterwards", daemon=True
                )
                self._thread.start()
        self._waiting.put((n_bytes, time.monotonic() + self._seconds, works))

    def close(self) -> None:
        """Drop what waits, and end the thread after the step that it is at."""
        self._is_closed = True
        with suppress(Empty):
            while True:
                _, _, works = self._waiting.get_nowait()
                self._count("dropped", works)
        self._waiting.put((0, 0.0, []))
        if self._thread is not None:
            self._thread.join(ENDING)

    def _loop(self) -> None:
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while not self._is_closed:
            n_bytes, ends, works = self._waiting.get()
            for work in works:
                self._do(*work, ends)
            del works  # and the request that they have
            with self._lock:
                self._n_waiting -= 1
                self._held -= n_bytes

    def _do(self, kind: str, work: Callable[[], object], ends: float) -> None:
        def wait_for_a_turn() -> None:
            while self._queue.is_busy or self._is_closed:
                if time.monotonic() > ends or self._is_closed:
                    raise Dropped
                time.sleep(PAUSE)

        outcome = "done"
        try:
            wait_for_a_turn()
            with interruptible(wait_for_a_turn, ends):
                work()
        except Dropped:
            outcome = "dropped"
        except Exception as error:  # whatever it is, the next may do; its message may quote texts
            outcome = "failed"
            log(logging.ERROR, "afterwards failed", work=kind, kind=type(error).__name__)
        self.outcomes[kind, outcome] += 1

    def _count(self, outcome: str, works: Works) -> None:
        for kind, _ in works:
            self.outcomes[kind, outcome] += 1


class Dropped(Exception):
    """Work that found no free turn in time."""


@dataclass(frozen=True)
class Observer:
    """What is done with each answer: counts, drift, the shadow model, the sample.

    Attributes
    ----------
    watch : Watch
        Counts of each model.
    shadows : ServedModels, optional
        Shadow models, each by the name of the model whose requests it ranks.
    samples : SampleFile, optional
        Where a sample of requests is kept.
    """

    watch: Watch
    shadows: ServedModels | None = None
    samples: SampleFile | None = None

    def note(
        self,
        name: str,
        model: ServedModel,
        query: str,
        ranking: Ranking,
        scored: list[Scored],
        ask: Callable[[Any], object],
    ) -> Works:
        """Count an answer, and return the works that are to be done afterwards, with their kinds.

        ``ask`` asks any reranker the same.
        """
        watch, samples, works = self.watch.by_name[name], self.samples, Works()
        last = scored[-1] if scored else None
        watch.count(model, ranking, last)
        if last is not None and watch.is_due():
            works.append(("drift", partial(watch.look, last, model.version)))
        if last is not None and self.shadows is not None and name in self.shadows.by_name:
            works.append(("shadow", partial(_ask_shadow, self.shadows, name, last, ask, watch)))
        if samples is not None and samples.chooses():
            answer = name, model.version, query, ranking
            works.append(("sample", lambda: samples.write(record_of(*answer))))
        return works


def _ask_shadow(
    shadows: ServedModels,
    name: str,
    scored: Scored,
    ask: Callable[[Any], object],
    watch: ModelWatch,
) -> None:
    shadow = shadows.by_name[name].reranker
    others: list[Scored] = []
    with observing(others.append):
        ask(getattr(shadow, "reranker", shadow))  # no teacher is asked for a shadow's sake
    if others:
        watch.shadow.add(scored.raw, others[-1].raw)
