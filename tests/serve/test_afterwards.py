"""Work after answers: never at the cost of a request, and bounded."""

from __future__ import annotations

import threading

from didyma.execution import check_interruption
from didyma.serve.afterwards import MOST, Afterwards
from tests.serve.conftest import eventually


class Turns:
    """Whether requests have all turns."""

    is_busy = False


def wait_for(afterwards: Afterwards, n: int) -> None:
    eventually(lambda: sum(afterwards.outcomes.values()) >= n)


def test_it_is_done_and_counted():
    afterwards, done = Afterwards(Turns(), 100, 20.0), []
    afterwards.add(10, [("drift", lambda: done.append(1)), ("shadow", lambda: 1 / 0)])
    wait_for(afterwards, 2)
    assert done == [1]
    assert afterwards.outcomes == {("drift", "done"): 1, ("shadow", "failed"): 1}
    afterwards.close()


def test_it_waits_for_a_free_turn_also_between_two_steps():
    turns = Turns()
    afterwards, steps, began = Afterwards(turns, 100, 20.0), [], threading.Event()

    def work() -> None:
        steps.append("first")
        turns.is_busy = True
        began.set()
        check_interruption()
        steps.append("second")

    afterwards.add(1, [("shadow", work)])
    assert began.wait(20)
    threading.Event().wait(0.05)
    assert steps == ["first"]
    turns.is_busy = False
    wait_for(afterwards, 1)
    assert steps == ["first", "second"]
    afterwards.close()


def test_its_thread_ends_after_the_step_that_it_is_at():
    afterwards, began, goes_on = (
        Afterwards(Turns(), 100, 20.0),
        threading.Event(),
        threading.Event(),
    )

    def work() -> None:
        began.set()
        while not goes_on.is_set():
            check_interruption()

    afterwards.add(1, [("shadow", work)])
    assert began.wait(20)
    afterwards.close()
    goes_on.set()
    assert afterwards.outcomes == {("shadow", "dropped"): 1}
    assert not afterwards._thread.is_alive()


def test_what_finds_no_turn_in_time_is_dropped():
    turns = Turns()
    turns.is_busy = True
    afterwards = Afterwards(turns, 100, 0.05)
    afterwards.add(1, [("shadow", lambda: None)])
    wait_for(afterwards, 1)
    assert afterwards.outcomes == {("shadow", "dropped"): 1}
    afterwards.close()


def test_neither_many_nor_large_requests_are_held():
    turns = Turns()
    turns.is_busy = True
    afterwards = Afterwards(turns, 100, 20.0)
    afterwards.add(101, [("drift", lambda: None)])
    assert afterwards.outcomes["drift", "dropped"] == 1
    afterwards.add(60, [("drift", lambda: None)])
    afterwards.add(60, [("drift", lambda: None), ("shadow", lambda: None)])
    assert afterwards.outcomes == {("drift", "dropped"): 2, ("shadow", "dropped"): 1}
    for _ in range(MOST + 5):
        afterwards.add(0, [("drift", lambda: None)])
    assert afterwards.outcomes["drift", "dropped"] == 2 + 6
    turns.is_busy = False
    wait_for(afterwards, 3 + 6 + MOST)
    assert afterwards.outcomes["drift", "done"] == MOST
    afterwards.add(60, [("drift", lambda: None)])
    wait_for(afterwards, 10 + MOST)
    assert afterwards.outcomes["drift", "done"] == MOST + 1
    afterwards.close()
    afterwards.add(1, [("drift", lambda: None)])
    assert afterwards.outcomes["drift", "dropped"] == 9
