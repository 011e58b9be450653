from __future__ import annotations

import os
import threading

import pytest
from threadpoolctl import threadpool_info

from didyma.errors import DataError
from didyma.execution import n_cores, on_threads, serial, threads


@pytest.mark.parametrize("execute", [serial, on_threads(1), on_threads(3), on_threads()])
def test_order_is_kept(execute):
    assert execute(lambda x: x * x, list(range(20))) == [x * x for x in range(20)]


def test_threads_run_at_the_same_time():
    meet = threading.Barrier(2, timeout=30)
    assert len(on_threads(2)(lambda _: meet.wait(), [0, 1])) == 2


def test_errors_pass_through():
    with pytest.raises(ZeroDivisionError):
        on_threads(2)(lambda x: 1 // x, [1, 0])


def test_one_budget_is_everybodys():
    torch = pytest.importorskip("torch")
    before = n_cores(), torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
    with threads(1):
        assert n_cores() == torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        assert os.environ["OMP_NUM_THREADS"] == "1"
        assert on_threads() is on_threads(4) is serial
        with threads(2):
            assert n_cores() == min(2, before[0])
        assert n_cores() == torch.get_num_threads() == 1
    assert before == (n_cores(), torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS"))


@pytest.mark.parametrize("count", [0, -1, 1.5, "two"])
def test_a_budget_is_a_number_of_threads(count):
    with pytest.raises(DataError, match="threads: expected 1 or more"):
        threads(count)
