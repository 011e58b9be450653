"""Training for the measure that is reported, against training for another one.

    python -m reproductions.measures                  both collections
    python -m reproductions.measures --part mq2008    or demo
    python -m reproductions.measures --write          put the tables into docs/RESULTS.md

For each of seven measures: a ranker trained for it (``bound="auto"``), and rankers trained for
average precision, ROC area and NDCG without cut-off. Whatever there is to choose (C, the feature
map, the number of rounds) is chosen by the measure on validation queries, for each ranker alike.
Collections: LETOR's MQ2008 in its own five folds, and the data of ``didyma demo``, whose topics
are dealt into five parts that take turns in the same way.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from didyma.applications.demo.candidates import retrieve
from didyma.applications.demo.corpus import language_reference
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.errors import NothingLearnedWarning
from didyma.metrics import Evaluator, t_test, wilcoxon, wins_losses
from didyma.ranking.ranker import linear_scores
from didyma.ranking.scaling import QueryStandardScaler
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from didyma.text.features import SmallFeatures, TextFeatures
from reproductions import study

N_FOLDS = 5
CS = tuple(10.0**n for n in range(6))
OTHERS = ("ap", "roc", "ndcg")
PATIENCE = 1000  # no round is skipped: of all, the best in validation is kept


@dataclass(frozen=True)
class Target:
    """A measure, the loss that trains for it, and the feature maps to choose from."""

    measure: str
    loss: str
    maps: tuple[str, ...] = ("pairwise",)


TARGETS = {
    **{
        f"P@{k}": Target(f"P@{k}", f"precision@{k}", ("pairwise", f"top@{k}"))
        for k in (1, 3, 5, 10)
    },
    **{f"nDCG@{k}": Target(f"nDCG(dcg='exp-log2')@{k}", f"ndcg@{k}") for k in (5, 10)},
    "RR": Target("RR", "rr"),
}

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fold:
    """What to train on, to choose by, and to test on."""

    train: Lists
    validation: Lists
    test: Lists

    def paths(self, loss: str, maps: Sequence[str], measure: str, Cs: Sequence[float]) -> Vector:
        """Test values of the ranker that is best in validation; of equals, the first."""
        best, chosen = -np.inf, None
        for feature_map in maps:
            ranker = SVMRanker(
                loss, feature_map=feature_map, measure=measure, patience=PATIENCE, n_jobs=1
            )
            for fitted in ranker.path(
                *(self.train.X, self.train.y, Cs),
                qid=self.train.qid,
                eval_set=(self.validation.X, self.validation.y),
                eval_qid=self.validation.qid,
            ):
                value = judge(self.validation, measure, fitted.coef_).mean()
                if value > best:
                    best, chosen = value, fitted
        assert chosen is not None
        return judge(self.test, measure, chosen.coef_)


def judge(data: Lists, measure: str, w: Vector) -> Vector:
    """The measure of each query, ranked by w."""
    evaluator = Evaluator(data.y, data.groups, measure, docid=data.docid)
    return evaluator(linear_scores(data.X, w))[evaluator.measures[0]]


def turns(parts: Sequence[Lists]) -> list[Fold]:
    """Fold 1 trains on parts 1 to 3, chooses by 4 and tests on 5; the others follow in turn."""
    folds = []
    for fold in range(N_FOLDS):
        order = [parts[(n + fold) % N_FOLDS] for n in range(N_FOLDS)]
        folds.append(Fold(_join(order[:3]), order[3], order[4]))
    return folds


def _join(parts: Sequence[Lists]) -> Lists:
    X = np.vstack([part.X for part in parts])
    y = np.concatenate([part.y for part in parts])
    return Lists(X, y, np.concatenate([part.qid for part in parts]))


def read_mq2008(data: Path) -> list[Fold]:
    """The five folds of the collection."""
    return turns(
        [letor.read(data / "mq2008" / f"S{n + 1}.txt", sparse=False) for n in range(N_FOLDS)]
    )


def read_demo(data: Path) -> list[Fold]:
    """Topics of the demonstration, dealt out at random."""
    lists = retrieve(language_reference()).lists
    features = TextFeatures([SmallFeatures()]).fit(lists)
    X = QueryStandardScaler().fit_transform(features.transform(lists), qid=lists.qid)
    candidates = lists.with_items(X, features.names)
    places = np.random.default_rng(0).permutation(len(candidates.groups)) % N_FOLDS
    return turns([candidates.select(places[candidates.groups.codes] == n) for n in range(N_FOLDS)])


COLLECTIONS = {"mq2008": read_mq2008, "demo": read_demo}


def run(folds: Sequence[Fold], names: Sequence[str], Cs: Sequence[float]) -> Any:
    """Every measure on every fold: means, and tests against the best of the other rankers."""
    begun = time.monotonic()
    found: dict[str, Any] = {}
    for name in names:
        target = TARGETS[name]
        values: dict[str, list[Vector]] = {}
        for fold in folds:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*queries have rows of one class only")
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", NothingLearnedWarning)  # validation will tell
                own = fold.paths(target.loss, target.maps, target.measure, Cs)
                values.setdefault("own", []).append(own)
                for loss in OTHERS:
                    other = fold.paths(loss, ("pairwise",), target.measure, Cs)
                    values.setdefault(loss, []).append(other)
        found[name] = compare(values)
        study.say(f"{name}: {found[name]['means']}")
    queries = int(sum(len(fold.test.groups) for fold in folds))
    return {"measures": found, "queries": queries, "seconds": time.monotonic() - begun}


def compare(values: Mapping[str, Sequence[Vector]]) -> dict[str, Any]:
    """The measure's own ranker against that of the others with the best test mean."""
    joined = {name: np.concatenate(folds) for name, folds in values.items()}
    best = max(OTHERS, key=lambda name: joined[name].mean())
    difference = joined["own"] - joined[best]
    error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
    wins, losses, _ = wins_losses(joined["own"], joined[best])
    return {
        "means": {name: round(float(each.mean()), 4) for name, each in joined.items()},
        "best": best,
        "difference": float(difference.mean()),
        "error": error,
        "within": bool(difference.mean() >= -error),
        "wins": wins,
        "losses": losses,
        "wilcoxon": wilcoxon(joined["own"], joined[best]),
        "t": t_test(joined["own"], joined[best]),
    }


