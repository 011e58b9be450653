"""CFunction: a structure of one's own, whose argmax is compiled."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.structure import Structure
from didyma.structures.batches import impossible
from didyma.structures.layout import Layout
from didyma.structures.oracles import best_outputs


class CFunction(Structure):
    """A structure whose argmax is a C function, named by its address.

        int64_t argmax(const double *scores, const double *additional, const int64_t *shape,
                       int64_t *parts);

    ``scores`` are those of one instance, row after row, and ``shape`` says how many along each of
    the ``ndim`` axes; ``additional`` are the additional scores, in the order in which `additional`
    declares them. The function writes the indices of the best output's parts, which count as those
    of `didyma.Structure.argmax` do, in any order; there is room for one for each score. It returns
    their number, or −1 if every output scores −∞. Several threads call it at once.

    A subclass has the address: of a function of a library that ctypes or cffi loads, or of one that
    a compiler such as Numba makes (``numba.cfunc``). As a `functools.cached_property` it is looked
    up again by copies in other processes.

    >>> import ctypes
    >>> numbers, integers = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int64)
    >>> @ctypes.CFUNCTYPE(ctypes.c_int64, numbers, numbers, integers, integers)
    ... def best(scores, additional, shape, parts):  # in the place of one that is compiled
    ...     parts[0] = max(range(shape[0]), key=lambda i: scores[i])
    ...     return 1
    >>> class OneOf(CFunction):
    ...     "One option."
    ...     address = ctypes.cast(best, ctypes.c_void_p).value
    >>> OneOf().argmax([0.2, 0.9, 0.1])
    array([1])
    """

    @property
    @abstractmethod
    def address(self) -> int:
        """Where the function stands in this process."""

    def argmax(self, scores: Any, **additional: Any) -> NDArray[np.int64]:
        """Indices of the parts of the best output."""
        layout = self.lay_out(scores, **additional)
        parts, extra_parts, possible = best_outputs(self.oracle(layout), layout)
        if not possible[0]:
            raise impossible(0)
        chosen = [parts[0][parts[0] >= 0], extra_parts[0][extra_parts[0] >= 0] + parts.shape[1]]
        return np.concatenate(chosen).astype(np.int64)

    def oracle(self, layout: Layout) -> Any:
        """The function as solvers ask for it."""
        return core.CFunction(type(self).__name__, self.address)
