"""The questions of Yue et al. (2007), asked of the five folds of LETOR's MQ2008."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data import letor
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix
from didyma.errors import DataError
from didyma.metrics import Evaluator
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler
from didyma.report.table import markdown
from reproductions import study
from reproductions.folds import N_PARTS, turns
from reproductions.svmmap_models import (
    CS,
    CS_OF_FEATURES,
    REFERENCE,
    Fits,
    Model,
    Vector,
    against,
    indicators,
    judge,
    three,
)

MEASURES = {"MAP": "AP", "nDCG@10": "nDCG(dcg='exp-log2')@10", "P@5": "P@5"}


@dataclass(frozen=True, eq=False)
class Part:
    """One of the five parts of MQ2008."""

    data: Lists
    features: dict[str, Matrix] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Part:
        """Read a part; its queries come one after the other."""
        data = letor.read(path)
        if not np.array_equal(data.groups.rows, np.arange(len(data))):
            raise DataError("expected the rows of each query together", path=path)
        X = data.X.toarray() if sp.issparse(data.X) else data.X
        sizes = data.groups.sizes
        features = {
            "scores": X,
            "percentiles": indicators(QueryPercentileScaler().fit_transform(X, group=sizes)),
            "minmax": indicators(QueryMinMaxScaler().fit_transform(X, group=sizes)),
        }
        return cls(data, features)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Judges scores of all rows; queries without relevant documents have the value 0."""
        names = MEASURES.values()
        return Evaluator(self.data.y, self.data.groups, names, docid=self.data.docid)

    @cached_property
    def answerable(self) -> NDArray[np.bool_]:
        """Which queries have a relevant document."""
        return np.bincount(self.data.groups.codes, weights=self.data.y >= 1) > 0

    def judge(self, scores: Vector) -> dict[str, Vector]:
        """Value of each measure for each query."""
        evaluation = self.evaluator(scores)
        return {name: evaluation[measure] for name, measure in MEASURES.items()}


def stack(parts: Sequence[Part], features: str) -> tuple[Matrix, Vector, NDArray[np.int64]]:
    """Rows, labels and query sizes of some parts together."""
    matrices = [part.features[features] for part in parts]
    X = sp.vstack(matrices, "csr") if sp.issparse(matrices[0]) else np.vstack(matrices)
    y = np.concatenate([part.data.y for part in parts])
    return X, y, np.concatenate([part.data.groups.sizes for part in parts])


def reproduce_mq2008(folder: Path, models: Sequence[Model]) -> dict[str, Any]:
    """Train on three parts, choose C on the fourth, test on the fifth, five times."""
    parts = [Part.read(folder / f"S{k + 1}.txt") for k in range(N_PARTS)]
    fits, tests = Fits(), []
    values: dict[str, list[dict[str, Vector]]] = {model.name: [] for model in models}
    for fold, (training, validation, test) in enumerate(turns(parts)):
        tests.append(test)
        for model in models:
            Cs = CS_OF_FEATURES if model.features == "scores" else CS
            X_validation = validation.features[model.features]

            def validate(w: Vector, X: Matrix = X_validation, part: Part = validation) -> float:
                return float(part.judge(X @ w)["MAP"].mean())

            w = fits.best(model, stack(training, model.features), Cs, validate)
            values[model.name].append(test.judge(test.features[model.features] @ w))
            study.say(f"MQ2008, fold {fold + 1}, {model.name}")
    columns = range(parts[0].data.X.shape[1])
    single = {
        f"feature {k + 1}": [p.judge(p.features["scores"][:, k]) for p in tests] for k in columns
    }
    best = sorted(single, key=lambda name: -_mean_of_folds(single[name], "MAP"))[:3]
    values |= {name: single[name] for name in best}
    reference = np.concatenate([fold["MAP"] for fold in values[REFERENCE]])
    judged = {}
    for name, folds in values.items():
        ap = np.concatenate([fold["MAP"] for fold in folds])
        answerable = [fold["MAP"][part.answerable].mean() for fold, part in zip(folds, tests)]
        judged[name] = judge(ap, reference) | {
            **{measure: _mean_of_folds(folds, measure) for measure in MEASURES},
            "MAP of answerable": float(np.mean(answerable)),
        }
    return {
        "queries": int(sum(len(part.answerable) for part in parts)),
        "answerable": int(sum(part.answerable.sum() for part in parts)),
        "judged": judged,
        "fits": fits.summary(),
        "AP": {
            name: np.concatenate([fold["MAP"] for fold in folds]).tolist()
            for name, folds in values.items()
        },
    }


def _mean_of_folds(folds: Sequence[Mapping[str, Vector]], measure: str) -> float:
    return float(np.mean([fold[measure].mean() for fold in folds]))


def mq2008_tables(found: Mapping[str, Any]) -> str:
    """Means over the five folds."""
    header = ["", *MEASURES, "W/L", "p", f"MAP ({found['answerable']} queries)"]
    body = []
    for name, row in found["judged"].items():
        same = name == REFERENCE
        figures = [three(row[measure]) for measure in MEASURES]
        test = ["", ""] if same else [against(row), f"{row['p']:.2g}"]
        body.append([name, *figures, *test, three(row["MAP of answerable"])])
    stopped = ", ".join(f"{name} {n}" for name, n in found["fits"]["unfinished"].items() if n)
    return (
        f"All {found['queries']} queries.\n\n{markdown(header, body)}\n\n"
        f"Fits that stopped at their limit: {stopped or 'none'}."
    )