TITLES = {"mq2008": "MQ2008", "demo": "The demonstration's data"}


def table(part: str, found: Mapping[str, Any]) -> str:
    """One line for each measure."""
    header = [
        "",
        "own loss",
        *OTHERS,
        "difference to the best",
        "±",
        "W/L",
        "p (t)",
        "p (Wilcoxon)",
    ]
    body = []
    for name, row in found["measures"].items():
        figures = [f"{row['means'][key]:.3f}".removeprefix("0") for key in ("own", *OTHERS)]
        body.append(
            [
                name,
                *figures,
                f"{row['difference']:+.4f} ({row['best']})",
                f"{row['error']:.4f}",
                f"{row['wins']}/{row['losses']}",
                f"{row['t']:.2g}",
                f"{row['wilcoxon']:.2g}",
            ]
        )
    met = [name for name, row in found["measures"].items() if row["within"]]
    count = f"{len(met)} of {len(found['measures'])}"
    return (
        f"**{TITLES[part]}**, {found['queries']} test queries; own loss within one standard error "
        f"of the best other, or above it, for {count} measures.\n\n{markdown(header, body)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "quick", "json", parts=COLLECTIONS)
    parser.add_argument("--measures", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print their tables, and write what was asked for."""
    Cs, n_folds = (CS[1:3], 1) if options.quick else (CS, None)
    results = {
        part: run(COLLECTIONS[part](options.data)[:n_folds], options.measures, Cs)
        for part in options.parts
    }
    sections = {f"measures_{part}": table(part, found) for part, found in results.items()}
    study.publish(options, sections, results)


if __name__ == "__main__":
    raise SystemExit(main())
