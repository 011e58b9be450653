"""Property checks for structures of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.polytope.sparsemap import SolverOptions, solve
from didyma.structure import Structure, require_structure
from didyma.structures.layout import Floats, Layout
from didyma.structures.oracles import best_outputs, total

LISTED = 12  # outputs of an instance that are asked for by `k_best`
STEP = 1e-5  # of differences
ROUNDING = 1e-9


def check_structure(
    structure: Structure,
    draw: Callable[[np.random.Generator], Any],
    *,
    outputs: Callable[..., Iterable[Any]] | None = None,
    n_draws: int = 8,
    tol: float = 1e-9,
    random_state: int = 0,
) -> None:
    """Test that a structure keeps what solvers rely on; an `AssertionError` names what it breaks.

    On small instances that are drawn, and on their batch: part indices are valid, and the same at
    every call; no output that is known scores higher than the argmax (all are known where they are
    listed, else those that the structure has named before, for any scores); the k best are sorted
    and different, the first of them the argmax; SparseMAP's point is an average of outputs that no
    known output improves by more than the gap it reports; its derivative is that of differences; a
    batch has the answers of its instances.

    >>> import didyma
    >>> class Pairs(didyma.Structure):
    ...     "Two options."
    ...     def argmax(self, scores):
    ...         return np.argsort(-scores)[:2]
    >>> check_structure(Pairs(), lambda rng: rng.standard_normal(5))
    >>> class Wrong(Pairs):
    ...     "The two worst ones."
    ...     def argmax(self, scores):
    ...         return np.argsort(scores)[:2]
    >>> check_structure(Wrong(), lambda rng: rng.standard_normal(5))
    Traceback (most recent call last):
    AssertionError: draw 1: argmax scores -1.969, an output named before 0.039: parts [1, 4]

    Args:
        structure: the structure.
        draw: ``draw(rng)`` returns the scores of one small instance, all of one shape, or a pair of
            scores and a dictionary of additional scores and data.
        outputs: ``outputs(scores, **additional)`` lists all outputs of an instance, in the form
            that `Structure.encode` takes.
        n_draws: number of instances.
        tol: duality gap of SparseMAP.
        random_state: seed of the draws.
    """
    require_structure(structure)
    rng = np.random.default_rng(random_state)
    instances = [_Instance.drawn(structure, draw(rng)) for _ in range(n_draws)]
    if not instances:
        raise DataError("expected a number from 1 up, found 0", field="n_draws")
    seen: dict[Any, _Outputs] = {}
    for number, instance in enumerate(instances):
        # What one instance names another of the same data has too.
        key = instance.layout.shape, instance.layout.sizes.tobytes()
        listed = seen.setdefault(key, _Outputs(structure))
        if outputs is not None:
            listed.add(*instance.encoded(outputs(instance.scores, **instance.additional)))
        law = _Laws(f"draw {number}", instance, listed, tol)
        law.argmax()
        law.k_best()
        law.sparsemap()
        law.differences(rng)
    _batch_is_its_instances(structure, instances)


def _hold(law: Any, broken: str) -> None:
    if not law:
        raise AssertionError(broken)


@dataclass(frozen=True)
class _Instance:
    structure: Structure
    scores: NDArray[Any]
    additional: Mapping[str, Any]
    layout: Layout

    @classmethod
    def drawn(cls, structure: Structure, drawn: Any) -> _Instance:
        scores, additional = drawn if isinstance(drawn, tuple) else (drawn, {})
        scores = np.asarray(scores, np.float64)
        if scores.ndim != structure.ndim:
            raise DataError(
                f"expected scores of one instance, with {structure.ndim} axes, found shape "
                f"{scores.shape}",
                field="draw",
            )
        return cls(structure, scores, additional, structure.lay_out(scores, **additional))

    def encoded(self, outputs: Iterable[Any]) -> tuple[Any, Any]:
        rows = [self.structure.encode(np.asarray(one), self.layout) for one in outputs]
        return np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows])

    def best(self, scores: Floats | None = None) -> tuple[Any, Any]:
        layout = self.layout if scores is None else replace(self.layout, scores=scores)
        parts, extra_parts, possible = best_outputs(self.structure.oracle(layout), layout)
        _hold(possible[0], "argmax finds no output")
        return parts, extra_parts

    def total(self, parts: Any, extra_parts: Any, scores: Floats | None = None) -> Floats:
        flat = self.layout.scores if scores is None else scores
        rows = len(parts)
        extra = np.broadcast_to(self.layout.extra, (rows, self.layout.extra.shape[1]))
        scored = total(np.broadcast_to(flat, (rows, flat.shape[1])), np.asarray(parts, np.int32))
        return scored + total(extra, np.asarray(extra_parts, np.int32))


class _Outputs:
    """Outputs that are known: rows of parts and of additional parts."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.rows: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def add(self, parts: Any, extra_parts: Any) -> None:
        for row, extra in zip(parts, extra_parts):
            self.rows.setdefault(tuple(sorted(row[row >= 0].tolist())), (row, extra))

    @property
    def parts(self) -> tuple[Any, Any]:
        return tuple(np.array(column) for column in zip(*self.rows.values()))  # type: ignore[return-value]


