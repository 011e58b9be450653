"""Yu and Joachims (2009), "Learning structural SVMs with latent variables": precision@k.

    python -m reproductions.latent_svm --part precision

    python -m reproductions.latent_svm --part ohsumed

Two collections, each in its own five folds: three parts to train on, one to choose C by
precision@k, one to test on. "ohsumed" is the paper's, "precision" is MQ2008. Features are scaled
to [0, 1] within each query, which MQ2008's are already. Grades 1 and 2 are relevant. Beside it
stands the ramp bound of the same loss, another difference of convex functions. Then: how many
rounds CCCP takes over C, and how often it ends at w = 0 if it begins with random completions.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from didyma.data import letor
from didyma.data.lists import Lists
from didyma.errors import DataError, NothingLearnedWarning
from didyma.metrics import Evaluator, wilcoxon, wins_losses
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.latent import CLASSIFIER_CS, LatentSVMRanker
from didyma.ranking.scaling import QueryMinMaxScaler
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from reproductions import study
from reproductions.folds import N_PARTS, Fold, join, turns
from reproductions.kept import Kept

KS = (1, 3, 5, 10)
CS = tuple(10.0**n for n in range(-1, 7))
RANK_CS = tuple(10.0**n for n in range(-3, 6))
RAMP_CS = tuple(10.0**n for n in range(8))
N_RANDOM = 2  # random starts for each fold, k and C

LATENT, START, CLASSIFIER = "latent SVM", "initial weights", "initial classifier, C by P@k"
RAMP, PAIRS = "ramp bound", "RankSVM"
NAMES = (LATENT, RAMP, START, CLASSIFIER, PAIRS)

# Table 3 of the paper, on OHSUMED.
PAPER = {
    LATENT: {1: 0.680, 3: 0.573, 5: 0.567, 10: 0.494},
    START: {1: 0.626, 3: 0.557, 5: 0.524, 10: 0.464},
    PAIRS: {1: 0.597, 3: 0.543, 5: 0.532, 10: 0.486},
}

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Judged queries, whose rows come one query after the other."""

    data: Lists
    ks: tuple[int, ...]

    @classmethod
    def read(cls, path: Path, ks: Sequence[int]) -> Part:
        """Read one of the five files."""
        data = letor.read(path, sparse=False)
        if not np.array_equal(data.groups.rows, np.arange(len(data))):
            raise DataError("expected the rows of each query together", path=path)
        X = QueryMinMaxScaler().transform(np.asarray(data.X), group=data.groups.sizes)
        return cls(replace(data, items=X), tuple(ks))

    @classmethod
    def join(cls, parts: Sequence[Part]) -> Part:
        """Several parts as one."""
        return cls(join([part.data for part in parts]), parts[0].ks)

    @property
    def X(self) -> Vector:
        """Features, (rows, features)."""
        return np.asarray(self.data.X)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each query."""
        return self.data.groups.sizes

    @cached_property
    def _evaluator(self) -> Evaluator:
        names = [f"P@{k}" for k in self.ks]
        return Evaluator(self.data.y, self.data.groups, names, docid=self.data.docid)

    def precision(self, scores: Vector) -> dict[int, Vector]:
        """Precision@k of each query, of which those without relevant rows have 0."""
        evaluation = self._evaluator(scores)
        return {k: evaluation[f"P@{k}"] for k in self.ks}


@dataclass(frozen=True, eq=False)
class PrecisionFold(Fold[Part]):
    """A fold, and the models that are trained on it."""

    def choose(self, weights: Sequence[Vector], k: int) -> int:
        """Which weights have the best precision@k in validation; of equals, the first."""
        part = self.validation
        return int(np.argmax([part.precision(part.X @ w)[k].mean() for w in weights]))

    def latent(self, k: int, C: float, start: str, seed: int = 0) -> LatentSVMRanker:
        """The latent SVM for precision@k."""
        part = self.validation
        ranker = LatentSVMRanker(
            f"precision@{k}", C, start=start, ties=0, n_jobs=1, random_state=seed
        )
        return ranker.fit(
            *(self.train.X, self.train.data.y),
            group=self.train.sizes,
            eval_set=(part.X, part.data.y),
            eval_group=part.sizes,
        )

    def rank_svm(self) -> list[Vector]:
        """Weights that order pairs of each query, for each C."""
        return self._path(SVMRanker("roc", n_jobs=1), RANK_CS)

    def ramp(self, k: int) -> list[Vector]:
        """Weights that minimise the ramp bound of precision@k, for each C."""
        return self._path(SVMRanker(f"precision@{k}", bound="ramp", n_jobs=1), RAMP_CS)

    def _path(self, ranker: SVMRanker, Cs: Sequence[float]) -> list[Vector]:
        train = self.train
        path = ranker.path(train.X, train.data.y, Cs, group=train.sizes)
        return [one.coef_ for one in path]

    def classifiers(self) -> list[Vector]:
        """Weights of the classifiers among which the initial one was chosen by its accuracy."""
        relevant = (self.train.data.y >= 1).astype(float)
        weight = np.repeat(1.0 / self.train.sizes, self.train.sizes)
        return [
            ClassificationRanker(C)
            .fit(
                *(self.train.X, relevant),
                group=self.train.sizes,
                sample_weight=weight / weight.mean(),
            )
            .coef_
            for C in CLASSIFIER_CS
        ]


def read_folds(folder: Path, ks: Sequence[int] = KS) -> list[PrecisionFold]:
    """The five folds of the collection: fold 1 trains on S1 to S3, chooses on S4, tests on S5."""
    parts = [Part.read(folder / f"S{n + 1}.txt", ks) for n in range(N_PARTS)]
    return [PrecisionFold(Part.join(training), *others) for training, *others in turns(parts)]


def run(
    folder: Path,
    *,
    ks: Sequence[int] = KS,
    Cs: Sequence[float] = CS,
    n_folds: int = N_PARTS,
    n_random: int = N_RANDOM,
    names: Sequence[str] = NAMES,
    cache: Path | None = None,
) -> dict[str, Any]:
    """The models of these names on all folds, in the files S1.txt to S5.txt of ``folder``.

    What a fold gave is kept in the folder ``cache``.
    """
    begun = time.monotonic()
    kept, how = Kept(cache), {"ks": ks, "Cs": Cs, "n_random": n_random, "names": names}
    folds = read_folds(folder, ks)[:n_folds]
    found = [
        kept.record([folder.name, number, how], partial(run_fold, fold, number, **how))
        for number, fold in enumerate(folds)
    ]
    values = {
        name: {k: [np.array(one["values"][name][str(k)]) for one in found] for k in ks}
        for name in names
    }
    perfect = {
        k: float(np.mean([f.test.precision(f.test.data.y)[k].mean() for f in folds])) for k in ks
    }
    return {
        "collection": folder.name.upper(),
        "ks": list(ks),
        "Cs": list(Cs),
        "queries": int(sum(len(fold.test.sizes) for fold in folds)),
        "folds": n_folds,
        "perfect": perfect,
        "judged": {name: {k: _judge(values, name, k) for k in ks} for name in names},
        "chosen": {
            name: {k: [one["chosen"][name][str(k)] for one in found] for k in ks}
            for name in names
            if name != START
        },
        "fits": [fit for one in found for fit in one["fits"]],
        "seconds": time.monotonic() - begun,
    }


def run_fold(
    fold: PrecisionFold,
    number: int,
    *,
    ks: Sequence[int],
    Cs: Sequence[float],
    n_random: int,
    names: Sequence[str],
) -> dict[str, Any]:
    """The precision of each test query, what was chosen, and how each fit ended."""
    values: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    chosen: dict[str, dict[str, float]] = {name: {} for name in names}
    fits: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*queries have rows of one class only")
        for category in (ConvergenceWarning, NothingLearnedWarning):
            warnings.simplefilter("ignore", category)  # the records say so
        rivals = {
            CLASSIFIER: (CLASSIFIER_CS, fold.classifiers()),
            PAIRS: (RANK_CS, fold.rank_svm()),
        }
        for k in ks:
            rankers = [fold.latent(k, C, "classifier") for C in Cs]
            fits += [_record(r, number, k, "classifier") for r in rankers]
            for seed in range(n_random):
                random = (fold.latent(k, C, "random", n_random * number + seed) for C in Cs)
                fits += [_record(r, number, k, "random") for r in random]
            candidates = {
                LATENT: (Cs, [ranker.coef_ for ranker in rankers]),
                **({RAMP: (RAMP_CS, fold.ramp(k))} if RAMP in names else {}),
                START: ((np.nan,), [rankers[0].start_coef_]),
                **rivals,
            }
            for name, (grid, weights) in candidates.items():
                best = fold.choose(weights, k)
                precision = fold.test.precision(fold.test.X @ weights[best])[k]
                values[name][str(k)], chosen[name][str(k)] = precision.tolist(), grid[best]
            study.say(f"fold {number + 1}, P@{k}")
    return {"values": values, "chosen": chosen, "fits": fits}


def _record(ranker: LatentSVMRanker, fold: int, k: int, start: str) -> dict[str, Any]:
    return {
        "fold": fold,
        "k": k,
        "C": float(ranker.C),
        "start": start,
        "rounds": ranker.n_iter_,
        "status": ranker.result_.status,
        "norm": float(np.linalg.norm(ranker.coef_)),
        "objective/C": ranker.result_.value / float(ranker.C),
    }


def _judge(values: Mapping[str, Mapping[int, list[Vector]]], name: str, k: int) -> dict[str, Any]:
    """Mean and deviation over folds, and the latent SVM against this model, query by query."""
    means = [float(fold.mean()) for fold in values[name][k]]
    ours, theirs = (np.concatenate(values[one][k]) for one in (LATENT, name))
    wins, losses, _ = wins_losses(ours, theirs)
    return {
        "mean": float(np.mean(means)),
        "sd": float(np.std(means, ddof=1)) if len(means) > 1 else 0.0,
        "folds": means,
        "wins": wins,
        "losses": losses,
        "p": wilcoxon(ours, theirs),
    }


# --- Tables ---------------------------------------------------------------------------------------

ZERO = 1e-6  # a norm below it is that of w = 0, up to rounding


def table(results: Mapping[str, Any]) -> str:
    """The results beside the paper's as Markdown."""
    ks = results["ks"]
    precision = [
        [
            name,
            *(f"{_three(row['mean'])} ± {_three(row['sd'])}" for row in judged.values()),
            *(_three(PAPER[name][k]) if name in PAPER else "" for k in ks),
        ]
        for name, judged in results["judged"].items()
    ]
    perfect = ["perfect ranking", *map(_three, results["perfect"].values()), *("" for _ in ks)]
    against = [
        [name, *(f"{row['wins']}/{row['losses']}, p = {row['p']:.2g}" for row in judged.values())]
        for name, judged in results["judged"].items()
        if name != LATENT
    ]
    names = [f"P@{k}" for k in ks]
    return "\n\n".join(
        [
            f"{results['collection']}, {results['queries']} test queries, "
            f"{results['folds']} folds: mean and deviation over the folds.",
            markdown(
                ["", *names, f"paper, OHSUMED: {names[0]}", *names[1:]],
                [*precision, perfect],
            ),
            "Queries on which the latent SVM wins and loses, with Wilcoxon's p:",
            markdown(["against", *names], against),
            "How often an end of the range of C was chosen: " + _ends(results) + ".",
            "Rounds of CCCP from the classifier, mean over the folds (least to most):",
            markdown(["C", *names], _over_C(results, "classifier", _rounds)),
            "From random completions, how many runs end at w = 0:",
            markdown(["C", *names], _over_C(results, "random", _zeros)),
        ]
    )


