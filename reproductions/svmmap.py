"""Yue, Finley, Radlinski and Joachims (2007), "A support vector method for optimizing average
precision": their comparison of SVMs that learn to combine retrieval functions.

    python -m reproductions.svmmap                  everything, about 45 minutes on one core
    python -m reproductions.svmmap --part mq2008    one of the two parts
    python -m reproductions.svmmap --write          put the tables into docs/RESULTS.md

Part "robust" follows the paper's protocol on the runs of the TREC 2003 Robust track. Part "mq2008"
asks the same questions of the five folds of LETOR's MQ2008.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from didyma.data import letor, trec
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix
from didyma.errors import DataError, NothingLearnedWarning
from didyma.metrics import Evaluator, RunEvaluator, wilcoxon, wins_losses
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from reproductions import study

Vector = NDArray[np.float64]
Split = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

# --- Models -------------------------------------------------------------------------------------

CS = tuple(10.0**k for k in range(-3, 4))  # for indicators, of which a row has dozens
CS_OF_FEATURES = tuple(10.0**k for k in range(-3, 6))  # for a few features between 0 and 1
BIAS = 10.0

Fit = Callable[[Matrix, Vector, NDArray[np.int64], Sequence[float]], NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """A row of the tables: how rows are described, and how weights are learned from them.

    ``fit(X, y, sizes, Cs)`` returns weights of shape (number of Cs, number of features), given the
    rows of all training queries one query after the other.
    """

    name: str
    features: str
    fit: Fit


def structural(loss: str) -> Fit:
    """The structural SVM of the paper for one loss, for all C by continuation."""

    def fit(
        X: Matrix, y: Vector, sizes: NDArray[np.int64], Cs: Sequence[float]
    ) -> NDArray[np.float64]:
        rankers = SVMRanker(loss, bound="hinge", n_jobs=1).path(X, y, Cs, group=sizes)
        return np.array([ranker.coef_ for ranker in rankers])

    return fit


def classification(cost_ratio: float | str = 1.0, loss: str = "hinge") -> Fit:
    """A linear SVM that tells relevant rows from others.

    A conventional SVM does not penalise the intercept. `LinearSVC` does, as the weight of a
    constant feature; a large constant makes that penalty small.
    """

    def fit(
        X: Matrix, y: Vector, sizes: NDArray[np.int64], Cs: Sequence[float]
    ) -> NDArray[np.float64]:
        constant = np.full((X.shape[0], 1), BIAS, dtype=X.dtype)
        rows = sp.hstack([X, constant], "csr") if sp.issparse(X) else np.hstack([X, constant])
        tol = 0.1 if loss == "hinge" else 0.01  # the defaults of LIBLINEAR's two solvers
        learner = {"cost_ratio": cost_ratio, "loss": loss, "tol": tol, "max_iter": 1000}
        rankers = (ClassificationRanker(C, **learner).fit(rows, y, group=sizes) for C in Cs)
        return np.array([ranker.coef_[:-1] for ranker in rankers])

    return fit


YUE_MODELS = (
    Model("SVMmap", "scores", structural("ap")),
    Model("SVMroc", "scores", structural("roc")),
    Model("SVMacc", "scores", classification()),
    Model("SVMacc2", "scores", classification(cost_ratio="balanced")),
    Model("SVMacc3", "percentiles", classification()),
    Model("SVMacc4", "minmax", classification()),
    Model("SVMacc, squared hinge", "scores", classification(loss="squared_hinge")),
)
# What becomes of a document that a function did not retrieve is left open: above, percentiles and
# extremes are those of the retrieved documents; here all candidates of a topic take part.
ROBUST_MODELS = (
    *YUE_MODELS[:6],
    Model("SVMacc3, all candidates", "percentiles of all", classification()),
    Model("SVMacc4, all candidates", "minmax of all", classification()),
    *YUE_MODELS[6:],
)
LETOR_MODELS = (
    *YUE_MODELS[:2],
    Model("SVMndcg", "scores", structural("ndcg")),
    Model("SVMndcg@10", "scores", structural("ndcg@10")),
    *YUE_MODELS[2:],
    Model("SVMmap, features of acc4", "minmax", structural("ap")),
)
REFERENCE = YUE_MODELS[0].name


class Fits:
    """Chooses C for each model, and remembers what was chosen and what did not converge."""

    def __init__(self) -> None:
        self.chosen: dict[str, list[float]] = {}
        self.seconds: dict[str, float] = {}
        self.unfinished: dict[str, int] = {}

    def best(
        self,
        model: Model,
        training: tuple[Matrix, Vector, NDArray[np.int64]],
        Cs: Sequence[float],
        validate: Callable[[Vector], float],
    ) -> Vector:
        """Weights of the C (the smallest among equals) that validates best."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            warnings.filterwarnings("ignore", ".*queries have rows of one class only")
            warnings.simplefilter("ignore", NothingLearnedWarning)  # validation will tell
            begun = time.process_time()
            weights = model.fit(*training, Cs)
        spent = time.process_time() - begun
        self.seconds[model.name] = self.seconds.get(model.name, 0.0) + spent
        limits = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        self.unfinished[model.name] = self.unfinished.get(model.name, 0) + limits
        best = int(np.argmax([validate(w) for w in weights]))
        self.chosen.setdefault(model.name, []).append(Cs[best])
        return weights[best]

    def summary(self) -> dict[str, Any]:
        """How often each C was chosen, how many fits stopped at their limit, and CPU seconds."""
        return {
            "chosen": {
                name: {f"{C:g}": values.count(C) for C in sorted(set(values))}
                for name, values in self.chosen.items()
            },
            "unfinished": self.unfinished,
            "seconds": self.seconds,
        }


