"""The oracles of ranking, built for the queries of a problem.

An oracle answers ``answer(i, scores, coef) -> loss``: for query i, whose rows come by descending
relevance, it writes one coefficient per row of Ψ(ŷ) − Ψ* and returns the loss of ŷ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.ranking as core
from didyma.ranking.feature_maps import FeatureMap, Pairwise, Positional
from didyma.ranking.losses import ItemwiseLoss

Vector = NDArray[np.float64]
RowCounts = NDArray[np.int64]


def queries_of(counts: RowCounts) -> Any:
    """Queries of rows by descending relevance, for the core: ``counts`` of each level."""
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    return core.Queries(starts.astype(np.int64), np.ascontiguousarray(counts, np.int64))


def hinge_oracle(
    loss: ItemwiseLoss,
    feature_map: FeatureMap,
    grades: str | None,
    counts: RowCounts,
    gains: Vector,
) -> Any:
    """The most violating ranking, by the oracle that is exact at the least cost.

    ``grades`` is None for binary relevance, else "thresholds" or "joint", for NDCG.
    """
    kind = _kind(loss, feature_map, grades, _longest(counts))
    return oracle_of(kind, loss, feature_map, grades == "thresholds", counts, gains)


def prediction_oracle(
    loss: ItemwiseLoss, feature_map: FeatureMap, thresholds: bool, counts: RowCounts, gains: Vector
) -> Any:
    """The ranking that the scores predict, of whatever loss; its coefficients alone count."""
    return oracle_of("predicted", loss, feature_map, thresholds, counts, gains)


def oracle_of(
    kind: str,
    loss: ItemwiseLoss,
    feature_map: FeatureMap,
    thresholds: bool,
    counts: RowCounts,
    gains: Vector,
) -> Any:
    """The oracle of a kind: of binary relevance, or of that at each threshold, or of grades."""
    parts = (
        queries_of(counts),
        kind,
        loss.described(counts),
        feature_map.described(_longest(counts)),
    )
    if thresholds:
        return core.threshold_oracle(*parts, gains)
    if kind.startswith("graded"):
        return core.graded_oracle(*parts, gains)
    return core.oracle(*parts)


def latent_oracle(
    loss: ItemwiseLoss,
    feature_map: FeatureMap,
    inference: str,
    counts: RowCounts,
    *,
    loss_scale: float,
    all_positions: bool,
    places: NDArray[np.int64] | None,
) -> Any:
    """The most violating ranking against the completion: that of the scores, or ``places``."""
    v = feature_map.described(_longest(counts))
    seen = v
    if all_positions:
        seen = core.feature_map("positional", feature_map.weights_for(_longest(counts)))
    where = np.empty(0, np.int64) if places is None else places
    described = loss.described(counts)
    return core.latent_oracle(queries_of(counts), inference, described, v, seen, loss_scale, where)


def _longest(counts: RowCounts) -> int:
    return int(counts.sum(axis=1).max(initial=0))


def _kind(loss: ItemwiseLoss, feature_map: FeatureMap, grades: str | None, longest: int) -> str:
    pairs = isinstance(feature_map, Pairwise)
    if grades != "joint":
        return "independent" if pairs and loss.independent else "lattice"
    if pairs:
        return "graded_lattice"
    sorts = isinstance(feature_map, Positional) and feature_map.weights == "discount"
    return "graded_sort" if sorts and loss.cutoff >= longest else "graded_assignment"
