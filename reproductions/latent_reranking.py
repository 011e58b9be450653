"""Haponchyk and Moschitti (2019), "A study of latent structured prediction approaches to passage
reranking": rankings as latent variables, on WikiQA and TREC QA.

    python -m reproductions.latent_reranking                       the paper's features
    python -m reproductions.latent_reranking --features extended   many more of them
    python -m reproductions.latent_reranking --features cnn        see latent_reranking_cnn.py
    python -m reproductions.latent_reranking --part wikiqa         one of the two collections
    python -m reproductions.latent_reranking --quick               fewer values of C, epochs, folds
    python -m reproductions.latent_reranking --write               put tables and figure into docs/

Each collection has the paper's two protocols, the official split, here from several seeds, and
disjoint 5-fold cross-validation. Beside the paper's similarity features there are rows with two
nearnesses of word vectors, from the table inside the package wordllama. On WikiQA, where candidates
stand in the order of their document, the place in the document is a feature in rows of its own.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from didyma.data.lists import Lists
from didyma.data.texts import qa
from didyma.errors import DataError
from didyma.metrics import evaluate, wilcoxon, wins_losses
from didyma.ranking.classification import PolynomialRanker
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from didyma.text import ExtendedFeatures, TextFeatures, WordVectors
from reproductions import study

FIGURE = study.ROOT / "docs" / "latent_reranking.svg"

Vector = NDArray[np.float64]

CS = (1.0, 10.0, 100.0, 1000.0, 2000.0, 5000.0)
N_SEEDS = 3  # of the official split, for models that depend on them
MEASURES = {"MAP": "AP", "MRR": "RR", "P@1": "P@1"}
PARTS = ("wikiqa", "trecqa")
FEATURES = {"paper": ("paper", "paper + vectors"), "extended": ("extended",)}
VECTORS: Any = "wordllama"
# Those of the paper's section 5.1.1: tf-idf cosine, longest common substring and subsequence,
# Jaccard similarity and containment of word n-grams (n = 1, 2, 3), greedy string tiling and ESA.
# Two are replaced so that nothing need be downloaded: the concepts of ESA are the sentences given
# with one question instead of Wikipedia's articles, and a gappy subsequence kernel of the words
# stands in for the partial tree kernel.
PAPER_FEATURES = (
    *("tfidf_cosine", "word_substring", "word_subsequence", "word_tiling", "word_gappy"),
    *("word_jaccard", "pair_jaccard", "triple_jaccard"),
    *("word_coverage", "pair_coverage", "triple_coverage", "concepts"),
)
VECTOR_FEATURES = ("vector_cosine", "vector_coverage")
N_CANDIDATES = 10

# --- Data -----------------------------------------------------------------------------------------


def judge(part: Lists, scores: Vector) -> dict[str, Vector]:
    """Value of each measure for each question; equal scores are put in a random order."""
    evaluation = evaluate(scores, part.y, part.groups, MEASURES.values())
    return {name: evaluation[measure] for name, measure in MEASURES.items()}


@dataclass(frozen=True, eq=False)
class Split:
    """Questions to learn from, to choose C and the epoch on, and to test on."""

    train: Lists
    dev: Lists
    test: Lists

    def scaled(self) -> Split:
        """Features with the mean 0 and the deviation 1 on the training questions."""
        scaler = StandardScaler().fit(self.train.X)
        return Split(
            *(
                part.with_items(np.ascontiguousarray(scaler.transform(part.X)))
                for part in (self.train, self.dev, self.test)
            )
        )

    def folds(self, n_folds: int, seed: int) -> Iterator[Split]:
        """Disjoint cross-validation: fold i has the i-th share of each of the three sets."""
        random = np.random.default_rng(seed)
        parts = (self.train, self.dev, self.test)
        shares = [np.array_split(random.permutation(len(part.groups)), n_folds) for part in parts]
        for fold in range(n_folds):
            yield Split(*(part.select_lists(np.sort(s[fold])) for part, s in zip(parts, shares)))


def sample(asked: Lists, n: int, random: np.random.Generator) -> Lists:
    """At most n candidates of each, in a random order: an answer, one that is none, any others."""
    groups, chosen = asked.groups, []
    for start, stop in zip(groups.starts, groups.starts[1:]):
        order = start + random.permutation(stop - start)
        labels = asked.y[order]
        needed = [int(labels.argmax()), int(labels.argmin())]
        others = [k for k in range(len(order)) if k not in needed]
        chosen.append(random.permutation(order[needed + others[: n - 2]]))
    return asked.select(np.concatenate(chosen))


def read(part: str, folder: Path, seed: int) -> dict[str, Lists]:
    """All training questions, and those of each set that have candidates of both classes."""
    if part == "wikiqa":
        sets = {name: qa.read_wikiqa(folder / f"{name}.txt") for name in ("train", "dev", "test")}
    else:
        places = {"train": "train-all.tsv", "dev": "clean-dev", "test": "clean-test"}
        sets = {name: qa.read_trecqa(folder / place) for name, place in places.items()}
    asked = {"all": sets["train"]}
    for name, questions in sets.items():
        asked[name] = questions.select_lists(np.flatnonzero(questions.mixed))
        if not len(asked[name]):
            raise DataError(f"no {name} question has answers and other candidates", path=folder)
    if part == "trecqa":
        asked["train"] = sample(asked["train"], N_CANDIDATES, np.random.default_rng(seed))
    return asked


def describe(asked: Mapping[str, Lists], features: str) -> dict[str, Split]:
    """Columns of a set of questions, by kind; they know all training texts, but no label."""
    parts = [ExtendedFeatures(), *([WordVectors(VECTORS)] if features == "paper" else [])]
    reader = TextFeatures(parts, "english").fit(asked["all"])
    columns = {
        "paper": PAPER_FEATURES,
        "paper + vectors": (*PAPER_FEATURES, *VECTOR_FEATURES),
        "extended": reader.names,
    }
    sets = [asked[name] for name in ("train", "dev", "test")]
    matrices = [reader.transform(part) for part in sets]
    found = {}
    for kind in FEATURES[features]:
        at = [reader.names.index(name) for name in columns[kind]]
        found[kind] = Split(*(part.with_items(X[:, at]) for part, X in zip(sets, matrices)))
    return found


def with_place(split: Split) -> Split:
    """The same features, and 1 / the candidate's place in its document."""
    parts = []
    for part in (split.train, split.dev, split.test):
        place = 1 + np.arange(len(part)) - part.groups.starts[part.groups.codes]
        parts.append(part.with_items(np.column_stack([part.X, 1 / place])))
    return Split(*parts)


