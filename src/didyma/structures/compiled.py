"""CompiledStructure: a structure whose argmax is a kernel of the core."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from didyma._core.polytope import products
from didyma.errors import DataError
from didyma.structure import Structure
from didyma.structures.batches import as_batch, impossible
from didyma.structures.layout import Floats, Layout, Lengths, Parts
from didyma.structures.oracles import mask_unreachable
from didyma.values import aligned

LOG_NEGLIGIBLE = 100.0  # outputs of less than e^-100 of the total weight change no marginal


class CompiledStructure(Structure):
    """A structure whose argmax is a kernel over flat arrays, and which knows lengths.

    The kernel is ``kernel(scores, extra, dims, size, work, index, parts, extra_parts)`` of the core
    (``core/structures/argmax.hpp`` says what it does).
    """

    aligned: ClassVar[bool] = True
    reads_infinity: ClassVar[bool] = True

    kernel: ClassVar[Any]
    """The argmax, a `didyma._core.structures.Argmax`."""

    def oracle(self, layout: Layout) -> Any:
        """The kernel."""
        return self.kernel

    @abstractmethod
    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Part indices (B, n_parts) and additional ones (B, n_extra) of one output per instance."""

    def argmax(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Parts:
        """Indices of the parts of each instance's best output, padded with −1.

        They count through the flattened scores of one instance. `predict` gives the same outputs in
        the form that people know.
        """
        layout = self.lay_out(scores, lengths, **additional)
        return self._as_given(self.best(layout), scores)

    def lay_out(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Layout:
        """Check a batch of scores, (B, ...) or one instance, and lay it out flat."""
        self.refuse(additional)
        return self.arrange(as_batch(scores, self.ndim), lengths)

    def arrange(self, batch: Floats, lengths: Lengths) -> Layout:
        """The layout of a batch (B, ...), for a structure without additional scores."""
        raise NotImplementedError

    def refuse(self, additional: Mapping[str, Any]) -> None:
        """Raise for additional scores that this structure does not know."""
        for name in additional:
            raise DataError(f"{type(self).__name__} has no such scores", field=name)

    intractable: ClassVar[str] = "sums over its outputs are not implemented"
    """Why there are no marginals, for a structure that has none."""

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Under p(output) ∝ exp(score): log partition (B,), marginals (B, d) and those of extra."""
        raise NotImplementedError(
            f"{type(self).__name__} has no marginals: {self.intractable}; use "
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
                f"{type(self).__name__} has no derivatives of marginals; those of SparseMAP need "
                "only an argmax"
            )
        moved = np.empty_like(directions[0]), np.empty_like(directions[1])
        kernel(*plan.plan_arguments, *map(aligned, directions), *moved)
        return moved

    def planned(self, layout: Layout) -> Layout | None:
        """The batch for the kernels of hypergraphs, where outputs are derivations of one.

        Derivations have the same parts as outputs, in any order.
        """
        return None

    def marginals(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Floats:
        """Probability of each part under p(output) ∝ exp(score); the shape of the scores."""
        _, marginals, _ = self.sums(self.lay_out(scores, lengths, **additional))
        return marginals.reshape(np.shape(scores))

    def log_partition(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Any:
        """Logarithm of the sum of exp(score) over all outputs, per instance."""
        log_partition, _, _ = self.sums(self.lay_out(scores, lengths, **additional))
        return self._numbers(log_partition, scores)

    def entropy(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Any:
        """Entropy −Σ p log p of p(output) ∝ exp(score), per instance, in nats.

        It is the log partition less the expected score, as exact as the scores are rounded.
        """
        layout = self.lay_out(scores, lengths, **additional)
        log_partition, *marginals = self.sums(layout)
        entropy = np.maximum(log_partition - _expected(layout, *marginals), 0.0)
        return self._numbers(entropy, scores)

    def kl(
        self,
        scores: ArrayLike,
        other: ArrayLike,
        lengths: Lengths = None,
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
        return self._numbers(np.maximum(further - log_partition + other_partition, 0.0), scores)

    def _numbers(self, values: Floats, scores: ArrayLike) -> Any:
        """One number per instance, or that of scores without a batch axis."""
        return values if np.ndim(scores) > self.ndim else float(values[0])

    def sums(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """`expectations` of the batch with masks such as −1e30 made −∞."""
        return self.expectations(self.relevant(layout))

    def relevant(self, layout: Layout) -> Layout:
        """The batch without the parts of outputs that count for nothing in sums and samples."""
        n_outputs = layout.n_parts * np.log1p(layout.scores.shape[1])  # the logarithm of a bound
        return mask_unreachable(self.kernel, layout, float(LOG_NEGLIGIBLE + n_outputs))

    def _k_best(self, layout: Layout, k: int) -> tuple[Parts, Floats]:
        """Parts (B, k, n_parts) and scores (B, k): over a plan, or with nothing but the argmax."""
        plan = self.planned(layout)
        if plan is None:
            return super()._k_best(layout, k)
        from didyma._core.hypergraph import k_best

        parts = np.full((len(plan), k, plan.n_parts), -1, np.int32)
        totals = np.full((len(plan), k), -np.inf)
        for b in range(len(plan)):
            k_best(*plan.plan_arguments_of(b), parts[b], totals[b])
        return _ascending(parts), totals

    def _sample(self, layout: Layout, n: int, random_state: int) -> Parts:
        """Parts (B, n, n_parts) of samples."""
        plan = self.planned(layout)
        if plan is None:
            if type(self).expectations is not CompiledStructure.expectations:
                raise NotImplementedError(f"{type(self).__name__} has no samples")
            return super()._sample(layout, n, random_state)  # no sums are known: by perturbation
        from didyma._core.hypergraph import sample

        parts = np.full((len(plan), n, plan.n_parts), -1, np.int32)
        for b in range(len(plan)):
            random = np.random.default_rng((random_state, b))
            if not sample(*plan.plan_arguments_of(b), random, parts[b]):
                raise impossible(b)
        return _ascending(parts)

    def best(self, layout: Layout) -> Parts:
        """Parts (B, n_parts) of each instance's best output; masks such as −1e30 count as −∞."""
        return super().best(mask_unreachable(self.kernel, layout, 0.0))


def expectations_by(
    kernel: Callable[..., int], layout: Layout, *arguments: Any
) -> tuple[Floats, Floats, Floats]:
    """Log partitions (B,), marginals (B, d) and those of additional parts (B, f) by a kernel.

    It writes them and returns −1, or the number of the first instance that has no output.
    """
    log_partition, marginals = np.zeros(len(layout)), np.zeros_like(layout.scores)
    extra_marginals = np.zeros((len(layout), layout.extra.shape[1]))
    sums = log_partition, marginals, extra_marginals
    failed = kernel(layout.scores, layout.extra, layout.dims, layout.sizes, *arguments, *sums)
    if failed >= 0:
        raise impossible(failed)
    return sums


def _ascending(parts: Parts) -> Parts:
    """Part indices in ascending order, −1 last."""
    last = np.iinfo(np.int32).max
    ordered = np.sort(np.where(parts < 0, last, parts), axis=-1)
    return np.where(ordered == last, -1, ordered).astype(np.int32)


def _expected(layout: Layout, marginals: Floats, extra_marginals: Floats) -> Floats:
    """Expected score of each instance; what is never used may score −∞."""
    expected, expected_extra = np.zeros(len(layout)), np.zeros(len(layout))
    products(layout.scores, marginals, expected)
    products(layout.extra, extra_marginals, expected_extra)
    return expected + expected_extra
