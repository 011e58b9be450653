"""The protocol of Yue et al. (2007): trials over fifty topics, and the runs of TREC 2003 Robust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data import trec
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix
from didyma.errors import DataError
from didyma.metrics import Evaluator, RunEvaluator
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler
from didyma.report.table import markdown
from reproductions import study
from reproductions.svmmap_models import (
    CS,
    REFERENCE,
    Fits,
    Model,
    Vector,
    against,
    completed,
    indicators,
    judge,
    sensitive_region,
    three,
)

Split = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

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


Setting = tuple[str, Sequence[tuple[Collection, str | None]]]


def run_settings(
    settings: Sequence[Setting], models: Sequence[Model], n_trials: int, seed: int
) -> dict[str, Any]:
    """All trials of each setting: a title, collections, and which function each leaves out."""
    found: dict[str, Any] = {"trials": n_trials, "seed": seed, "settings": []}
    for title, collections in settings:
        setting: dict[str, Any] = {"title": title, "collections": {}}
        for collection, without in collections:
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


def reproduce_robust(
    folder: Path, models: Sequence[Model], n_trials: int, seed: int
) -> dict[str, Any]:
    """Both collections, with all functions and without the best."""
    collections = read_collections(folder)
    settings: list[Setting] = [
        ("All functions", [(collection, None) for collection in collections]),
        ("Without the best function", [(each, each.best[0]) for each in collections]),
    ]
    return run_settings(settings, models, n_trials, seed)


# --- Tables ---------------------------------------------------------------------------------------

# MAP and W/L for TREC 9 and TREC 10: Tables 7 and 10 with all submissions, 8 and 11 without the
# best, 6 and 9 with the functions of Indri.
PAPER: dict[str, dict[str, tuple[str, ...]]] = {
    "All functions": {
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
    "Without the best function": {
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
    "Words, stems, stems without stop words": {
        "SVMmap": (".242", "", ".236", ""),
        "SVMroc": (".237", "29/21", ".234", "24/26"),
        "SVMacc": (".147", "47/3 **", ".155", "47/3 **"),
        "SVMacc2": (".219", "39/11 **", ".207", "43/7 **"),
        "SVMacc3": (".113", "49/1 **", ".153", "45/5 **"),
        "SVMacc4": (".155", "48/2 **", ".155", "48/2 **"),
        "best function": (".204", "39/11 **", ".181", "37/13 **"),
        "2nd best": (".199", "38/12 **", ".174", "43/7 **"),
        "3rd best": (".188", "34/16 **", ".174", "38/12 **"),
    },
}
PLACES = ("best function", "2nd best", "3rd best")


def trial_tables(found: Mapping[str, Any]) -> str:
    """One table for each setting, ours on the left, the paper's on the right."""
    texts = [f"{found['trials']} trials, seed {found['seed']}."]
    for setting in found["settings"]:
        collections = setting["collections"]
        header = ["", *(text for name in collections for text in (f"{name} MAP", "W/L"))]
        paper = PAPER.get(setting["title"], {})
        header += ["paper: TREC 9 MAP", "W/L", "TREC 10 MAP", "W/L"] if paper else []
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
            ours = [text for row in rows for text in (three(row["MAP"]), against(row))]
            if name == REFERENCE:
                ours[1::2] = [""] * len(rows)
            theirs = paper.get(name.split(":")[0], ("",) * 4 if paper else ())
            body.append([name, *ours, *theirs])
        texts.append(f"**{setting['title']}**\n\n{markdown(header, body)}")
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