# --- Models ---------------------------------------------------------------------------------------

Fits = Callable[[Split, Sequence[float], int, int], Iterable[Any]]


def polynomial(split: Split, Cs: Sequence[float], epochs: int, seed: int) -> Iterator[Any]:
    """An SVM with a polynomial kernel of degree 3, on ten candidates of each question."""
    for C in Cs:
        ranker = PolynomialRanker(
            C, degree=3, n_candidates=N_CANDIDATES, max_iter=2_000_000, random_state=seed
        )
        yield ranker.fit(split.train)


def svm_map(split: Split, Cs: Sequence[float], epochs: int, seed: int) -> Iterable[Any]:
    """SVMmap, for all C by continuation."""
    ranker = SVMRanker("ap", n_jobs=1, random_state=seed)
    return ranker.path(split.train, None, Cs)


def perceptron(loss: str | None, inference: str = "exact") -> Fits:
    """Latent perceptrons, each at the epoch that is best on the development set."""

    def fits(split: Split, Cs: Sequence[float], epochs: int, seed: int) -> Iterator[Any]:
        for C in Cs if loss else Cs[:1]:  # without a loss, C does not matter
            ranker = LatentPerceptronRanker(
                loss, C, inference=inference, epochs=epochs, random_state=seed
            )
            yield ranker.fit(split.train, eval_set=split.dev)

    return fits


def latent_svm(inference: str) -> Fits:
    """Latent structural SVMs, started from a linear classifier; all positions are searched."""

    def fits(split: Split, Cs: Sequence[float], epochs: int, seed: int) -> Iterator[Any]:
        for C in Cs:
            ranker = LatentSVMRanker(
                *("ap", C),
                inference=inference,
                positions="all",
                ties=0,
                n_jobs=1,
                random_state=seed,
            )
            yield ranker.fit(split.train, eval_set=split.dev)

    return fits


MODELS: dict[str, Fits] = {
    "SVM": polynomial,
    "LSP": perceptron(None),
    "SVMmap": svm_map,
    "LSP-AP": perceptron("ap", "greedy"),
    "LSSVM-AP": latent_svm("greedy"),
    "LSP-AP*": perceptron("ap"),
    "LSSVM-AP*": latent_svm("exact"),
}
REFERENCE = "SVMmap"
WITH_POSITION = ("LSP", REFERENCE, "LSP-AP", "LSP-AP*")
SEEDED = ("SVM", "LSP", "LSP-AP", "LSP-AP*")  # draw candidates, or the order of questions
CURVES = ("LSP", "LSP-AP", "LSP-AP*")


