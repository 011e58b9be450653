"""Structure: a finite set of outputs, known only by an argmax.

An output is a set of *parts*, and a part is the index of its score. A structure of your own is one
method, which names the parts of the best output:

>>> class Contiguous(Structure):
...     "A run of three neighbours."
...     def argmax(self, scores):
...         start = np.argmax(np.convolve(scores, np.ones(3), mode="valid"))
...         return np.arange(start, start + 3)
>>> import didyma
>>> didyma.sparsemap(np.array([1.0, 0.5, 1.0, 0.8, 0.0]), Contiguous()).round(2)
array([0.6 , 0.75, 1.  , 0.4 , 0.25])

Everything else follows: posteriors, gradients and losses see nothing but indices, since an inner
product of two outputs is the number of parts they share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma._core import structures as core
from didyma._core.polytope import extent, forbid, has_masks, products
from didyma.errors import DataError
from didyma.partition import SUSPECT, k_best
from didyma.values import aligned, as_array

__all__ = [
    "CompiledStructure",
    "Layout",
    "Structure",
    "as_batch",
    "as_flags",
    "as_lengths",
    "as_outputs",
    "best_outputs",
    "check_range",
    "check_scores",
    "check_structure",
    "flatten",
    "impossible",
    "lay_out_additional",
    "pack",
]

Floats = NDArray[np.float64]
LARGEST = 1e300  # sums of larger scores would overflow
CACHED_SHAPES = 256  # of batches, whose constants are kept
LOG_NEGLIGIBLE = 100.0  # outputs of less than e^-100 of the total weight change no marginal


NO_EXTRA = np.zeros((1, 0))
NO_DIMS = np.zeros(0, np.int64)
EVERYTHING = np.zeros(0, np.bool_)  # flags of `forbid` that leave nothing out


@dataclass(frozen=True)
class Additional:
    """One array of additional scores: where it stands among all of them, and its own shape."""

    start: int
    stop: int
    shape: tuple[int, ...]  # of one instance
    shared: bool  # one array for the whole batch


@dataclass(slots=True, eq=False)
class Layout:
    """A batch of instances as flat arrays: what solvers and kernels read.

    Part p of instance b scores ``scores[b, p]``, additional part q ``extra[b, q]`` (``extra[0, q]``
    where the whole batch shares them). Room for ``n_parts`` and ``n_extra`` of them is enough for
    any output.
    """

    scores: Floats
    shape: tuple[int, ...]  # of the scores of one instance
    n_parts: int
    extra: Floats = field(default_factory=lambda: NO_EXTRA)
    additional: Mapping[str, Additional] = field(default_factory=dict)
    n_extra: int = 0
    dims: NDArray[np.int64] = field(default_factory=lambda: NO_DIMS)
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    n_work: int = 0
    n_index: int = 0

    def __len__(self) -> int:
        return len(self.scores)

    def extra_of(self, b: Any) -> Floats:
        """Additional scores of instance b; of several, one row where they share them."""
        if len(self.extra) > 1:
            return self.extra[b]
        return self.extra[0] if np.ndim(b) == 0 else self.extra

    def select(self, b: Any) -> Layout:
        """Some instances: their numbers, or a mask."""
        extra = self.extra[b] if len(self.extra) > 1 else self.extra
        return replace(self, scores=self.scores[b], extra=extra, sizes=self.sizes[b])


class Structure(ABC):
    """A finite set of outputs; `argmax` is all that a solver asks of it.

    ``ndim`` is the number of axes of one instance's scores; arrays with one more axis are batches.

    >>> class Contiguous(Structure):
    ...     "A run of three neighbours."
    ...     def argmax(self, scores):
    ...         start = np.argmax(np.convolve(scores, np.ones(3), mode="valid"))
    ...         return np.arange(start, start + 3)
    >>> Contiguous().argmax(np.array([1.0, 0.5, 1.0, 0.8, 0.0]))
    array([0, 1, 2])
    """

    ndim: ClassVar[int] = 1

    aligned: ClassVar[bool] = False
    """Whether two outputs that share a part have it in the same place of ``parts``."""

    closed_form: ClassVar[Any] = None
    """Kernels of SparseMAP and its derivative that need no argmax (see `Choice`), or None."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles compute by themselves what properties keep, such as kernels."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

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

    def lay_out(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> Layout:
        """Check a batch and lay it out flat."""
        if lengths is not None:
            raise DataError(
                f"{type(self).__name__} takes no lengths: give instances of different sizes to "
                "separate calls",
                field="lengths",
            )
        batch = check_scores(as_batch(scores, self.ndim), "scores")
        flat = flatten(batch)
        shapes = self.declared(batch.shape[1:], additional)
        extra, named = lay_out_additional(
            len(batch), {name: (additional.get(name), own) for name, own in shapes.items()}
        )
        return Layout(
            flat,
            batch.shape[1:],
            flat.shape[1],
            extra,
            named,
            extra.shape[1],
            dims=np.array(batch.shape[1:], np.int64),
            sizes=np.zeros((len(batch), 0), np.int64),
            n_index=flat.shape[1] + extra.shape[1],
        )

    def oracle(self, layout: Layout) -> Any:
        """The argmax as solvers ask for it, a `didyma._core.structures.Argmax`."""
        name = f"{type(self).__name__}.argmax"

        def argmax(scores: Floats, extra: Floats) -> NDArray[np.int64]:
            named = {
                key: extra[place.start : place.stop].reshape(place.shape)
                for key, place in layout.additional.items()
            }
            found = as_array(self.argmax(scores.reshape(layout.shape), **named))
            if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)):
                raise DataError(
                    f"{name} must return one axis of integer part indices, returned {found.dtype} "
                    f"of shape {found.shape}"
                )
            return aligned(found.astype(np.int64, copy=False))

        return core.PythonArgmax(name, argmax)

    def declared(
        self, shape: tuple[int, ...], given: Mapping[str, Any]
    ) -> Mapping[str, tuple[int, ...]]:
        """What `additional` declares; any other name is refused."""
        shapes = self.additional(shape)
        for name in given:
            if name not in shapes:
                raise DataError(
                    f"{type(self).__name__} has no such scores: its method `additional` declares "
                    f"{', '.join(shapes) or 'none'}",
                    field=name,
                )
        return shapes

    def decode(self, parts: NDArray[np.int32], layout: Layout) -> NDArray[Any]:
        """Outputs in the form that people know, one per row of part indices.

        For a structure without a form of its own this is the 0/1 array of the parts.
        """
        outputs = np.zeros((len(parts), layout.scores.shape[1]), dtype=bool)
        rows, columns = np.nonzero(parts >= 0)
        outputs[rows, parts[rows, columns]] = True
        return outputs.reshape(len(parts), *layout.shape)


