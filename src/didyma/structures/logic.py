"""Constraints on variables that are true or false: all of them bound how many literals are true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError


@dataclass(frozen=True)
class Cardinality:
    """From ``low`` to ``high`` of the variables are true; ``~i`` is the negation of variable i.

    >>> import didyma
    >>> from didyma.structures import Composition
    >>> two = Composition(3, logic=[Cardinality((0, 1, 2), 2, 2)])
    >>> didyma.local_sparsemap([3.0, 2.0, 0.0], two).marginals.round(2)
    array([1., 1., 0.])
    """

    variables: tuple[int, ...]
    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(int(v) for v in self.variables))
        if not self.variables or len(set(self.indices)) < len(self.variables):
            raise DataError(
                f"expected at least one variable and none twice, found {self.variables}",
                field="logic",
            )
        if self.low > min(self.high, len(self.variables)) or self.high < 0:
            raise DataError(
                f"{self.low} to {self.high} of {len(self.variables)} variables cannot be true",
                field="logic",
            )

    @property
    def indices(self) -> list[int]:
        """The variables without their negations."""
        return [~v if v < 0 else v for v in self.variables]

    @property
    def negated(self) -> NDArray[np.bool_]:
        """Which of the variables are negated."""
        return np.array(self.variables) < 0

    def holds(self, states: NDArray[Any]) -> Any:
        """Whether states (…, n_variables) obey the constraint."""
        count = ((states[..., self.indices] == 1) != self.negated).sum(axis=-1)
        return (self.low <= count) & (count <= self.high)


def ExactlyOne(variables: Iterable[int]) -> Cardinality:
    """One of the variables is true, and no other (XOR).

    >>> ExactlyOne([0, 1])
    Cardinality(variables=(0, 1), low=1, high=1)
    """
    return Cardinality(tuple(variables), 1, 1)


def AtMostOne(variables: Iterable[int]) -> Cardinality:
    """No two of the variables are true.

    >>> AtMostOne([0, 1])
    Cardinality(variables=(0, 1), low=0, high=1)
    """
    return Cardinality(tuple(variables), 0, 1)


def AtLeastOne(variables: Iterable[int]) -> Cardinality:
    """Some variable is true (OR).

    >>> AtLeastOne([0, 1])
    Cardinality(variables=(0, 1), low=1, high=2)
    """
    variables = tuple(variables)
    return Cardinality(variables, 1, len(variables))


def AtMost(k: int, variables: Iterable[int]) -> Cardinality:
    """No more than k of the variables are true (a budget).

    >>> AtMost(2, [0, 1, 2])
    Cardinality(variables=(0, 1, 2), low=0, high=2)
    """
    return Cardinality(tuple(variables), 0, k)


def Implies(a: int, b: int) -> Cardinality:
    """If variable a is true, so is b.

    >>> Implies(0, 1)
    Cardinality(variables=(-1, 1), low=1, high=2)
    """
    return AtLeastOne((~a, b))


def XorOut(out: int, variables: Iterable[int]) -> list[Cardinality]:
    """At most one of the variables is true, and ``out`` says whether one is.

    >>> XorOut(2, [0, 1])
    [Cardinality(variables=(-3, 0, 1), low=1, high=1)]
    """
    return [ExactlyOne((~out, *variables))]


def OrOut(out: int, variables: Iterable[int]) -> list[Cardinality]:
    """``out`` says whether any of the variables is true.

    >>> for rule in OrOut(2, [0, 1]):
    ...     print(rule)
    Cardinality(variables=(-1, 2), low=1, high=2)
    Cardinality(variables=(-2, 2), low=1, high=2)
    Cardinality(variables=(-3, 0, 1), low=1, high=3)
    """
    variables = tuple(variables)
    return [*(Implies(v, out) for v in variables), AtLeastOne((~out, *variables))]


def AndOut(out: int, variables: Iterable[int]) -> list[Cardinality]:
    """``out`` says whether all of the variables are true.

    >>> for rule in AndOut(2, [0, 1]):
    ...     print(rule)
    Cardinality(variables=(0, -3), low=1, high=2)
    Cardinality(variables=(1, -3), low=1, high=2)
    Cardinality(variables=(2, -1, -2), low=1, high=3)
    """
    return OrOut(~out, [~v for v in variables])


def check_logic(logic: Iterable[Any], n_variables: int) -> tuple[Cardinality, ...]:
    """All constraints one by one, of variables that there are."""
    flat: list[Any] = []
    for one in logic:
        flat += [one] if isinstance(one, Cardinality) else one
    for one in flat:
        if not isinstance(one, Cardinality):
            raise DataError(
                f"expected constraints such as ExactlyOne, found {one!r}", field="logic"
            )
        if max(one.indices) >= n_variables:
            raise DataError(f"expected variables below {n_variables}, found {one}", field="logic")
    return tuple(flat)


def check_edges(edges: Iterable[tuple[int, int]], n_variables: int) -> tuple[tuple[int, int], ...]:
    """Pairs of different variables that there are."""
    pairs = tuple((int(i), int(j)) for i, j in edges)
    for e, (i, j) in enumerate(pairs):
        if not (0 <= i < n_variables and 0 <= j < n_variables) or i == j:
            raise DataError(
                f"expected two different variables from 0 to {n_variables - 1}, found ({i}, {j}) "
                f"at index {e}",
                field="edges",
            )
    return pairs


def acyclic(n_variables: int, scopes: Iterable[Sequence[int]]) -> bool:
    """Whether no two of the factors over these variables are joined in two ways."""
    root = list(range(n_variables))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for scope in scopes:
        roots = {find(v) for v in scope}
        if len(roots) < len(scope):
            return False
        for v in roots:
            root[v] = min(roots)
    return True
