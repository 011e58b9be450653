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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structures.batches import impossible, indicators, lay_out, pack
from didyma.structures.layout import Floats, Layout
from didyma.structures.oracles import best_outputs, python_argmax, total
from didyma.structures.partition import k_best_outputs
from didyma.values import aligned


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

    # What can be asked of every structure, of one instance or of a batch.

    def predict(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: Any
    ) -> NDArray[Any]:
        """Each instance's best output, in the form that the structure has for people.

        That is a boolean array in the shape of the scores, unless its class says otherwise.
        """
        layout = self.lay_out(scores, lengths, **additional)
        outputs = self.decode(self.best(layout), layout)
        return outputs if np.ndim(scores) > self.ndim else outputs[0]

    def k_best(
        self, scores: ArrayLike, k: int, lengths: ArrayLike | None = None, **additional: Any
    ) -> tuple[NDArray[Any], Floats]:
        """The k best outputs (B, k, ...) and their scores (B, k), best first.

        Where fewer outputs are possible the rest is padding, with score −∞. Which of equally good
        ones come first is not said.

        Of a structure that has nothing but an argmax, the set of outputs is split at the best one,
        again and again: each further output costs about as many calls as it has parts. `argmax`
        must be exact for all finite scores, also for large ones of either sign, which force parts
        in or out; and no two outputs may have the same parts of ``scores``.
        """
        check_count(k, 1, "k")
        layout = self.lay_out(scores, lengths, **additional)
        parts, totals = self._k_best(layout, k)
        for b in np.flatnonzero(totals[:, 0] == -np.inf):
            raise impossible(int(b))
        outputs = self._decode_all(parts, layout)
        return (outputs, totals) if np.ndim(scores) > self.ndim else (outputs[0], totals[0])

    def sample(
        self,
        scores: ArrayLike,
        n: int,
        random_state: int,
        lengths: ArrayLike | None = None,
        **additional: Any,
    ) -> NDArray[Any]:
        """Outputs (B, n, ...): each the best one after Gumbel noise was added to every score.

        That is perturb-and-MAP (Papandreou and Yuille 2011). It draws from p(output) ∝ exp(score)
        where an output has one part; elsewhere from a distribution that is close to it. Structures
        whose sums are tractable draw from p itself.
        """
        check_count(n)
        layout = self.lay_out(scores, lengths, **additional)
        batch, d = layout.scores.shape
        noise = np.empty((batch, n, d))
        for b in range(batch):
            noise[b] = np.random.default_rng((random_state, b)).gumbel(size=(n, d))
        drawn = layout.select(np.repeat(np.arange(batch), n))
        drawn.scores = aligned(drawn.scores + noise.reshape(batch * n, d))
        parts = self.best(drawn)
        outputs = self._decode_all(parts.reshape(batch, n, layout.n_parts), layout)
        return outputs if np.ndim(scores) > self.ndim else outputs[0]

    # What solvers use beside it. The structures of `didyma.structures` have their own.

    aligned: ClassVar[bool] = False
    """Whether two outputs that share a part have it in the same place of ``parts``."""

    reads_infinity: ClassVar[bool] = False
    """Whether the argmax understands that a part of score −∞ is forbidden."""

    concurrent: ClassVar[bool] = False
    """Whether threads may call `argmax` at once, which pays if its solver releases the GIL.

    Layers and losses then share out the instances of a batch, on ``n_jobs`` threads.
    """

    closed_form: ClassVar[Any] = None
    """Kernels of SparseMAP and its derivative that need no argmax (see `Choice`), or None."""

    def lay_out(self, scores: Any, lengths: Any = None, **additional: Any) -> Layout:
        """Check a batch of scores, (B, ...) or one instance, and lay it out flat."""
        return lay_out(self, scores, lengths, additional)

    def oracle(self, layout: Layout) -> Any:
        """The argmax as solvers call it, a `didyma._core.structures.Argmax`."""
        return python_argmax(self, layout)

    def first_guess(self, layout: Layout, options: Any) -> Any:
        """Where SparseMAP begins if no ``warm_start`` is given; None is at the argmax."""
        return None

    def encode(
        self, outputs: ArrayLike, layout: Layout
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Part indices (B, n_parts) and additional ones (B, n_extra) of one output per instance.

        Here of 0/1 arrays. Which additional parts go with them, a structure that has any must say.
        """
        if layout.additional:
            raise DataError(
                f"{type(self).__name__} has additional scores and needs a method encode",
                field="outputs",
            )
        values = np.asarray(outputs)
        shape = (len(layout), *layout.shape)
        if values.shape not in (shape, shape[1:]) or not np.isin(values, (0, 1)).all():
            raise DataError(
                f"expected zeros and ones of shape {shape}, found shape {values.shape}",
                field="outputs",
            )
        flags = values.reshape(shape).astype(bool)
        return pack(flags, layout), np.zeros((len(layout), 0), np.int32)

    def decode(self, parts: Any, layout: Layout) -> Any:
        """Outputs in the form that people know, here 0/1 arrays, from rows of part indices."""
        return indicators(parts, layout)

    def best(self, layout: Layout) -> NDArray[np.int32]:
        """Parts (B, n_parts) of each instance's best output, padded with −1."""
        parts, _, possible = best_outputs(self.oracle(layout), layout)
        if not self.reads_infinity:
            possible = possible & (total(layout.scores, parts) > -np.inf)
        if not possible.all():
            raise impossible(int(np.argmin(possible)))
        return parts

    def _k_best(self, layout: Layout, k: int) -> tuple[NDArray[np.int32], Floats]:
        """Parts (B, k, n_parts) and scores (B, k), with nothing but the argmax."""
        return k_best_outputs(self.oracle(layout), layout, k, self.reads_infinity)

    def _decode_all(self, parts: NDArray[np.int32], layout: Layout) -> NDArray[Any]:
        """Outputs (B, k, ...) of parts (B, k, n_parts)."""
        batch, k, n_parts = parts.shape
        outputs = self.decode(parts.reshape(batch * k, n_parts), layout)
        return outputs.reshape(batch, k, *outputs.shape[1:])

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


def check_count(count: int, least: int = 0, field: str = "n") -> None:
    """Refuse a number of outputs below the least."""
    if count < least:
        raise DataError(f"expected a number from {least} up, found {count}", field=field)