@dataclass(frozen=True)
class Chosen:
    """The fit of a model that was best on the development set."""

    C: float
    dev: dict[str, Vector]
    test: dict[str, Vector]
    epoch: int | None
    curve: list[float]
    n_unfinished: int
    n_zero: int


def choose(fits: Fits, split: Split, Cs: Sequence[float], epochs: int, seed: int) -> Chosen:
    """Fit for each C and keep the one (the first among equals) with the best MAP on dev."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rankers = list(fits(split, Cs, epochs, seed))
    judged = [judge(split.dev, ranker.predict(split.dev)) for ranker in rankers]
    best = int(np.argmax([values["MAP"].mean() for values in judged]))
    ranker = rankers[best]
    curve = [record["AP"] for record in getattr(ranker, "history_", []) if "AP" in record]
    return Chosen(
        ranker.C,
        judged[best],
        judge(split.test, ranker.predict(split.test)),
        getattr(ranker, "best_epoch_", None),
        curve,
        sum(issubclass(warning.category, ConvergenceWarning) for warning in caught),
        sum(hasattr(ranker, "coef_") and not ranker.coef_.any() for ranker in rankers),
    )


# --- Protocols ------------------------------------------------------------------------------------


def official(
    models: Mapping[str, Fits],
    split: Split,
    Cs: Sequence[float],
    epochs: int,
    seeds: Sequence[int],
    say: Say,
) -> dict[str, Any]:
    """Train, tune and test on the three sets as they are distributed; means over the seeds."""
    scaled = split.scaled()
    chosen: dict[str, list[Chosen]] = {}
    for name, fits in models.items():
        own = seeds if name in SEEDED else seeds[:1]
        chosen[name] = [choose(fits, scaled, Cs, epochs, seed) for seed in own]
        say(f"official split, {name}")
    values = {
        name: np.mean([model.test["MAP"] for model in fitted], axis=0)
        for name, fitted in chosen.items()
    }
    return {
        name: {
            "C": [model.C for model in fitted],
            "epoch": [model.epoch for model in fitted],
            "dev": _means([model.dev for model in fitted]),
            "test": _means([model.test for model in fitted]),
            "sd": _deviation([float(model.test["MAP"].mean()) for model in fitted]),
            **against(values[name], values[REFERENCE]),
            "unfinished": sum(model.n_unfinished for model in fitted),
            "zero": sum(model.n_zero for model in fitted),
            "curve": fitted[0].curve,
            "AP": values[name].tolist(),
        }
        for name, fitted in chosen.items()
    }


def _means(runs: Sequence[Mapping[str, Vector]]) -> dict[str, float]:
    return {name: float(np.mean([run[name].mean() for run in runs])) for name in MEASURES}


def _deviation(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def cross_validation(
    models: Mapping[str, Fits],
    split: Split,
    Cs: Sequence[float],
    epochs: int,
    n_folds: int,
    seed: int,
    say: Say,
) -> dict[str, Any]:
    """Means and deviations over the folds; the test is over the questions of all folds."""
    folds = [fold.scaled() for fold in split.folds(n_folds, seed)]
    chosen: dict[str, list[Chosen]] = {}
    for name, fits in models.items():
        chosen[name] = [choose(fits, fold, Cs, epochs, seed) for fold in folds]
        say(f"{n_folds} folds, {name}")
    pooled = {
        name: np.concatenate([model.test["MAP"] for model in fitted])
        for name, fitted in chosen.items()
    }
    return {
        name: {
            "C": [model.C for model in fitted],
            "test": {
                measure: _spread([float(model.test[measure].mean()) for model in fitted])
                for measure in MEASURES
            },
            **against(pooled[name], pooled[REFERENCE]),
            "unfinished": sum(model.n_unfinished for model in fitted),
            "zero": sum(model.n_zero for model in fitted),
        }
        for name, fitted in chosen.items()
    }


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def against(values: Vector, reference: Vector) -> dict[str, Any]:
    """Questions won and lost against the reference, with Wilcoxon's p-value."""
    wins, losses, _ = wins_losses(values, reference)
    return {"wins": wins, "losses": losses, "p": wilcoxon(values, reference)}


Say = Callable[[str], None]


