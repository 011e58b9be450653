"""Structure: a finite set of outputs, known only by an argmax.

An output is a set of *parts*, and a part is the index of its score. A structure of your own is one
method, which returns the parts of the best output:

>>> import didyma, numpy as np
>>> class Contiguous(didyma.Structure):
...     "A run of three neighbours."
...     def argmax(self, scores):
...         start = np.argmax(np.convolve(scores, np.ones(3), mode="valid"))
...         return np.arange(start, start + 3)
>>> didyma.sparsemap(np.array([1.0, 0.5, 1.0, 0.8, 0.0]), Contiguous()).round(2)
array([0.6 , 0.75, 1.  , 0.4 , 0.25])

Everything else follows: posteriors, gradients and losses see nothing but indices, since an inner
product of two outputs is the number of parts they share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from didyma.errors import DataError
from didyma.structures.batches import indicators, lay_out
from didyma.structures.layout import Layout
from didyma.structures.oracles import python_argmax

__all__ = ["Structure", "check_structure"]


class Structure(ABC):
    """A finite set of outputs; `argmax` is all that a solver asks of it.

    ``ndim`` is the number of axes of one instance's scores; arrays with one more axis are batches.

    >>> import numpy as np
    >>> class Contiguous(Structure):
    ...     "A run of three neighbours."
    ...     def argmax(self, scores):
    ...         start = np.argmax(np.convolve(scores, np.ones(3), mode="valid"))
    ...         return np.arange(start, start + 3)
    >>> Contiguous().argmax(np.array([1.0, 0.5, 1.0, 0.8, 0.0]))
    array([0, 1, 2])
    """

    ndim: ClassVar[int] = 1

    @abstractmethod
    def argmax(self, scores: Any, **additional: Any) -> Any:
        """Indices of the parts of the best output.

        They count through the flattened scores, and on through the additional scores in the order
        in which `additional` declares them. Only parts of ``scores`` are penalised by SparseMAP.
        """

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Names and shapes of the additional scores that go with scores of this shape.

        One more axis in front makes them one array per instance of a batch.
        """
        return {}

    # What solvers use beside it. The structures of `didyma.structures` have their own.

    aligned: ClassVar[bool] = False
    """Whether two outputs that share a part have it in the same place of ``parts``."""

    closed_form: ClassVar[Any] = None
    """Kernels of SparseMAP and its derivative that need no argmax (see `Choice`), or None."""

    def lay_out(self, scores: Any, lengths: Any = None, **additional: Any) -> Layout:
        """Check a batch of scores, (B, ...) or one instance, and lay it out flat."""
        return lay_out(self, scores, lengths, additional)

    def oracle(self, layout: Layout) -> Any:
        """The argmax as solvers call it, a `didyma._core.structures.Argmax`."""
        return python_argmax(self, layout)

    def decode(self, parts: Any, layout: Layout) -> Any:
        """Outputs in the form that people know, here 0/1 arrays, from rows of part indices."""
        return indicators(parts, layout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __getstate__(self) -> dict[str, Any]:
        """The state without cached properties, such as kernels, which copies compute again."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }


def check_structure(structure: Any) -> None:
    """Refuse what is not a structure, such as its class."""
    if isinstance(structure, Structure):
        return
    description = repr(structure)
    if isinstance(structure, type) and issubclass(structure, Structure):
        description = f"the class {structure.__name__}: make one, as in {structure.__name__}(...)"
    raise DataError(f"expected a didyma.Structure, found {description}", field="structure")
