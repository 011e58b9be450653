from __future__ import annotations

import threading

import pytest

from didyma.execution import serial, threads


@pytest.mark.parametrize("execute", [serial, threads(1), threads(3), threads()])
def test_order_is_kept(execute):
    assert execute(lambda x: x * x, list(range(20))) == [x * x for x in range(20)]


def test_threads_run_at_the_same_time():
    meet = threading.Barrier(2, timeout=30)
    assert len(threads(2)(lambda _: meet.wait(), [0, 1])) == 2


def test_errors_pass_through():
    with pytest.raises(ZeroDivisionError):
        threads(2)(lambda x: 1 // x, [1, 0])