# --- Features -----------------------------------------------------------------------------------


def sensitive_region(scores: NDArray[Any], n_topics: int) -> Vector:
    """Scores of retrieval functions on a scale from 0 to 1 that is even in the logarithm of rank.

    With r(f) the number of documents a topic, on average over the collection, whose score is at
    least f,  u(f) = 1 − log max(r(f), 1) / log max r.  Being monotone, u turns even thresholds
    into fifty thresholds of f itself, the closer together the nearer to the top of the ranking.
    NaN (not retrieved) stays. Labels are not looked at.

    >>> sensitive_region(np.array([[4.0], [3.0], [2.0], [1.0], [np.nan]]), 1).round(2).ravel()
    array([1.  , 0.5 , 0.21, 0.  ,  nan])
    """
    scaled = np.full(scores.shape, np.nan)
    for column, values in zip(scaled.T, scores.T):
        present = ~np.isnan(values)
        ascending = np.sort(values[present])
        rank = len(ascending) - np.searchsorted(ascending, values[present], side="left")
        depth = np.maximum(rank / n_topics, 1)
        column[present] = 1 - np.log(depth) / max(np.log(depth.max(initial=1)), 1e-9)
    return scaled


def completed(scores: NDArray[Any], sizes: NDArray[np.int64]) -> Vector:
    """Scores in which documents that were not retrieved have 0, or their topic's lowest below it.

    >>> completed(np.array([[2.0], [np.nan], [-1.0], [np.nan]]), np.array([2, 2])).ravel()
    array([ 2.,  0., -1., -1.])
    """
    filled = np.array(scores, dtype=np.float64)
    starts = np.cumsum(sizes) - sizes
    lowest = np.minimum(np.fmin.reduceat(filled, starts), 0.0)  # of NaN alone it is NaN
    return np.where(np.isnan(filled), np.repeat(np.nan_to_num(lowest), sizes, axis=0), filled)


def indicators(scaled: NDArray[Any]) -> sp.csr_array:
    """Fifty indicators for each column of numbers between 0 and 1; NaN is above no threshold."""
    return ScoreBinner(50, "unit").fit_transform(scaled.astype(np.float32))


# --- The paper's protocol on TREC 2003 Robust -----------------------------------------------------

N_TRAIN, N_VALIDATION, N_TOPICS, BLOCK = 10, 5, 50, 10
NEW_TOPICS = range(601, 651)