@dataclass(frozen=True)
class _Laws:
    name: str
    instance: _Instance
    outputs: _Outputs
    tol: float

    def argmax(self, scores: Floats | None = None) -> None:
        """Nothing that is known scores higher."""
        best = self.instance.best(scores)
        again = self.instance.best(scores)
        same = all(np.array_equal(a, b) for a, b in zip(best, again))
        _hold(same, f"{self.name}: argmax answers otherwise when it is asked again")
        self.outputs.add(*best)
        parts, extra_parts = self.outputs.parts
        (score,) = self.instance.total(*best, scores)
        others = self.instance.total(parts, extra_parts, scores)
        higher = int(np.argmax(others))
        row = parts[higher]
        _hold(
            others[higher] <= score + ROUNDING * (1.0 + abs(score)),
            f"{self.name}: argmax scores {score:.3f}, an output named before "
            f"{others[higher]:.3f}: parts {row[row >= 0].tolist()}",
        )

    def k_best(self) -> None:
        """Sorted, different, and the best ones."""
        one = self.instance
        try:
            parts, totals = one.structure._k_best(one.layout, LISTED)
        except NotImplementedError:
            return
        listed = totals[0] > -np.inf
        parts, totals = parts[0][listed], totals[0][listed]
        _hold((np.diff(totals) <= ROUNDING).all(), f"{self.name}: k best are not sorted: {totals}")
        names = {tuple(sorted(row[row >= 0].tolist())) for row in parts}
        _hold(len(names) == len(parts), f"{self.name}: two of the k best are the same")
        others = -np.sort(-one.total(*self.outputs.parts))[: len(totals)]
        _hold(
            len(totals) == LISTED or len(totals) >= len(others),
            f"{self.name}: {len(totals)} k best of at least {len(self.outputs.rows)} outputs",
        )
        _hold(
            (others <= totals[: len(others)] + ROUNDING * (1.0 + np.abs(others))).all(),
            f"{self.name}: the k best score {totals}, outputs that are known {others}",
        )

    def sparsemap(self) -> None:
        """An average of outputs that nothing improves by more than the gap."""
        one = self.instance
        solution = solve(one.layout, one.structure, SolverOptions(tol=self.tol, n_jobs=1))
        u = solution.flat_marginals
        _hold(np.isfinite(u).all(), f"{self.name}: marginals are not finite")
        _hold(((u >= -ROUNDING) & (u <= 1.0 + ROUNDING)).all(), f"{self.name}: marginals beyond 1")
        _hold(
            solution.gap[0]
            <= self.tol * (1.0 + np.abs(one.layout.scores[np.isfinite(one.layout.scores)]).sum()),
            f"{self.name}: the gap is {solution.gap[0]:.1e}",
        )
        moved = one.layout.scores - u
        self.argmax(moved)
        at_support = one.total(solution.parts, solution.extra_parts, moved) @ solution.weights
        best = one.total(*self.outputs.parts, moved).max()
        _hold(
            best - at_support <= solution.gap[0] + 1e-8,
            f"{self.name}: an output improves SparseMAP by {best - at_support:.1e}, the gap is "
            f"{solution.gap[0]:.1e}",
        )

    def differences(self, rng: np.random.Generator) -> None:
        """The derivative, where no output is about to enter or leave."""
        one = self.instance
        scores = one.layout.scores
        options = SolverOptions(tol=self.tol, n_jobs=1, face=True)
        solution = solve(one.layout, one.structure, options)
        if solution.weights.min() < 1e-3:
            return
        direction = np.where(np.isfinite(scores), rng.standard_normal(scores.shape), 0.0)
        ahead, behind = (
            solve(replace(one.layout, scores=scores + step * direction), one.structure, options)
            for step in (STEP, -STEP)
        )
        if not len(ahead.weights) == len(behind.weights) == len(solution.weights):
            return
        slope = (ahead.flat_marginals - behind.flat_marginals) / (2 * STEP)
        moved, _ = solution.apply_jacobian(direction, np.zeros((1, one.layout.extra.shape[1])))
        worst = float(np.abs(moved - slope).max(initial=0.0))
        _hold(worst <= 1e-5, f"{self.name}: the derivative is {worst:.1e} off differences")


def _batch_is_its_instances(structure: Structure, instances: list[_Instance]) -> None:
    """A batch is laid out and answered as its instances are."""
    first = instances[0]
    same = [
        one
        for one in instances
        if one.scores.shape == first.scores.shape
        and one.additional.keys() == first.additional.keys()
    ]
    together: dict[str, Any] = {
        name: [one.additional[name] for one in same]
        if name in structure.data
        else np.stack([np.asarray(one.additional[name]) for one in same])
        for name in first.additional
    }
    layout = structure.lay_out(np.stack([one.scores for one in same]), **together)
    parts, extra_parts, _ = best_outputs(structure.oracle(layout), layout)
    marginals = solve(layout, structure, SolverOptions(n_jobs=1)).flat_marginals
    for b, one in enumerate(same):
        for mine, alone in zip((parts[b], extra_parts[b]), one.best()):
            _hold(np.array_equal(mine, alone[0]), f"draw {b}: another argmax in a batch")
        alone = solve(one.layout, structure, SolverOptions(n_jobs=1)).flat_marginals[0]
        _hold(np.allclose(marginals[b], alone, atol=1e-12), f"draw {b}: other marginals in a batch")
