"""CpSat and Tour: constraint models, solved by CP-SAT of OR-tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError, MissingExtraError
from didyma.solvers.milp import LimitedSolver
from didyma.structures.batches import check_one_each
from didyma.structures.layout import Floats

LARGEST = 2**36  # coefficient of the largest score, as the solver counts in whole numbers


def cp_model() -> Any:
    """The module of OR-tools, which is imported when it is used."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingExtraError("a structure by CP-SAT", "solvers") from None
    return cp_model


class CpSat(LimitedSolver):
    """Solutions of a constraint model, by CP-SAT; a part is a literal of the model.

    Scores (B, n_literals), outputs boolean of the same shape. Two solutions in which the same
    literals hold are one output. The objective is ours: the model has none. Each search begins at
    the solution of the last one, as a hint.

    CP-SAT counts in whole numbers, so scores are rounded to 2⁻³⁶ of the largest: an answer is at
    most n_literals · 2⁻³⁶ · max|score| short of the best (7e-10 of the largest, of 50 literals).

    >>> from ortools.sat.python import cp_model
    >>> model = cp_model.CpModel()
    >>> shifts = [model.new_bool_var(f"shift {i}") for i in range(4)]
    >>> for one, next_one in zip(shifts, shifts[1:]):
    ...     model.add_at_most_one([one, next_one])  # doctest: +ELLIPSIS
    <...>
    <...>
    <...>
    >>> CpSat(model, shifts).predict([1.0, 1.5, 1.0, 0.2])
    array([ True, False,  True, False])

    Args:
        model: constraints; copied.
        literals: Boolean variables, or negated ones, in the order of the scores.
        time_limit: seconds for an argmax; see `worst_gap`.
        n_workers: threads of one search; with more than one, which of equal outputs is found is
            left to chance.
    """

    def __init__(
        self,
        model: Any,
        literals: Sequence[Any],
        *,
        time_limit: float | None = None,
        n_workers: int = 1,
    ) -> None:
        if model.has_objective():
            raise DataError("expected a model without an objective", field="model")
        self.model = model.clone()
        self.literals = tuple(int(literal.index) for literal in literals)
        if len({*self.literals}) < len(self.literals):
            raise DataError("expected different literals", field="literals")
        self.n_workers = n_workers
        self._limit(time_limit)
        self._hint: list[int] | None = None

    def argmax(self, scores: Floats) -> NDArray[np.int64] | None:  # type: ignore[override]
        """Parts of the best solution, or None where all have a part of score −∞."""
        flat = self._flat(scores)
        solver, status = self._search(flat)
        sat = cp_model()
        if status == sat.INFEASIBLE:
            self._refuse_contradictions((flat == -np.inf).any())
            return None
        if status not in (sat.OPTIMAL, sat.FEASIBLE):
            if status == sat.UNKNOWN:
                raise self._late()
            problem = self.model.validate() or solver.status_name(status)
            raise DataError(f"CP-SAT says: {problem}", field="model")
        self._hint = list(solver.response_proto.solution)
        holds = np.array([self._holds(literal) for literal in self.literals], bool)
        if status == sat.FEASIBLE:
            finite = np.where(flat == -np.inf, 0.0, flat)
            bound = solver.best_objective_bound / _scale(finite)
            self._note(max(bound - float(finite[holds].sum()), 0.0))
        return self._places(np.flatnonzero(holds))

    def _flat(self, scores: Floats) -> Floats:
        """Scores of the literals."""
        check_one_each(scores.shape, len(self.literals), "literal")
        return scores

    def _places(self, held: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices into the scores of literals that hold."""
        return held

    def _search(self, flat: Floats) -> tuple[Any, int]:
        sat = cp_model()
        model = self.model.clone()
        literals = [self._literal(model, index) for index in self.literals]
        forbidden = flat == -np.inf
        finite = np.where(forbidden, 0.0, flat)
        whole = np.rint(finite * _scale(finite)).astype(np.int64)
        if forbidden.any():
            model.add_bool_and([literals[i].negated() for i in np.flatnonzero(forbidden)])
        model.maximize(sat.LinearExpr.weighted_sum(literals, whole.tolist()))
        if self._hint is not None:
            model.clear_hints()
            for index, value in enumerate(self._hint):
                model.add_hint(model.get_int_var_from_proto_index(index), value)
        solver = sat.CpSolver()
        solver.parameters.num_workers = self.n_workers
        solver.parameters.random_seed = 0
        if self.time_limit is not None:
            solver.parameters.max_time_in_seconds = self.time_limit
        return solver, solver.solve(model)

    @staticmethod
    def _literal(model: Any, index: int) -> Any:
        variable = model.get_bool_var_from_proto_index(index if index >= 0 else ~index)
        return variable if index >= 0 else variable.negated()

    def _holds(self, literal: int) -> bool:
        assert self._hint is not None
        value = self._hint[literal if literal >= 0 else ~literal]
        return bool(value) == (literal >= 0)

    def __getstate__(self) -> dict[str, Any]:
        """The model as text, since it cannot be pickled."""
        return {**super().__getstate__(), "model": str(self.model.proto)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = cp_model().CpModel()
        model.proto.parse_text_format(state["model"])
        vars(self).update({**state, "model": model})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.literals)} literals)"


def _scale(scores: Floats) -> float:
    return LARGEST / (float(np.abs(scores).max(initial=0.0)) or 1.0)


class Tour(CpSat):
    """Tours through n nodes, each visited once, by the circuit constraint of CP-SAT.

    Scores (B, n, n) of going from i to j, or with ``directed=False`` of the edge between i and j,
    read at [i, j] with i < j; outputs boolean of the same shape. For the shortest tour give
    negative lengths. The problem is NP-hard: tens of nodes are a matter of seconds.

    >>> import numpy as np
    >>> square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> lengths = np.linalg.norm(square[:, None] - square, axis=-1)
    >>> np.argwhere(Tour(4, directed=False).predict(-lengths)).tolist()
    [[0, 1], [0, 3], [1, 2], [2, 3]]

    Args:
        n_nodes: number of nodes, at least 3.
        directed: whether scores of both directions are told apart.
        time_limit, n_workers: as for `CpSat`.
    """

    ndim: ClassVar[int] = 2

    def __init__(
        self,
        n_nodes: int,
        directed: bool = True,
        *,
        time_limit: float | None = None,
        n_workers: int = 1,
    ) -> None:
        if n_nodes < 3:
            raise DataError(f"expected 3 nodes or more, found {n_nodes}", field="n_nodes")
        self.n_nodes, self.directed = n_nodes, directed
        model = cp_model().CpModel()
        arcs = {
            (i, j): model.new_bool_var("") for i in range(n_nodes) for j in range(n_nodes) if i != j
        }
        model.add_circuit([(i, j, literal) for (i, j), literal in arcs.items()])
        literals = arcs
        if not directed:
            literals = {edge: model.new_bool_var("") for edge in arcs if edge[0] < edge[1]}
            for (i, j), edge in literals.items():
                model.add(arcs[i, j] + arcs[j, i] == edge)
        self._cells = np.array([i * n_nodes + j for i, j in literals])
        super().__init__(model, [*literals.values()], time_limit=time_limit, n_workers=n_workers)

    def _flat(self, scores: Floats) -> Floats:
        if scores.shape != (self.n_nodes, self.n_nodes):
            raise DataError(
                f"expected shape {(self.n_nodes, self.n_nodes)}, found {scores.shape}",
                field="scores",
            )
        return scores.ravel()[self._cells]

    def _places(self, held: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._cells[held]

    def __repr__(self) -> str:
        return f"Tour({self.n_nodes}, directed={self.directed})"
