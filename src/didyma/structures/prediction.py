"""Prediction: what can be asked of every structure, answered by its argmax alone.

Structures with a kernel or sums of their own answer some of it faster, or exactly
(`didyma.structures.compiled`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structures.batches import check_whole, impossible, indicators, lay_out, pack
from didyma.structures.layout import Floats, Layout, Lengths, Parts
from didyma.structures.oracles import best_outputs, python_argmax, total
from didyma.structures.partition import k_best_outputs
from didyma.values import aligned


class Prediction:
    """Best outputs, k best ones and samples, of one instance or of a batch; what solvers ask."""

    ndim: ClassVar[int]
    data: ClassVar[tuple[str, ...]]

    def predict(
        self, scores: ArrayLike, lengths: Lengths = None, **additional: Any
    ) -> NDArray[Any]:
        """Each instance's best output, in the form that the structure has for people.

        That is a boolean array in the shape of the scores, unless its class says otherwise.
        """
        layout = self.lay_out(scores, lengths, **additional)
        return self._as_given(self.decode(self.best(layout), layout), scores)

    def k_best(
        self, scores: ArrayLike, k: int, lengths: Lengths = None, **additional: Any
    ) -> tuple[NDArray[Any], Floats]:
        """The k best outputs (B, k, ...) and their scores (B, k), best first.

        Where fewer outputs are possible the rest is padding, with score −∞. Which of equally good
        ones come first is not said.

        Of a structure that has nothing but an argmax, the set of outputs is split at the best one,
        again and again: each further output costs about as many calls as it has parts. `argmax`
        must be exact for all finite scores, also for large ones of either sign, which force parts
        in or out; and no two outputs may have the same parts of ``scores``.
        """
        check_whole(k, 1, "k")
        layout = self.lay_out(scores, lengths, **additional)
        parts, totals = self._k_best(layout, k)
        for b in np.flatnonzero(totals[:, 0] == -np.inf):
            raise impossible(int(b))
        outputs = self._decode_all(parts, layout)
        return self._as_given(outputs, scores), self._as_given(totals, scores)

    def sample(
        self,
        scores: ArrayLike,
        n: int,
        random_state: int,
        lengths: Lengths = None,
        **additional: Any,
    ) -> NDArray[Any]:
        """Outputs (B, n, ...): each the best one after Gumbel noise was added to every score.

        That is perturb-and-MAP (Papandreou and Yuille 2011). It draws from p(output) ∝ exp(score)
        where an output has one part; elsewhere from a distribution that is close to it. Structures
        whose sums are tractable draw from p itself.
        """
        check_whole(n, 0, "n")
        layout = self.relevant(self.lay_out(scores, lengths, **additional))
        return self._as_given(
            self._decode_all(self._sample(layout, n, random_state), layout), scores
        )

    # What solvers ask. The structures of `didyma.structures` have their own.

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

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
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
        return pack(values.reshape(shape).astype(bool), layout), layout.no_extra_parts

    def decode(self, parts: Any, layout: Layout) -> Any:
        """Outputs in the form that people know, here 0/1 arrays, from rows of part indices."""
        return indicators(parts, layout)

    def best(self, layout: Layout) -> Parts:
        """Parts (B, n_parts) of each instance's best output, padded with −1."""
        parts, _, possible = best_outputs(self.oracle(layout), layout)
        if not self.reads_infinity:
            possible = possible & (total(layout.scores, parts) > -np.inf)
        if not possible.all():
            raise impossible(int(np.argmin(possible)))
        return parts

    def _k_best(self, layout: Layout, k: int) -> tuple[Parts, Floats]:
        """Parts (B, k, n_parts) and scores (B, k), with nothing but the argmax."""
        return k_best_outputs(self.oracle(layout), layout, k, self.reads_infinity)

    def relevant(self, layout: Layout) -> Layout:
        """The batch without the parts of outputs that are never drawn, where these are known."""
        return layout

    def _sample(self, layout: Layout, n: int, random_state: int) -> Parts:
        """Parts (B, n, n_parts) of the best outputs after Gumbel noise."""
        batch, d = layout.scores.shape
        seeds = [(random_state, b) for b in range(batch)]
        noise = [np.random.default_rng(seed).gumbel(size=(n, d)) for seed in seeds]
        repeated = layout.select(np.repeat(np.arange(batch), n))
        repeated.scores = aligned(repeated.scores + np.reshape(noise, (batch * n, d)))
        return self.best(repeated).reshape(batch, n, layout.n_parts)

    def _as_given(self, values: NDArray[Any], scores: ArrayLike) -> Any:
        """Values of all instances, or the only one of scores without a batch axis."""
        return values if np.ndim(scores) > self.ndim else values[0]

    def _decode_all(self, parts: Parts, layout: Layout) -> NDArray[Any]:
        """Outputs (B, k, ...) of parts (B, k, n_parts)."""
        batch, k, n_parts = parts.shape
        outputs = self.decode(parts.reshape(batch * k, n_parts), layout)
        return outputs.reshape(batch, k, *outputs.shape[1:])
