"""SparseMAP for JAX (extra ``jax``): `jax.grad`, `jit` and `vmap` work through it.

    import didyma.jax
    from didyma.structures import Choice

    didyma.jax.sparsemap(jax.numpy.array([1.0, 0.8, 0.0]), Choice())  # [0.6, 0.4, 0.]

The solver runs on the host, in float64, whatever the scores are. A callback must not keep anything
between calls, so a backward pass solves again: it costs what a forward pass does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from didyma.errors import MissingExtraError
from didyma.polytope.distributions import Distributions
from didyma.polytope.sparsemap import SolverOptions, solve
from didyma.structure import Structure, require_structure

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as error:
    raise MissingExtraError("didyma.jax", "jax") from error

__all__ = ["sparsemap"]


def sparsemap(
    scores: Any,
    structure: Structure,
    *,
    lengths: Any = None,
    temperature: float = 1.0,
    tol: float = 1e-9,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    **additional: Any,
) -> Any:
    """Marginals of the sparse posterior over structures: `didyma.sparsemap` for JAX arrays.

    Derivatives of all orders reach the scores and every array of additional scores, in reverse
    mode. Marginals are piecewise affine, so second derivatives are zero away from kinks.
    """
    require_structure(structure)
    data = {name: additional.pop(name) for name in structure.data if name in additional}
    arrays = {name: jnp.asarray(array) for name, array in additional.items() if array is not None}
    options = SolverOptions(temperature, tol, max_iter, n_jobs, face=True)
    solver = _Solver(structure, options, data)
    return _marginals(solver, lengths, (jnp.asarray(scores), arrays))


@dataclass(frozen=True, eq=False)
class _Solver:
    """What is not an array."""

    structure: Structure
    options: SolverOptions
    data: dict[str, Any]

    def solve(self, lengths: Any, inputs: Any) -> Distributions:
        scores, additional = jax.tree.map(_double, inputs)
        lengths = None if lengths is None else np.asarray(lengths)
        layout = self.structure.lay_out(scores, lengths, **additional, **self.data)
        return solve(layout, self.structure, self.options)

    def marginals(self, lengths: Any, inputs: Any) -> Any:
        marginals = self.solve(lengths, inputs).marginals
        return marginals.reshape(inputs[0].shape).astype(inputs[0].dtype)

    def pull(self, lengths: Any, inputs: Any, weights: Any) -> Any:
        """Gradients for scores and additional scores."""
        solution = self.solve(lengths, inputs)
        d_scores, named = solution.vjp(_double(weights).reshape(solution.marginals.shape))
        gradients = (d_scores, {name: named[name] for name in inputs[1]})
        return jax.tree.map(lambda g, x: g.reshape(x.shape).astype(x.dtype), gradients, inputs)

    def push(self, lengths: Any, inputs: Any, directions: Any) -> Any:
        """How marginals move along directions of scores and additional scores."""
        solution = self.solve(lengths, inputs)
        d_scores, named = jax.tree.map(_double, directions)
        moved = solution.jvp(d_scores.reshape(solution.marginals.shape), **named)
        return moved.reshape(inputs[0].shape).astype(inputs[0].dtype)


def _double(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def _on_host(function: Any, like: Any, *arguments: Any) -> Any:
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), like)
    return jax.pure_callback(function, shapes, *arguments, vmap_method="sequential")


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _marginals(solver: _Solver, lengths: Any, inputs: Any) -> Any:
    return _on_host(solver.marginals, inputs[0], lengths, inputs)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _pull(solver: _Solver, lengths: Any, inputs: Any, weights: Any) -> Any:
    return _on_host(solver.pull, inputs, lengths, inputs, weights)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _push(solver: _Solver, lengths: Any, inputs: Any, directions: Any) -> Any:
    return _on_host(solver.push, inputs[0], lengths, inputs, directions)


def _zeros(inputs: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, inputs)


def _define(product: Any, derivative: Any) -> None:
    """The derivative of a product with the Jacobian, which is constant between kinks."""
    product.defvjp(
        lambda solver, lengths, inputs, along: (
            product(solver, lengths, inputs, along),
            (lengths, inputs),
        ),
        lambda solver, residuals, along: (
            None,
            _zeros(residuals[1]),
            derivative(solver, *residuals, along),
        ),
    )


_marginals.defvjp(
    lambda solver, lengths, inputs: (_marginals(solver, lengths, inputs), (lengths, inputs)),
    lambda solver, residuals, weights: (None, _pull(solver, *residuals, weights)),
)
_define(_pull, _push)  # the Jacobian is symmetric: each product is the other's derivative
_define(_push, _pull)
