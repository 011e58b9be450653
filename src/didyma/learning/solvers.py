"""The solvers of convex problems by name."""

from __future__ import annotations

from typing import Any

from didyma.errors import check_choice
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import NSlack, OneSlack, ProximalBundle

SOLVERS = {"bcfw": BCFW, "one-slack": OneSlack, "n-slack": NSlack, "bundle": ProximalBundle}


def make_solver(name: str, tol: float, max_iter: int, random_state: int) -> Any:
    """The solver of that name; for "bcfw" ``max_iter`` limits its passes.

    >>> make_solver("one-slack", 0.01, 50, 0)
    OneSlack(tol=0.01, max_iter=50)
    """
    check_choice(name, SOLVERS, "solver")
    if name == "bcfw":
        return BCFW(tol=tol, max_passes=max_iter, random_state=random_state)
    return SOLVERS[name](tol=tol, max_iter=max_iter)