def reproduce_part(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """All features and protocols on one collection."""
    asked = read(part, options.data / part, options.seed)
    Cs, epochs, n_folds = (CS[1:4:2], 5, 2) if options.quick else (CS, 100, 5)
    seeds = range(options.seed, options.seed + (1 if options.quick else N_SEEDS))
    found: dict[str, Any] = {
        "seeds": list(seeds),
        "folds": n_folds,
        "questions": {name: len(asked[name].groups) for name in ("train", "dev", "test")},
        "features": {},
    }
    for kind, split in describe(asked, options.features).items():
        study.say(f"{part}, features of kind {kind}")
        described = {kind: split}
        if part == "wikiqa":
            described[f"{kind} + position"] = placed = with_place(split)
            alone = judge(placed.test, placed.test.X[:, -1])
            found["position"] = {name: float(values.mean()) for name, values in alone.items()}
        for name, features in described.items():

            def say(what: str, name: str = name) -> None:
                study.say(f"{part}, {name}, {what}")

            models = MODELS if name == kind else {model: MODELS[model] for model in WITH_POSITION}
            found["features"][name] = {
                "columns": features.train.X.shape[1],
                "official": official(models, features, Cs, epochs, seeds, say),
                "folds": cross_validation(models, features, Cs, epochs, n_folds, seeds[0], say),
            }
    return found


# --- Tables and figure ----------------------------------------------------------------------------

# Table 1, dev and test: MAP, MRR, P@1.
PAPER_OFFICIAL: dict[str, tuple[str, str]] = {
    "SVM": ("63.4 64.4 50.0", "54.7 55.9 39.7"),
    "LSP": ("69.0 69.9 55.7", "64.4 66.0 49.0"),
    "SVMmap": ("66.2 67.2 51.6", "61.5 63.1 46.8"),
    "LSP-AP": ("69.4 70.0 54.9", "64.5 66.3 49.4"),
    "LSSVM-AP": ("68.7 69.3 54.9", "62.4 63.8 46.8"),
    "LSP-AP*": ("69.5 70.1 54.1", "63.7 65.5 48.5"),
    "LSSVM-AP*": ("67.5 68.5 51.6", "63.7 65.1 47.3"),
}
# Tables 3 and 4: MAP, MRR, P@1 of the folds.
PAPER_FOLDS: dict[str, dict[str, tuple[str, str, str]]] = {
    "wikiqa": {
        "SVM": ("55.2 ± 3.6", "56.7 ± 3.3", "39.7 ± 5.3"),
        "LSP": ("64.3 ± 2.5", "65.6 ± 2.6", "48.1 ± 4.3"),
        "SVMmap": ("60.9 ± 2.6", "62.3 ± 2.8", "45.2 ± 4.2"),
        "LSP-AP": ("64.5 ± 2.5", "65.9 ± 2.2", "49.0 ± 4.2"),
        "LSSVM-AP": ("62.0 ± 5.0", "63.4 ± 4.6", "44.8 ± 8.1"),
    },
    "trecqa": {
        "SVM": ("71.7 ± 4.2", "82.4 ± 3.4", "70.8 ± 5.7"),
        "LSP": ("71.7 ± 2.5", "82.5 ± 1.9", "72.1 ± 4.3"),
        "SVMmap": ("71.9 ± 3.7", "82.0 ± 2.9", "69.2 ± 5.5"),
        "LSP-AP": ("72.5 ± 5.3", "82.9 ± 3.8", "71.0 ± 8.6"),
        "LSSVM-AP": ("71.0 ± 4.7", "81.0 ± 2.7", "69.2 ± 5.5"),
    },
}
TITLES = {"wikiqa": "WikiQA", "trecqa": "TREC QA"}
SECTIONS = {"paper": "latent_reranking", "extended": "latent_reranking_extended"}


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _against(row: Mapping[str, Any]) -> list[str]:
    return [f"{row['wins']}/{row['losses']}", f"{row['p']:.2g}"]


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(set(values)))


def official_table(rows: Mapping[str, Any], with_paper: bool) -> str:
    """Means over seeds of MAP, MRR and P@1 on dev and test; each model against SVMmap on test."""
    measures = " ".join(MEASURES)
    header = ["", f"dev {measures}", f"test {measures}", "± MAP", "W/L", "p", "C", "epoch"]
    header += [f"paper: dev {measures}", f"test {measures}"] if with_paper else []
    body = []
    for name, row in rows.items():
        line = [name, *(" ".join(map(_percent, row[s].values())) for s in ("dev", "test"))]
        line.append("" if row["sd"] is None else _percent(row["sd"]))
        line += ["", ""] if name == REFERENCE else _against(row)
        line.append("" if name == "LSP" else _listed(row["C"]))
        line.append(_listed(epoch for epoch in row["epoch"] if epoch))
        body.append(line + (list(PAPER_OFFICIAL[name]) if with_paper else []))
    return markdown(header, body)


