from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from didyma import SVMRanker
from didyma.errors import DataError
from didyma.execution import MOST, n_cores, n_threads, on_threads, serial, threads

with threads(None):
    CORES = n_cores()


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
            assert n_cores() == min(2, CORES)
        assert n_cores() == torch.get_num_threads() == 1
    assert before == (n_cores(), torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS"))


@pytest.mark.parametrize(
    ("told", "found"),
    [("1", 1), ("1,4", 1), (" 1 ", 1), ("9999", CORES), ("0", CORES), ("two", CORES), ("", CORES)],
)
def test_a_process_keeps_to_the_share_that_it_was_told(told, found, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert n_cores() == found
    with threads(None):
        assert n_cores() == CORES


@pytest.mark.parametrize("count", [0, -1, 1.5, "two"])
def test_a_budget_is_a_number_of_threads(count):
    with pytest.raises(DataError, match="threads: expected 1 or more"):
        threads(count)


@pytest.mark.parametrize("count", [10**9, 10**30, np.int64(2**62)])
def test_any_number_of_threads_can_be_asked_for(count):
    """No system has so many, and the core counts in 64 bits."""
    with threads(None):
        assert n_threads(count) == MOST
    with threads(count):
        assert n_cores() == CORES
        assert os.environ["OMP_NUM_THREADS"] == str(MOST)
    ranker = SVMRanker(C=1, n_jobs=count).fit([[1.0], [0.0]], [1, 0])
    assert ranker.predict([[1.0]]) > 0


def test_shards_are_shared_out_in_order_and_by_the_caller_too():
    seen = []

    def square(n):
        seen.append(threading.get_ident())
        time.sleep(0.002)
        return n * n

    assert on_threads(3)(square, range(20)) == [n * n for n in range(20)]
    assert threading.get_ident() in seen
    assert 1 < len(set(seen)) <= 3


@pytest.mark.parametrize("bad", [0, 7, 19])
def test_an_error_in_a_shard_is_raised_when_nobody_works_any_more(bad):
    begun, ended = [], []

    def work(n):
        begun.append(n)
        if n == bad:
            raise ValueError(f"shard {n}")
        time.sleep(0.002)
        ended.append(n)

    with pytest.raises(ValueError, match=f"shard {bad}"):
        on_threads(3)(work, range(20))
    assert sorted(ended) == [n for n in sorted(begun) if n != bad]
    done = len(ended)
    time.sleep(0.01)
    assert len(ended) == done


def test_shards_within_shards_do_not_wait_for_each_other():
    inner = on_threads(2)
    found = on_threads(2)(lambda n: inner(lambda m: n * m, range(3)), range(4))
    assert found == [[0, n, 2 * n] for n in range(4)]


def test_blas_works_on_one_thread_until_the_last_solve_is_done():
    pytest.importorskip("numpy")
    from threadpoolctl import threadpool_info, threadpool_limits

    from didyma.execution import one_blas_thread

    def count():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            with one_blas_thread():
                assert count() == {1}
            assert count() == {1}
        assert count() == {2}