def splits(n_trials: int, seed: int) -> Iterator[Split]:
    """Training, validation and test topics of each trial, as numbers below 50.

    Trials come in tens. Ten windows, each five topics further along one random circle of all
    topics, use every topic twice for training, once for validation and seven times for testing.
    """
    random = np.random.default_rng(seed)
    for trial in range(n_trials):
        if trial % BLOCK == 0:
            circle = random.permutation(N_TOPICS)
        ordered = np.roll(circle, -(trial % BLOCK) * (N_TOPICS // BLOCK))
        yield tuple(np.split(ordered, [N_TRAIN, N_TRAIN + N_VALIDATION]))  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class Collection:
    """Fifty topics, the documents that any run retrieved for them, and the runs' own results.

    A topic's average precision is that of trec_eval for the first 1,000 documents: relevant
    documents that no run retrieved count as well.
    """

    name: str
    data: Lists
    n_relevant: Vector
    functions: dict[str, Vector]

    @classmethod
    def join(cls, name: str, runs: Sequence[trec.Run], qrels: trec.Qrels) -> Collection:
        """The collection of all topics in ``qrels``."""
        data = trec.join(runs, qrels, missing=np.nan)
        evaluator = RunEvaluator(qrels, "AP@1000")
        if not np.array_equal(evaluator.queries, data.groups.names):
            raise DataError(f"some of the {name} have no document in any run", field="qid")
        functions = {run.tag: evaluator(run)["AP@1000"] for run in runs}
        relevant = (qrels.qid[:, None] == evaluator.queries) & (qrels.relevance >= 1)[:, None]
        return cls(name, data, relevant.sum(axis=0).astype(float), functions)

    @cached_property
    def features(self) -> dict[str, sp.csr_array]:
        """Indicators of the scores as they are, of percentiles and of min-max scaled scores."""
        scores, sizes = self.data.X, self.data.groups.sizes
        scalers = {"percentiles": QueryPercentileScaler(), "minmax": QueryMinMaxScaler()}
        readings = {"": scores, " of all": completed(scores, sizes)}
        return {
            "scores": indicators(sensitive_region(scores, len(sizes))),
            **{
                f"{name}{reading}": indicators(scaler.fit_transform(given, group=sizes))
                for name, scaler in scalers.items()
                for reading, given in readings.items()
            },
        }

    @property
    def best(self) -> list[str]:
        """The functions, best first."""
        return sorted(self.functions, key=lambda tag: -self.functions[tag].mean())

    def rows(self, topics: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of some topics, one topic after the other."""
        starts = self.data.groups.starts
        return np.concatenate([np.arange(starts[t], starts[t + 1]) for t in topics])

    def average_precision(self, topics: NDArray[np.int64], scores: Vector) -> Vector:
        """AP of each topic when its rows, which are `rows` of the topics, have these scores."""
        ends = np.cumsum(self.data.groups.sizes[topics])[:-1]
        return np.array([self._judge(t, s) for t, s in zip(topics, np.split(scores, ends))])

    def _judge(self, topic: int, scores: Vector) -> float:
        evaluator, share = self._evaluators[topic]
        return share * float(evaluator(scores)["AP@1000"][0])

    @cached_property
    def _evaluators(self) -> list[tuple[Evaluator, float]]:
        """For each topic its evaluator, and the share of relevant documents that it knows."""
        found = []
        for topic in range(len(self.n_relevant)):
            one = self.data.select(self.rows(np.array([topic])))
            share = np.sum(one.y >= 1) / self.n_relevant[topic]
            found.append((Evaluator(one.y, one.groups, "AP@1000", docid=one.docid), float(share)))
        return found


def read_collections(folder: Path) -> list[Collection]:
    """The 50 old and the 50 new topics of the track."""
    runs = [trec.read_run(path) for path in sorted((folder / "runs").glob("*.gz"))]
    if not runs:
        raise DataError("expected runs (*.gz)", path=folder / "runs")
    qrels = trec.read_qrels(folder / "qrels.txt")
    new = np.isin(qrels.qid, [str(topic) for topic in NEW_TOPICS])
    collections = []
    for name, mask in (("old topics", ~new), ("new topics", new)):
        judged = trec.Qrels(qrels.qid[mask], qrels.docid[mask], qrels.relevance[mask])
        collections.append(Collection.join(name, runs, judged))
        if (found := len(collections[-1].n_relevant)) != N_TOPICS:
            raise DataError(f"expected {N_TOPICS} {name}, found {found}", path=folder)
    return collections


def run_trials(
    collection: Collection,
    without: str | None,
    models: Sequence[Model],
    n_trials: int,
    seed: int,
) -> tuple[dict[str, Vector], dict[str, Any]]:
    """AP of each model for each topic, averaged over the trials that test it."""
    tags = collection.data.feature_names or ()
    kept = np.repeat([tag != without for tag in tags], 50)
    features = {model.features: collection.features[model.features] for model in models}
    if without is not None:
        features = {name: X[:, kept] for name, X in features.items()}
    y, sizes = collection.data.y, collection.data.groups.sizes
    total = {model.name: np.zeros(N_TOPICS) for model in models}
    times = np.zeros(N_TOPICS)
    fits = Fits()
    for trial, (train, validation, test) in enumerate(splits(n_trials, seed)):
        times[test] += 1
        rows = [collection.rows(topics) for topics in (train, validation, test)]
        for model in models:
            X, X_validation, X_test = (features[model.features][part] for part in rows)

            def validate(w: Vector, X: Matrix = X_validation, topics: Any = validation) -> float:
                return float(collection.average_precision(topics, X @ w).mean())

            w = fits.best(model, (X, y[rows[0]], sizes[train]), CS, validate)
            total[model.name][test] += collection.average_precision(test, X_test @ w)
        study.say(f"{collection.name}, {kept.sum() // 50} functions, trial {trial + 1}")
    tested = times > 0
    return {name: ap[tested] / times[tested] for name, ap in total.items()} | {
        tag: collection.functions[tag][tested] for tag in collection.best[:3]
    }, fits.summary()


def reproduce_robust(
    folder: Path, models: Sequence[Model], n_trials: int, seed: int
) -> dict[str, Any]:
    """Both collections, with all functions and without the best."""
    collections = read_collections(folder)
    found: dict[str, Any] = {"trials": n_trials, "seed": seed, "settings": []}
    for drop in (False, True):
        setting: dict[str, Any] = {"without best": drop, "collections": {}}
        for collection in collections:
            best = collection.best
            without = best[0] if drop else None
            values, fits = run_trials(collection, without, models, n_trials, seed)
            setting["collections"][collection.name] = {
                "functions": {tag: float(ap.mean()) for tag, ap in collection.functions.items()},
                "rows": len(collection.data),
                "judged": {name: judge(ap, values[REFERENCE]) for name, ap in values.items()},
                "fits": fits,
                "AP": {name: ap.tolist() for name, ap in values.items()},
            }
        found["settings"].append(setting)
    return found


# --- MQ2008 ---------------------------------------------------------------------------------------

N_FOLDS = 5
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
    parts = [Part.read(folder / f"S{k + 1}.txt") for k in range(N_FOLDS)]
    fits = Fits()
    tests = [parts[(fold + 4) % N_FOLDS] for fold in range(N_FOLDS)]
    values: dict[str, list[dict[str, Vector]]] = {model.name: [] for model in models}
    for fold, test in enumerate(tests):
        training = [parts[(fold + k) % N_FOLDS] for k in range(3)]
        validation = parts[(fold + 3) % N_FOLDS]
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


# --- Tables ---------------------------------------------------------------------------------------


def judge(values: Vector, reference: Vector) -> dict[str, Any]:
    """Mean, and the queries on which the reference wins and loses, with Wilcoxon's p-value."""
    wins, losses, ties = wins_losses(reference, values)
    return {
        "MAP": float(values.mean()),
        "wins": wins,
        "losses": losses,
        "ties": ties,
        "p": wilcoxon(reference, values),
    }


def against(row: Mapping[str, Any]) -> str:
    """Wins and losses of SVMmap against a row, with two stars where p < 0.05, as in the paper."""
    return f"{row['wins']}/{row['losses']}{' **' if row['p'] < 0.05 else ''}"


# Tables 7, 8, 10 and 11: MAP and W/L for TREC 9 and TREC 10, with all submissions and without the
# best.
PAPER: dict[bool, dict[str, tuple[str, str, str, str]]] = {
    False: {
        "SVMmap": (".290", "", ".287", ""),
        "SVMroc": (".282", "29/21", ".278", "35/15 **"),
        "SVMacc": (".213", "49/1 **", ".222", "49/1 **"),
        "SVMacc2": (".270", "34/16 **", ".261", "42/8 **"),
        "SVMacc3": (".133", "50/0 **", ".182", "46/4 **"),
        "SVMacc4": (".233", "47/3 **", ".238", "46/4 **"),
        "best function": (".280", "28/22", ".283", "29/21"),
        "2nd best": (".269", "30/20", ".251", "36/14 **"),
        "3rd best": (".266", "30/20", ".233", "36/14 **"),
    },
    True: {
        "SVMmap": (".284", "", ".288", ""),
        "SVMroc": (".274", "31/19 **", ".272", "38/12 **"),
        "SVMacc": (".215", "49/1 **", ".211", "50/0 **"),
        "SVMacc2": (".267", "35/15 **", ".258", "44/6 **"),
        "SVMacc3": (".133", "50/0 **", ".174", "46/4 **"),
        "SVMacc4": (".228", "46/4 **", ".234", "45/5 **"),
        "best function": (".280", "27/23", ".283", "31/19"),
        "2nd best": (".269", "30/20", ".251", "36/14 **"),
        "3rd best": (".266", "30/20", ".233", "35/15 **"),
    },
}
PLACES = ("best function", "2nd best", "3rd best")


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def robust_tables(found: Mapping[str, Any]) -> str:
    """One table for each setting, ours on the left, the paper's on the right."""
    texts = [f"{found['trials']} trials, seed {found['seed']}."]
    for setting in found["settings"]:
        collections = setting["collections"]
        header = ["", *(text for name in collections for text in (f"{name} MAP", "W/L"))]
        header += ["paper: TREC 9 MAP", "W/L", "TREC 10 MAP", "W/L"]
        judged = [collection["judged"] for collection in collections.values()]
        learned = [
            name for name in judged[0] if name not in next(iter(collections.values()))["functions"]
        ]
        lines = [(name, [rows[name] for rows in judged]) for name in learned]
        for place, label in enumerate(PLACES):
            tags = [list(rows)[len(learned) + place] for rows in judged]
            shown = tags[0] if len(set(tags)) == 1 else " / ".join(tags)
            lines.append((f"{label}: {shown}", [rows[tag] for rows, tag in zip(judged, tags)]))
        body = []
        for name, rows in lines:
            ours = [text for row in rows for text in (_three(row["MAP"]), against(row))]
            if name == REFERENCE:
                ours[1::2] = [""] * len(rows)
            paper = PAPER[setting["without best"]].get(name.split(":")[0], ("",) * 4)
            body.append([name, *ours, *paper])
        title = "Without the best function" if setting["without best"] else "All functions"
        texts.append(f"**{title}**\n\n{markdown(header, body)}")
    fits = [each["fits"] for s in found["settings"] for each in s["collections"].values()]
    texts.append(_seconds(fits))
    texts.append(_extremes(fits))
    return "\n\n".join(texts)


def _seconds(fits: Sequence[Mapping[str, Any]]) -> str:
    """CPU time of every model, over all trials."""
    said = [f"{name} {sum(f['seconds'][name] for f in fits):.0f}" for name in fits[0]["seconds"]]
    return f"CPU seconds of all fits, {len(CS)} values of C each: {', '.join(said)}."


def _extremes(fits: Sequence[Mapping[str, Any]]) -> str:
    """How often the ends of the range of C were chosen, and how many fits stopped at a limit."""
    said = []
    for name in fits[0]["chosen"]:
        least, most = (
            sum(f["chosen"][name].get(f"{C:g}", 0) for f in fits) for C in CS[:: len(CS) - 1]
        )
        stopped = sum(f["unfinished"][name] for f in fits)
        said.append(f"{name} {least}, {most}, {stopped}")
    return (
        "How often the least and the largest C were chosen, and how many fits stopped at their "
        f"limit, over all settings: {'; '.join(said)}."
    )


def mq2008_tables(found: Mapping[str, Any]) -> str:
    """Means over the five folds."""
    header = ["", *MEASURES, "W/L", "p", f"MAP ({found['answerable']} queries)"]
    body = []
    for name, row in found["judged"].items():
        same = name == REFERENCE
        figures = [_three(row[measure]) for measure in MEASURES]
        test = ["", ""] if same else [against(row), f"{row['p']:.2g}"]
        body.append([name, *figures, *test, _three(row["MAP of answerable"])])
    stopped = ", ".join(f"{name} {n}" for name, n in found["fits"]["unfinished"].items() if n)
    return (
        f"All {found['queries']} queries.\n\n{markdown(header, body)}\n\n"
        f"Fits that stopped at their limit: {stopped or 'none'}."
    )


TABLES = {"robust": robust_tables, "mq2008": mq2008_tables}


def select(models: Sequence[Model], names: Sequence[str] | None) -> list[Model]:
    """Models by name, all without names; SVMmap is always among them."""
    return [m for m in models if names is None or m.name in (REFERENCE, *names)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "seed", "json", parts=TABLES)
    parser.add_argument("--trials", type=int, default=50, help="tens keep the roles balanced")
    names = sorted({model.name for model in (*ROBUST_MODELS, *LETOR_MODELS)})
    parser.add_argument("--models", nargs="+", choices=names, help="SVMmap and these only")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print their tables, and write what was asked for."""
    if options.trials < 1:
        raise DataError("--trials: expected at least 1")
    results: dict[str, Any] = {}
    if "robust" in options.parts:
        models = select(ROBUST_MODELS, options.models)
        folder = options.data / "robust03"
        results["robust"] = reproduce_robust(folder, models, options.trials, options.seed)
    if "mq2008" in options.parts:
        models = select(LETOR_MODELS, options.models)
        results["mq2008"] = reproduce_mq2008(options.data / "mq2008", models)
    sections = {part: TABLES[part](found) for part, found in results.items()}
    study.publish(options, sections, results, seed=options.seed)


if __name__ == "__main__":
    raise SystemExit(main())
