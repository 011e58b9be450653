"""InProcesses: a solver that holds the GIL, on several cores."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from multiprocessing import get_context
from typing import Any

from didyma.execution import n_threads
from didyma.solvers.wrapper import Wrapper
from didyma.structure import Structure
from didyma.structures.layout import Floats


class InProcesses(Wrapper):
    """The same structure, whose argmax runs in other processes, one for each core.

    For solvers in Python, which hold the GIL: layers and losses then solve the instances of a batch
    at once, on as many threads as their ``n_jobs`` says, each of which waits for a process. A call
    costs a fraction of a millisecond more. Solvers that release the GIL (`Milp`) do so without it:
    a class says that by ``concurrent = True``. What a structure counts (`LimitedSolver.worst_gap`)
    is counted in the processes and not here.

    >>> from didyma.solvers import Milp
    >>> with InProcesses(Milp([[3, 2, 2]], [4]), 2) as knapsack:
    ...     knapsack.predict([4.0, 2.5, 2.0])
    array([False,  True,  True])

    Args:
        structure: one that can be pickled: its class stands in a module.
        n_jobs: processes; None means one for each core.
    """

    def __init__(self, structure: Structure, n_jobs: int | None = None) -> None:
        super().__init__(structure)
        self.n_jobs = n_jobs
        self.concurrent = True  # type: ignore[misc]

    @cached_property
    def _pool(self) -> ProcessPoolExecutor:
        # Other threads are running, whose locks a fork would copy as they are.
        context = get_context("spawn")
        return ProcessPoolExecutor(n_threads(self.n_jobs), context, _begin, (self.structure,))

    def argmax(self, scores: Floats, **additional: Any) -> Any:
        """What the structure inside answers, in another process."""
        return self._pool.submit(_argmax, scores, additional).result()

    def close(self) -> None:
        """End the processes; they begin again when they are needed."""
        if "_pool" in vars(self):
            vars(self).pop("_pool").shutdown()

    def __enter__(self) -> InProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_structure: Structure  # of a process of the pool


def _begin(structure: Structure) -> None:
    global _structure
    _structure = structure


def _argmax(scores: Floats, additional: dict[str, Any]) -> Any:
    return _structure.argmax(scores, **additional)
