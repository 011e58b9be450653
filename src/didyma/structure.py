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
from didyma.structures.prediction import Prediction


class Structure(Prediction, ABC):
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
        """Indices of the parts of the best output of one instance.

        They count through the flattened scores, and on through the additional scores in the order
        in which `additional` declares them. Only parts of ``scores`` are penalised by SparseMAP.
        What ``data`` names is given by name too. None says that every output has a part of score
        −∞, where ``reads_infinity`` promises so.
        """

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Names and shapes of the additional scores that go with scores of this shape.

        One more axis in front makes them one array per instance of a batch.
        """
        return {}

    data: ClassVar[tuple[str, ...]] = ()
    """Names of what else an instance has: a graph, capacities, a mask, lengths.

    Each is given by keyword, a sequence with one for each instance of a batch (of one instance the
    thing itself), and reaches `argmax` under its name. What all instances share is better an
    attribute of the structure.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __getstate__(self) -> dict[str, Any]:
        """The state without cached properties, such as kernels, which copies compute again."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }


def require_structure(structure: Any) -> None:
    """Refuse what is not a structure, such as its class."""
    if isinstance(structure, Structure):
        return
    description = repr(structure)
    if isinstance(structure, type) and issubclass(structure, Structure):
        description = f"the class {structure.__name__}: make one, as in {structure.__name__}(...)"
    raise DataError(f"expected a didyma.Structure, found {description}", field="structure")
