"""Variants of the latent perceptrons of Haponchyk and Moschitti (2019) that the paper leaves open.

    python -m reproductions.latent_reranking_variants --write

On WikiQA's training and dev questions only: four of five training questions to learn from, the
fifth to choose C and the epoch on, all dev questions to judge. No test question is read. The
features are the paper's. Variants: questions visited in the order of the file, weights to begin
with, position weights v_j = j^−a with a chosen as C is, and questions whose candidates are of one
class only. These have no ranking with a loss, so that no structural model can learn from them; what
can be tried is a classifier.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.texts import qa
from didyma.learning.monitor import Monitor
from didyma.learning.perceptron import Perceptron, PerceptronState
from didyma.metrics import evaluate, wilcoxon
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.feature_maps import Positional
from didyma.ranking.latent_problem import LatentRankingProblem
from didyma.ranking.losses import AveragePrecision
from didyma.report.table import markdown
from didyma.text import ExtendedFeatures, TextFeatures
from reproductions import study
from reproductions.latent_reranking import PAPER_FEATURES

Vector = NDArray[np.float64]

CS = (1.0, 10.0, 100.0, 1000.0)
EXPONENTS = (0.25, 0.5, 1.0, 2.0)
CLASSIFIER_CS = (0.1, 1.0, 10.0, 100.0)
EPOCHS, N_SEEDS = 50, 3
NTH = 5  # one training question of so many chooses
SECTION = "latent_reranking_variants"
PUBLISHED = "as published, shuffled"


class Questions:
    """Questions to learn from, to choose on and to judge by, with scaled features."""

    def __init__(self, folder: Path) -> None:
        train, dev = (qa.read_wikiqa(folder / f"{name}.txt") for name in ("train", "dev"))
        reader = TextFeatures([ExtendedFeatures()], "english").fit(train)
        at = [reader.names.index(name) for name in PAPER_FEATURES]
        parts = [part.with_items(reader.transform(part)[:, at]) for part in (train, dev)]
        mixed = [np.flatnonzero(part.mixed) for part in parts]
        chooses = np.arange(len(train.groups)) % NTH == 0
        learns = np.flatnonzero(~chooses)
        everything = parts[0].select_lists(learns)
        self.train = parts[0].select_lists(np.intersect1d(learns, mixed[0]))
        self.choose = parts[0].select_lists(np.intersect1d(np.flatnonzero(chooses), mixed[0]))
        self.dev = parts[1].select_lists(mixed[1])
        mean, deviation = self.train.X.mean(axis=0), self.train.X.std(axis=0)
        self.train, self.choose, self.dev, self.all = (
            part.with_items((part.X - mean) / np.where(deviation > 0, deviation, 1.0))
            for part in (self.train, self.choose, self.dev, everything)
        )

    def classifier(self, part: Lists) -> tuple[float, Vector]:
        """AP on the choosing questions and weights of the best linear classifier of a part."""
        fits = [ClassificationRanker(C).fit(part).coef_ for C in CLASSIFIER_CS]
        return max(((_ap(self.choose, w).mean(), w) for w in fits), key=lambda fit: fit[0])

    def perceptron(
        self, inference: str, C: float, exponent: float, seed: int | None, start: Vector | None
    ) -> tuple[float, Vector]:
        """AP on the choosing questions and weights of the best epoch."""
        sizes = self.train.groups.sizes
        problem = LatentRankingProblem(
            *(self.train.X, self.train.y, self.train.groups, AveragePrecision()),
            Positional(tuple((1.0 + np.arange(sizes.max())) ** -exponent)),
            inference=inference,
            loss_scale=C,
            online=True,
        )
        monitor = Monitor({"": self.choose}, "AP", None, None)
        first = None if start is None else PerceptronState(start)
        Perceptron(EPOCHS, seed, C).solve(problem, start=first, callback=monitor)
        assert monitor.best_w is not None
        return float(_ap(self.choose, monitor.best_w).mean()), monitor.best_w

    def best(
        self,
        inference: str,
        exponents: Sequence[float] = (1.0,),
        seed: int | None = 0,
        start: Vector | None = None,
    ) -> tuple[dict[str, Any], Vector]:
        """What was chosen, and AP of each dev question."""
        fits = [
            (*self.perceptron(inference, C, exponent, seed, start), {"C": C, "a": exponent})
            for C in (CS[:1] if inference == "sort" else CS)
            for exponent in exponents
        ]
        _, w, chosen = max(fits, key=lambda fit: fit[0])
        return chosen, _ap(self.dev, w)


def _ap(part: Lists, w: Vector) -> Vector:
    values = evaluate(part.X @ w, part.y, part.groups, "AP")["AP"]
    return np.asarray(values, dtype=np.float64)


def run(folder: Path) -> dict[str, Any]:
    """All variants of the three perceptrons, each from some seeds where these matter."""
    questions = Questions(folder)
    start = questions.classifier(questions.train)[1]
    variants: Mapping[str, Mapping[str, Any]] = {
        PUBLISHED: {},
        "in file order": {"seed": None},
        "begun at a classifier": {"start": start},
        "a of v_j = j^−a chosen": {"exponents": EXPONENTS},
    }
    found: dict[str, Any] = {}
    for name, inference in (("LSP", "sort"), ("LSP-AP", "greedy"), ("LSP-AP*", "exact")):
        for title, options in variants.items():
            seeds = range(1 if "seed" in options else N_SEEDS)
            runs = [questions.best(inference, **{"seed": seed, **options}) for seed in seeds]
            found[f"{name}, {title}"] = {
                "AP": np.mean([ap for _, ap in runs], axis=0).tolist(),
                "seeds": [float(ap.mean()) for _, ap in runs],
                "chosen": [chosen for chosen, _ in runs],
                "against": f"{name}, {PUBLISHED}",
            }
            study.say(f"{name}, {title}: {found[f'{name}, {title}']['seeds']}")
    for title, part in (("mixed questions", questions.train), ("all questions", questions.all)):
        ap = _ap(questions.dev, questions.classifier(part)[1])
        found[f"classifier, {title}"] = {
            "AP": ap.tolist(),
            "seeds": [float(ap.mean())],
            "chosen": [],
            "against": "classifier, mixed questions",
        }
    sizes = {name: len(getattr(questions, name).groups) for name in ("train", "choose", "dev")}
    return {"sizes": sizes, "found": found}


def table(results: Mapping[str, Any]) -> str:
    """Means over seeds, and each variant against the published procedure."""
    rows = []
    for name, row in results["found"].items():
        reference = results["found"][row["against"]]
        ap, other = np.array(row["AP"]), np.array(reference["AP"])
        compared = (
            ["", ""]
            if name == row["against"]
            else [f"{100 * (ap.mean() - other.mean()):+.2f}", f"{wilcoxon(ap, other):.2g}"]
        )
        exponents = sorted({f"{one['a']:g}" for one in row["chosen"]})
        rows.append([name, study.percent(row["seeds"]), *compared, ", ".join(exponents)])
    sizes = results["sizes"]
    return (
        f"MAP in per cent on {sizes['dev']} dev questions of WikiQA; {sizes['train']} training "
        f"questions to learn from, {sizes['choose']} to choose on; up to {EPOCHS} epochs.\n\n"
        + markdown(["", "dev MAP", "less published", "p", "a"], rows)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    return study.Arguments(__doc__, "json").run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Print the table, and write what was asked for."""
    results = run(options.data / "wikiqa")
    study.publish(options, {SECTION: table(results)}, results)


if __name__ == "__main__":
    raise SystemExit(main())