def _ends(results: Mapping[str, Any]) -> str:
    """For each model, how often it chose the least and the largest C."""
    grids = {LATENT: results["Cs"], RAMP: RAMP_CS, CLASSIFIER: CLASSIFIER_CS, PAIRS: RANK_CS}
    said = []
    for name in results["chosen"]:
        grid = grids[name]
        chosen = [C for values in results["chosen"][name].values() for C in values]
        said.append(
            f"{name} {chosen.count(min(grid))} times the least and {chosen.count(max(grid))} times "
            f"the largest of {len(grid)}, in {len(chosen)} cases"
        )
    return "; ".join(said)


def _over_C(
    results: Mapping[str, Any], start: str, show: Callable[[list[dict[str, Any]]], str]
) -> list[list[str]]:
    """A row for each C, with a cell for the fits of each k."""

    def cell(C: float, k: int) -> str:
        wanted = (start, C, k)
        return show([f for f in results["fits"] if (f["start"], f["C"], f["k"]) == wanted])

    return [[f"{C:g}", *(cell(C, k) for k in results["ks"])] for C in results["Cs"]]


def _rounds(fits: list[dict[str, Any]]) -> str:
    rounds = [fit["rounds"] for fit in fits]
    zeros = sum(fit["norm"] < ZERO for fit in fits)
    ended = f"; {zeros} at w = 0" if zeros else ""
    return f"{np.mean(rounds):.1f} ({min(rounds)} to {max(rounds)}){ended}"


def _zeros(fits: list[dict[str, Any]]) -> str:
    return f"{sum(fit['norm'] < ZERO for fit in fits)} of {len(fits)}"


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