class CompiledStructure(Structure):
    """A structure whose argmax is a kernel over flat arrays, and which knows lengths.

    The kernel is ``kernel(scores, extra, dims, size, work, index, parts, extra_parts)`` of the core
    (``core/structures/argmax.hpp`` says what it does).
    """

    aligned: ClassVar[bool] = True

    kernel: ClassVar[Any]
    """The argmax, a `didyma._core.structures.Argmax`."""

    def oracle(self, layout: Layout) -> Any:
        """The kernel."""
        return self.kernel

    @abstractmethod
    def encode(
        self, outputs: ArrayLike, layout: Layout
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Part indices (B, n_parts) and additional ones (B, n_extra) of one output per instance."""

    def argmax(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> NDArray[np.int32]:
        """Indices of the parts of each instance's best output, padded with −1.

        They count through the flattened scores of one instance. `predict` gives the same outputs in
        the form that people know.
        """
        layout = self.lay_out(scores, lengths, **additional)
        parts = self._argmax(layout)
        return parts if np.ndim(scores) > self.ndim else parts[0]

    def predict(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> NDArray[Any]:
        """Each instance's best output: tags, heads, columns, states; see the structure."""
        layout = self.lay_out(scores, lengths, **additional)
        outputs = self.decode(self._argmax(layout), layout)
        return outputs if np.ndim(scores) > self.ndim else outputs[0]

    def refuse(self, additional: Mapping[str, Any]) -> None:
        """Raise for additional scores that this structure does not know."""
        for name in additional:
            raise DataError(f"{type(self).__name__} has no such scores", field=name)

    intractable: ClassVar[str] = "nobody has written sums over its outputs"
    """Why there are neither marginals nor samples, for a structure that has none."""

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Under p(output) ∝ exp(score): log partition (B,), marginals (B, d) and those of extra."""
        raise NotImplementedError(
            f"{type(self).__name__} has no marginals and no samples: {self.intractable}; use "
            "SparseMAP, which needs only an argmax"
        )

    def covariances(self, layout: Layout, p: Floats, p_extra: Floats) -> tuple[Floats, Floats]:
        """Covariance of each part (B, d), and each additional one, with Σ p over an output's parts.

        That is how marginals move along p: the log partition's second derivative times p.
        """
        from didyma._core.hypergraph import covariances

        return self._over_plan(covariances, layout, p, p_extra)

    def third_cumulants(
        self, layout: Layout, p: Floats, p_extra: Floats, r: Floats, r_extra: Floats
    ) -> tuple[Floats, Floats]:
        """Third cumulant of each part (B, d), and each additional one, with Σ p and Σ r.

        That is how `covariances` with p move along r, and those with r along p.
        """
        from didyma._core.hypergraph import third_cumulants

        return self._over_plan(third_cumulants, layout, p, p_extra, r, r_extra)

    def _over_plan(
        self, kernel: Callable[..., Any], layout: Layout, *directions: Floats
    ) -> tuple[Floats, Floats]:
        """What a kernel finds along directions, each of parts and of additional ones."""
        plan = self.planned(layout)
        if plan is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no derivatives of marginals: nobody has written them; "
                "those of SparseMAP need only an argmax"
            )
        found = np.empty_like(directions[0]), np.empty_like(directions[1])
        kernel(
            plan.scores,
            plan.extra,
            plan.dims,
            plan.sizes,
            plan.n_work,
            *map(aligned, directions),
            *found,
        )
        return found

    def planned(self, layout: Layout) -> Layout | None:
        """The batch for the kernels of hypergraphs, where outputs are derivations of one.

        Derivations have the same parts as outputs, in any order.
        """
        return None

    def marginals(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> Floats:
        """Probability of each part under p(output) ∝ exp(score); the shape of the scores."""
        _, marginals, _ = self.sums(self.lay_out(scores, lengths, **additional))
        return marginals.reshape(np.shape(scores))

    def log_partition(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> Any:
        """Logarithm of the sum of exp(score) over all outputs, per instance."""
        log_partition, _, _ = self.sums(self.lay_out(scores, lengths, **additional))
        return log_partition if np.ndim(scores) > self.ndim else float(log_partition[0])

    def entropy(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> Any:
        """Entropy −Σ p log p of p(output) ∝ exp(score), per instance, in nats.

        It is the log partition less the expected score, as exact as the scores are rounded.
        """
        layout = self.lay_out(scores, lengths, **additional)
        log_partition, *marginals = self.sums(layout)
        entropy = np.maximum(log_partition - _expected(layout, *marginals), 0.0)
        return entropy if np.ndim(scores) > self.ndim else float(entropy[0])

    def kl(
        self,
        scores: ArrayLike,
        other: ArrayLike,
        lengths: ArrayLike | None = None,
        other_additional: Mapping[str, ArrayLike | None] | None = None,
        **additional: ArrayLike | None,
    ) -> Any:
        """Divergence Σ p log(p / q) of p(output) ∝ exp(score) from q, which has other scores.

        Additional scores are q's as well, unless it has its own. Where q forbids an output that p
        does not, the divergence is infinite.
        """
        layout = self.lay_out(scores, lengths, **additional)
        theirs = additional if other_additional is None else other_additional
        other_layout = self.lay_out(other, lengths, **theirs)
        if len(layout) != len(other_layout) or layout.shape != other_layout.shape:
            raise DataError(
                f"expected the shape of the scores, {np.shape(scores)}, found {np.shape(other)}",
                field="other",
            )
        log_partition, *marginals = self.sums(layout)
        other_partition, *_ = self.sums(other_layout)
        further = _expected(layout, *marginals) - _expected(other_layout, *marginals)
        divergence = np.maximum(further - log_partition + other_partition, 0.0)
        return divergence if np.ndim(scores) > self.ndim else float(divergence[0])

    def k_best(
        self,
        scores: ArrayLike,
        k: int,
        lengths: ArrayLike | None = None,
        **additional: ArrayLike | None,
    ) -> tuple[NDArray[Any], Floats]:
        """The k best outputs (B, k, ...) and their scores (B, k), best first.

        Where fewer outputs are possible the rest is padding, with score −∞. Which of equally good
        ones come first is not said.
        """
        if k < 1:
            raise DataError(f"expected at least 1, found {k}", field="k")
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
        **additional: ArrayLike | None,
    ) -> NDArray[Any]:
        """Outputs (B, n, ...) drawn independently from p(output) ∝ exp(score).

        What is drawn for an instance depends on ``random_state`` and on its place in the batch.
        """
        if n < 0:
            raise DataError(f"expected a number from 0 up, found {n}", field="n")
        layout = self.lay_out(scores, lengths, **additional)
        layout = self.relevant(layout)
        outputs = self._decode_all(self._sample(layout, n, random_state), layout)
        return outputs if np.ndim(scores) > self.ndim else outputs[0]

    def sums(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """`expectations`, whatever numbers stand for masks."""
        return self.expectations(self.relevant(layout))

    def relevant(self, layout: Layout) -> Layout:
        """The batch without the parts of outputs that count for nothing in sums."""
        n_outputs = layout.n_parts * np.log1p(layout.scores.shape[1])  # the logarithm of a bound
        return self.narrow(layout, float(LOG_NEGLIGIBLE + n_outputs))

    def _k_best(self, layout: Layout, k: int) -> tuple[NDArray[np.int32], Floats]:
        """Parts (B, k, n_parts) and scores (B, k): over a plan, or with nothing but the argmax."""
        plan = self.planned(layout)
        if plan is None:
            return self._k_best_by_argmax(layout, k)
        from didyma._core.hypergraph import k_best

        parts = np.full((len(plan), k, plan.n_parts), -1, np.int32)
        totals = np.full((len(plan), k), -np.inf)
        for b in range(len(plan)):
            k_best(
                plan.scores[b],
                plan.extra_of(b),
                plan.dims,
                plan.sizes[b],
                plan.n_work,
                parts[b],
                totals[b],
            )
        return _ascending(parts), totals

    def _k_best_by_argmax(self, layout: Layout, k: int) -> tuple[NDArray[np.int32], Floats]:
        parts = np.full((len(layout), k, layout.n_parts), -1, np.int32)
        totals = np.full((len(layout), k), -np.inf)
        for b in range(len(layout)):
            one = layout.select([b])

            def solve(scores: Floats, one: Layout = one) -> Any:
                sizes = np.repeat(one.sizes, len(scores), axis=0)
                found, _, possible = self._best(replace(one, scores=scores, sizes=sizes))
                return found, possible

            for rank, (score, row) in enumerate(k_best(one.scores[0], solve, k)):
                parts[b, rank], totals[b, rank] = row, score
        return parts, totals

    def _sample(self, layout: Layout, n: int, random_state: int) -> NDArray[np.int32]:
        """Parts (B, n, n_parts) of samples."""
        plan = self.planned(layout)
        if plan is None:
            self.expectations(layout)  # raises where these are intractable too
            raise NotImplementedError(f"{type(self).__name__} has no samples")
        from didyma._core.hypergraph import sample

        parts = np.full((len(plan), n, plan.n_parts), -1, np.int32)
        for b in range(len(plan)):
            if not sample(
                plan.scores[b],
                plan.extra_of(b),
                plan.dims,
                plan.sizes[b],
                plan.n_work,
                np.random.default_rng((random_state, b)),
                parts[b],
            ):
                raise impossible(b)
        return _ascending(parts)

    def _decode_all(self, parts: NDArray[np.int32], layout: Layout) -> NDArray[Any]:
        """Outputs (B, k, ...) of parts (B, k, n_parts)."""
        batch, k, n_parts = parts.shape
        outputs = self.decode(parts.reshape(batch * k, n_parts), layout)
        return outputs.reshape(batch, k, *outputs.shape[1:])

    def narrow(self, layout: Layout, slack: float) -> Layout:
        """Forbid the parts of outputs that score more than ``slack`` below the best one.

        Not all of them, but those whose low scores must be masks: -1e30 would otherwise drown other
        scores wherever it is added to them. It is certain that none is forbidden wrongly. The other
        parts of an output score at most P, the sum of all positive scores (additional ones counted
        as often as an output can have them), so an output with part p scores at most score(p) + P.
        Any output, here the best of those without a suspicious part, is at most as good as the
        best. Hence score(p) + P < its score − slack puts all outputs with part p too low.
        """
        if not has_masks(layout.scores, layout.extra, SUSPECT):
            return layout
        highest, lowest, positive = extent(layout.scores)
        more, less, _ = extent(layout.extra)
        limit = -SUSPECT * np.maximum(np.maximum(highest, more), 1.0)
        rows = np.flatnonzero(np.minimum(lowest, less) < limit)
        shape = (len(rows), layout.extra.shape[1])
        scores, extra = layout.scores[rows], layout.extra_of(rows)
        masks = bool((less < limit).any())  # among the additional scores
        probe = replace(
            layout,
            scores=_forbid(scores, limit[rows]),
            extra=_forbid(extra, limit[rows]) if masks else extra,
            sizes=layout.sizes[rows],
        )
        parts, extra_parts, possible = self._best(probe)
        score = _total(scores, parts) + _total(np.broadcast_to(extra, shape), extra_parts)
        with np.errstate(over="ignore"):
            rest = (positive + layout.n_extra * np.maximum(more, 0.0))[rows]
            bound = score - slack - rest - 1e-9 * (np.abs(score) + rest)  # the last for rounding
        bound = np.where(possible, np.minimum(bound, limit[rows]), -np.inf)
        narrowed = layout.scores.copy()
        narrowed[rows] = _forbid(scores, bound)
        if not masks:
            return replace(layout, scores=narrowed)
        every = np.array(np.broadcast_to(layout.extra, (len(layout), shape[1])), order="C")
        every[rows] = _forbid(extra, bound)
        return replace(layout, scores=narrowed, extra=every)

    def _argmax(self, layout: Layout) -> NDArray[np.int32]:
        parts, _, possible = self._best(self.narrow(layout, 0.0))
        if not possible.all():
            raise impossible(int(np.argmin(possible)))
        return parts

    def _best(
        self, layout: Layout
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        """Parts and additional parts of each instance's best output, and whether there is one."""
        return best_outputs(self.kernel, layout)


def best_outputs(
    oracle: Any, layout: Layout
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Parts and additional parts that an oracle finds for each instance, and whether it does."""
    parts, extra_parts, possible = core.best_outputs(
        oracle,
        layout.scores,
        layout.extra,
        layout.dims,
        layout.sizes,
        layout.n_work,
        layout.n_index,
        layout.n_parts,
        layout.n_extra,
    )
    return parts, extra_parts, possible


def _ascending(parts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Part indices in ascending order, −1 last."""
    last = np.iinfo(np.int32).max
    ordered = np.sort(np.where(parts < 0, last, parts), axis=-1)
    return np.where(ordered == last, -1, ordered).astype(np.int32)


def _expected(layout: Layout, marginals: Floats, extra_marginals: Floats) -> Floats:
    """Expected score of each instance; what is never used may score −∞."""
    own, additional = np.zeros(len(layout)), np.zeros(len(layout))
    products(layout.scores, marginals, own)
    products(layout.extra, extra_marginals, additional)
    return own + additional


def _forbid(scores: Floats, below: Floats) -> Floats:
    # Shared scores are broadcast, and what is made of them would be laid out by columns.
    return np.ascontiguousarray(np.where(scores < below[:, None], -np.inf, scores))


def _total(scores: Floats, parts: NDArray[np.int32]) -> Floats:
    """Sum of the scores at each row's parts, which end at the first −1."""
    if not scores.shape[1]:
        return np.zeros(len(scores))
    picked = np.take_along_axis(scores, np.maximum(parts, 0).astype(np.int64), axis=1)
    return np.where(parts >= 0, picked, 0.0).sum(axis=1)


def impossible(b: int) -> DataError:
    """The error for an instance whose outputs all contain a forbidden part."""
    return DataError(
        f"instance {b}: every output contains a part with score -inf; at least one output must be "
        "possible",
        field="scores",
    )


def check_structure(structure: Any) -> None:
    """Refuse what is not a structure, such as its class."""
    if isinstance(structure, Structure):
        return
    found = repr(structure)
    if isinstance(structure, type) and issubclass(structure, Structure):
        found = f"the class {structure.__name__}: make one, as in {structure.__name__}(...)"
    raise DataError(f"expected a didyma.Structure, found {found}", field="structure")


def as_batch(scores: ArrayLike, ndim: int) -> Floats:
    """Scores as float64 with a batch axis; `check_scores` is to follow."""
    batch = np.asarray(scores, dtype=np.float64)
    if batch.ndim == ndim:
        batch = batch[None]
    if batch.ndim != ndim + 1:
        raise DataError(
            f"expected {ndim} axes, or {ndim + 1} with a batch axis first, found an array of shape "
            f"{np.shape(scores)}",
            field="scores",
        )
    return aligned(batch)


def flatten(batch: NDArray[Any]) -> NDArray[Any]:
    """All axes but the first made one, also of an empty batch."""
    return batch.reshape(len(batch), prod(batch.shape[1:]))


def check_scores(array: Floats, name: str, used: NDArray[np.bool_] | None = None) -> Floats:
    """The scores, −∞ where they are not used; NaN and +inf are refused, naming the first place.

    Scores below −1e300 forbid a part as −∞ does, since sums of them would overflow.
    """
    array = np.ascontiguousarray(array)
    if used is None:
        used = EVERYTHING
    elif used.shape[1:] != array.shape[1:]:
        used = np.broadcast_to(used, array.shape)
    changed, wrong = forbid(array.reshape(-1), np.ascontiguousarray(used).reshape(-1), LARGEST)
    if wrong >= 0:
        place = [int(i) for i in np.unravel_index(wrong, array.shape)]
        raise DataError(
            f"expected numbers up to {LARGEST:g} (-inf forbids a part), found "
            f"{array.flat[wrong]} at index {place}",
            field=name,
        )
    return changed.reshape(array.shape) if changed.size else array


def as_lengths(lengths: ArrayLike | None, batch: int, longest: int) -> NDArray[np.int64]:
    """One length per instance, between 0 and the padded one."""
    if lengths is None:
        return _equal_lengths(batch, longest)
    given = np.atleast_1d(as_array(lengths))
    if given.shape != (batch,) or not np.issubdtype(given.dtype, np.integer):
        raise DataError(
            f"expected {batch} integers, one per instance, found {given.dtype} of shape "
            f"{given.shape}",
            field="lengths",
        )
    wrong = np.flatnonzero((given < 0) | (given > longest))
    if len(wrong):
        raise DataError(
            f"expected 0 to {longest} (the padded size), found {given[wrong[0]]} for instance "
            f"{wrong[0]}",
            field="lengths",
        )
    return given.astype(np.int64)


@lru_cache(maxsize=CACHED_SHAPES)
def _equal_lengths(batch: int, longest: int) -> NDArray[np.int64]:
    lengths = np.full(batch, longest, np.int64)
    lengths.flags.writeable = False
    return lengths


def as_outputs(outputs: ArrayLike, shape: tuple[int, ...], layout: Layout) -> NDArray[np.int32]:
    """One output of this shape per instance, as integers with a batch axis."""
    given = as_array(outputs)
    if given.shape == shape:
        given = given[None]
    if given.shape != (len(layout), *shape) or not np.issubdtype(given.dtype, np.integer):
        raise DataError(
            f"expected integers of shape {(len(layout), *shape)}, found {given.dtype} of shape "
            f"{given.shape}",
            field="outputs",
        )
    return given.astype(np.int32)


def as_flags(outputs: ArrayLike, used: NDArray[np.bool_], layout: Layout) -> NDArray[np.bool_]:
    """One boolean (or 0/1) output per instance, False where it is not used (padding)."""
    given = np.asarray(outputs)
    if given.shape == layout.shape:
        given = given[None]
    shape = (len(layout), *layout.shape)
    if given.shape != shape or given.dtype.kind not in "biu":
        raise DataError(
            f"expected booleans of shape {shape}, found {given.dtype} of shape {given.shape}",
            field="outputs",
        )
    wrong = np.argwhere(used & (given != 0) & (given != 1))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise DataError(
            f"expected 0 or 1, found {given[place]} at index {list(place)}", field="outputs"
        )
    return used & (given == 1)


def pack(flags: NDArray[np.bool_], layout: Layout) -> NDArray[np.int32]:
    """Flat indices of the true entries of each instance, ascending, padded with −1."""
    flat = flatten(flags)
    parts = np.full((len(layout), layout.n_parts), -1, np.int32)
    instance, part = np.nonzero(flat)
    parts[instance, (np.cumsum(flat, axis=1) - 1)[instance, part]] = part
    return parts


def check_range(
    outputs: NDArray[np.int32],
    low: int,
    high: int | NDArray[np.int64],
    used: NDArray[np.bool_],
    what: str,
) -> None:
    """Refuse outputs below ``low`` or from ``high`` on, where they are used."""
    wrong = np.argwhere(used & ((outputs < low) | (outputs >= high)))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        limit = int(np.broadcast_to(high, outputs.shape)[place])
        raise DataError(
            f"expected a {what} from {low} to {limit - 1}, found {outputs[place]} at index "
            f"{list(place)}",
            field="outputs",
        )


def lay_out_additional(
    batch: int,
    given: Mapping[str, tuple[ArrayLike | None, tuple[int, ...]]],
    used: Mapping[str, NDArray[np.bool_]] | None = None,
) -> tuple[Floats, dict[str, Additional]]:
    """Additional scores side by side, as (1, f) if the whole batch shares them, else (batch, f).

    ``given`` has, per name, the array or None (zero scores) and the shape of one instance; ``used``
    which of them some instance of the batch (or each instance, along a first axis) uses.
    """
    named: dict[str, Additional] = {}
    blocks = []
    start = 0
    for name, (array, shape) in given.items():
        stop = start + prod(shape)
        if array is None:
            start = stop
            continue
        values = np.asarray(array, dtype=np.float64)
        if values.shape not in (shape, (batch, *shape)):
            raise DataError(
                f"expected shape {shape}, or {(batch, *shape)} for one per instance, found "
                f"{values.shape}",
                field=name,
            )
        shared = values.shape == shape
        own = used.get(name) if used else None
        if own is not None and shared:
            own = np.asarray(own.any(axis=0))
        values = check_scores(values, name, own)
        named[name] = Additional(start, stop, shape, shared)
        blocks.append(values.reshape(1 if shared else batch, stop - start))
        start = stop
    extra = np.zeros((max((len(block) for block in blocks), default=1), start))
    for place, block in zip(named.values(), blocks):
        extra[:, place.start : place.stop] = block
    return extra, named
