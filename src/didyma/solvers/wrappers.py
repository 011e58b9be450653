"""Wrappers around a structure that is solved in Python: a cache, and a pool of processes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cached_property
from multiprocessing import get_context
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.execution import n_threads
from didyma.polytope.distributions import Distribution
from didyma.polytope.sparsemap import SolverOptions, solve
from didyma.structure import Structure, require_structure
from didyma.structures.batches import data_key
from didyma.structures.layout import Floats, Layout


class Wrapper(Structure):
    """A structure with the outputs of the one inside; a subclass says how `argmax` asks it."""

    def __init__(self, structure: Structure) -> None:
        require_structure(structure)
        if type(structure).lay_out is not Structure.lay_out:
            raise DataError(
                f"expected a structure that is solved in Python, found {structure!r}, whose argmax "
                "is compiled",
                field="structure",
            )
        self.structure = structure
        self.ndim = structure.ndim  # type: ignore[misc]
        self.data = structure.data  # type: ignore[misc]
        self.reads_infinity = structure.reads_infinity  # type: ignore[misc]
        self.concurrent = structure.concurrent  # type: ignore[misc]

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Those of the structure inside."""
        return self.structure.additional(shape)

    def encode(self, outputs: Any, layout: Layout) -> Any:
        """As the structure inside does."""
        return self.structure.encode(outputs, layout)

    def decode(self, parts: Any, layout: Layout) -> Any:
        """As the structure inside does."""
        return self.structure.decode(parts, layout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.structure!r})"


Answer = tuple[int, ...] | None


class Cached(Wrapper):
    """The same structure, with a memory of questions and a pool of outputs; answers stay exact.

    * A question that was asked before, with the same scores and data, is answered from memory: the
      best decision for the true scores of an instance is solved for in the first epoch only.
    * SparseMAP begins with the best average of the outputs in the pool, and asks the solver only
      whether there is a better output, and for it. What it finds is certified as before.

    It pays where a call takes milliseconds.

    >>> from didyma import sparsemap
    >>> from didyma.solvers import Milp
    >>> knapsack = Cached(Milp([[3, 2, 2]], [4]))
    >>> for _ in range(3):
    ...     _ = sparsemap([1.0, 0.9, 0.8], knapsack)
    >>> knapsack.n_asked, knapsack.n_solved, knapsack.hit_rate
    (5, 3, 0.4)

    Args:
        structure: one that is solved in Python.
        max_size: answers to remember, and outputs to keep for instances with the same data; the
            least recently used are forgotten.

    Attributes:
        n_asked: questions so far.
        n_solved: those that the solver was asked.
        hit_rate: share of the questions that were answered from memory.
    """

    def __init__(self, structure: Structure, max_size: int = 10_000) -> None:
        super().__init__(structure)
        if max_size < 1:
            raise DataError(f"expected at least 1, found {max_size}", field="max_size")
        self.max_size = max_size
        self.n_asked = self.n_solved = 0
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._pools: dict[Any, OrderedDict[tuple[int, ...], None]] = {}

    @property
    def hit_rate(self) -> float:
        """Share of the questions that were answered from memory; 0 before the first."""
        return 1.0 - self.n_solved / self.n_asked if self.n_asked else 0.0

    def argmax(self, scores: Floats, **additional: Any) -> NDArray[np.int64] | None:
        """The answer from memory, or else the solver's."""
        key = self._key(scores.shape, additional)
        arrays = [np.asarray(v).tobytes() for n, v in additional.items() if n not in self.data]
        question = key, scores.tobytes(), *arrays
        with self._lock:
            self.n_asked += 1
            if question in self._answers:
                self._answers.move_to_end(question)
                return _as_array(self._answers[question])
            self.n_solved += 1
        parts = self.structure.argmax(scores, **additional)
        answer = None if parts is None else tuple(np.sort(parts).tolist())
        with self._lock:
            self._remember(self._answers, question, answer)
            if answer is not None:
                self._remember(self._pools.setdefault(key, OrderedDict()), answer, None)
        return _as_array(answer)

    def first_guess(self, layout: Layout, options: SolverOptions) -> list[Distribution | None]:
        """The optimum over the outputs in the pool, for each instance that has any."""
        guess: list[Distribution | None] = []
        for b in range(len(layout)):
            instance = layout.select([b])
            key = self._key(layout.shape, layout.data_of(b))
            pool = _Pool(self, tuple(self._pools.get(key, ())), instance)
            guess.append(pool.solve(instance, options) if pool.outputs else None)
        return guess

    @cached_property
    def _lock(self) -> Any:
        return Lock()

    def _remember(self, memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
        """Store as the most recently used, and forget the least recently used."""
        memory[key] = value
        memory.move_to_end(key)
        if len(memory) > self.max_size:
            memory.popitem(last=False)

    def _key(self, shape: tuple[int, ...], instance: Any) -> Any:
        """What instances must share to have the same outputs."""
        data = {name: value for name, value in instance.items() if name in self.data}
        return shape, data_key(data) if data else None


class _Pool(Structure):
    """A list of outputs, each a row of part indices."""

    def __init__(self, of: Cached, outputs: tuple[tuple[int, ...], ...], layout: Layout) -> None:
        d = layout.scores.shape[1]
        self.of, self.places = of, layout.additional
        self.flags = np.zeros((len(outputs), d + layout.extra.shape[1]), bool)
        for row, output in zip(self.flags, outputs):
            row[list(output)] = True
        forbidden = np.concatenate([layout.scores[0], layout.extra_of(0)]) == -np.inf
        allowed = ~(self.flags & forbidden).any(axis=1)
        self.flags = self.flags[allowed].astype(np.float64)
        self.outputs = tuple(output for output, ok in zip(outputs, allowed) if ok)

    def argmax(self, scores: Any, **additional: Any) -> Any:
        """The best of the list."""
        flat = np.zeros(self.flags.shape[1])
        flat[: scores.size] = scores.ravel()
        for name, array in additional.items():
            place = self.places[name]
            flat[scores.size + place.start : scores.size + place.stop] = array.ravel()
        best = np.argmax(self.flags @ np.where(flat == -np.inf, 0.0, flat))
        return np.array(self.outputs[int(best)], np.int64)

    def solve(self, layout: Layout, options: SolverOptions) -> Distribution:
        """SparseMAP over the list, as a solution of the structure whose outputs they are."""
        options = replace(options, temperature=1.0, face=False, max_iter=None, n_jobs=1)
        (distribution,) = solve(replace(layout, data={}), self, options)
        return replace(distribution, structure=self.of)


def _as_array(answer: Answer) -> NDArray[np.int64] | None:
    return None if answer is None else np.array(answer, np.int64)


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
