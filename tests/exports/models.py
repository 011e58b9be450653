"""Random models of every kind that can be exported, as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from didyma.data.matrix import Columns
from didyma.model import Model
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.bins import LEVELS
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.svm import SVMRanker

NAMES = ("bm25", "title bm25", "title.bm25", "2nd", "[age]", "größe")


def fitted(estimator: Any, known: Columns, **learned: Any) -> Model:
    """The model of an estimator that has learned this."""
    for name, value in {"n_queries_": 3, **learned}.items():
        setattr(estimator, name, value)
    known.remember(estimator)
    return Model.of(estimator)


def features(random: Generator, n: int) -> Columns:
    names = NAMES[:n] if random.random() < 0.7 else None
    return Columns(n, names, None if names else bool(random.random() < 0.5))


def linear(random: Generator, scaler: str | None = None, *, clip: bool = False) -> Model:
    """A linear ranker, maybe with a constant, behind a scaler of that name."""
    known = features(random, int(random.integers(1, 7)))
    n = known.count
    coef = random.normal(size=n) * random.choice([0.0, 1.0, 1e-3], size=n)
    if random.random() < 0.5:
        intercept = float(random.normal())
        model = fitted(ClassificationRanker(), known, coef_=coef, intercept_=intercept)
    else:
        model = fitted(SVMRanker(), known, coef_=coef)
    if scaler is None:
        return model
    size = 10.0 ** random.integers(-3, 4, size=n)
    states: dict[str, dict[str, Any]] = {
        "MaxAbsScaler": {},
        "StandardScaler": {
            "with_mean": bool(random.random() < 0.5),
            "with_std": True,
            "mean_": 3 * random.normal(size=n) * size,
        },
        "MinMaxScaler": {
            "clip": clip,
            "feature_range": (-4, 4) if clip else (0, 1),
            "min_": random.normal(size=n),
        },
    }
    state = {**states[scaler], "scale_": size}
    return model.behind(Model.scaling(scaler, state, known))


def additive(random: Generator, *, pairs: int = 2) -> Model:
    """An additive ranker with numbers, categories, missing values and pairs."""
    known = features(random, int(random.integers(2, 7)))
    n = known.count
    height = LEVELS**2 + 1
    edges = np.full((n, height - 1), np.inf)
    for row in edges:
        own = np.unique(random.normal(size=random.integers(1, 20)).round(int(random.integers(3))))
        row[: len(own)] = own * random.choice([1.0, 1000.0])
    levels = random.integers(LEVELS + 1, size=(n, height)).astype(np.uint8)
    chosen = np.array([random.permutation(n)[:2] for _ in range(pairs)]).reshape(-1, 2)
    learned = {
        "coef_": random.normal(size=(height - 1) * (n + pairs)),
        "edges_": edges,
        "nominal_": random.random(n) < 0.3,
        "signs_": np.zeros(n, np.int8),
        "levels_": levels,
        "pairs_": chosen.astype(np.int64),
        "mass_": np.full((height, n + pairs), 1.0 / height),
    }
    learned["coef_"] *= random.choice([0.0, 1.0, 1.0], size=learned["coef_"].shape)
    return fitted(AdditiveSVMRanker(), known, **learned)