def folds_table(rows: Mapping[str, Any], paper: Mapping[str, Sequence[str]]) -> str:
    """Means ± deviations over the folds."""
    header = ["", *MEASURES, "W/L", "p"]
    header += [f"{'paper: ' * (not k)}{measure}" for k, measure in enumerate(MEASURES) if paper]
    body = []
    for name, row in rows.items():
        line = [name, *(f"{_percent(m)} ± {_percent(s)}" for m, s in row["test"].values())]
        line += ["", ""] if name == REFERENCE else _against(row)
        body.append(line + (list(paper.get(name, ("",) * len(MEASURES))) if paper else []))
    return markdown(header, body)


def tables(part: str, found: Mapping[str, Any]) -> str:
    """All tables of one collection; the paper's figures stand beside the paper's features."""
    counts = " / ".join(str(count) for count in found["questions"].values())
    extended = ", extended features" * ("extended" in found["features"])
    seeds = ", ".join(map(str, found["seeds"]))
    texts = [
        f"### {TITLES[part]}{extended}",
        f"{counts} questions (train / dev / test); seeds {seeds}, the folds by the first.",
    ]
    if "position" in found:
        alone = " ".join(map(_percent, found["position"].values()))
        texts[-1] += f" The position alone: test {' '.join(MEASURES)} {alone}."
    for name, judged in found["features"].items():
        is_paper = name in FEATURES["paper"]
        title = f"features: {name} ({judged['columns']} columns)"
        texts += [
            f"**Official split, {title}**",
            official_table(judged["official"], is_paper and part == "wikiqa"),
            f"**{found['folds']} disjoint folds, {title}**",
            folds_table(judged["folds"], PAPER_FOLDS[part] if is_paper else {}),
        ]
        texts += _failures(judged)
    return "\n\n".join(texts)


def _failures(judged: Mapping[str, Any]) -> list[str]:
    """Fits that stopped at a limit or learned nothing, by model and protocol."""
    said = []
    for what, key in (("stopped at a limit", "unfinished"), ("ended at w = 0", "zero")):
        counts = {m: [judged[p][m][key] for p in ("official", "folds")] for m in judged["folds"]}
        named = [f"{model} {a} + {b}" for model, (a, b) in counts.items() if a + b]
        if named:
            said.append(f"Fits that {what} (official split + folds): {', '.join(named)}.")
    return [" ".join(said)] if said else []


def plot(results: Mapping[str, Any]) -> Any:
    """MAP on the development set over epochs, for the perceptrons at their chosen C."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shown = [
        (f"{TITLES[part]}, features: {name}", judged["official"])
        for part, found in results.items()
        for name, judged in found["features"].items()
        if "position" not in name
    ]
    with rc_context({"svg.hashsalt": "latent_reranking"}):
        n_columns = min(2, len(shown))
        n_rows = -(-len(shown) // n_columns)
        figure = Figure(figsize=(4.2 * n_columns, 2.8 * n_rows), layout="constrained")
        for axes, (title, rows) in zip(
            figure.subplots(n_rows, n_columns, squeeze=False).flat, shown
        ):
            for name in CURVES:
                curve = 100 * np.array(rows[name]["curve"])
                axes.plot(np.arange(1, len(curve) + 1), curve, label=name, linewidth=1)
            axes.set(title=title, xlabel="epoch", ylabel="dev MAP")
            axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(
        __doc__, *("quick", "seed", "cache", "plot", "json"), parts=PARTS, one_section=True
    )
    parser.add_argument("--features", choices=[*FEATURES, "cnn"], default="paper")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="networks (cnn)")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print their tables, and write what was asked for."""
    if options.features == "cnn":
        import_module("reproductions.latent_reranking_cnn").reproduce(options)
        return
    with threadpool_limits(1):
        results = {part: reproduce_part(part, options) for part in options.parts}
    write_figure = options.write and options.features == "paper"
    for path in (options.plot, FIGURE if write_figure else None):
        if path:
            study.save_figure(plot(results), path)
    text = "\n\n".join(tables(part, found) for part, found in results.items())
    study.publish(options, {SECTIONS[options.features]: text}, results, seed=options.seed)


if __name__ == "__main__":
    raise SystemExit(main())
