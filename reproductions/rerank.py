"""`TextReranker` on eight collections: at home, abroad, and with few training queries.

    python -m reproductions.rerank                     everything
    python -m reproductions.rerank --part home         each collection by itself
    python -m reproductions.rerank --part abroad       trained on one, tested on another
    python -m reproductions.rerank --part curve        20 to 200 training queries
    python -m reproductions.rerank --write             put tables and picture into docs/

Everything is chosen inside the training part. Collections have five folds over queries, or the
split that they come with. What was computed is kept in ``--cache`` under the name of
the commit, so that a run that was stopped goes on, and never mixes the work of two versions.
LightGBM lives in the environment of the benchmarks' peers, or in that of ``--python``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers import environment
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.files import replace_sections
from didyma.metrics import wilcoxon
from didyma.report.table import markdown
from didyma.text.features import ExtendedFeatures, FirstStage, SmallFeatures, TextFeatures
from didyma.text.text_reranker import TextReranker
from reproductions import stamps
from reproductions.kept import Kept
from reproductions.rerank_collections import (
    COLLECTIONS,
    MEASURES,
    Collection,
    folds,
)

ROOT = Path(__file__).resolve().parents[1]
RESULTS, README = ROOT / "docs" / "RESULTS.md", ROOT / "README.md"
PICTURE = ROOT / "docs" / "rerank_curve.svg"
WORKER = Path(__file__).with_name("rerank_worker.py")
OURS, FIRST = "TextReranker()", "BM25"
ALPHA = 0.05
SETTINGS = [
    {"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": least}
    for leaves, rate, least in ((4, 0.1, 20), (8, 0.1, 20), (31, 0.1, 20))
]
TREES = (10, 30, 100)
CURVE = ("wikiqa", "insuranceqa-en", "xquadr-de")
SIZES = (20, 50, 100, 200)
N_DRAWS = 5

# What TextReranker() as it comes must reach at home: measure and floor.
FLOORS = {
    "wikiqa": ("AP", 0.70),
    "trecqa": ("AP", 0.76),
    "cranfield": ("AP", 0.44),
    "insuranceqa-en": ("AP", 0.59),
    "xquadr-de": ("AP", 0.86),
    "xquadr-zh": ("nDCG@10", 0.82),
}

Values = dict[str, list[float]]
Ranker = Callable[[Lists, Lists], "tuple[NDArray[np.float64], dict[str, Any]]"]


def ours(**options: Any) -> Ranker:
    """Scores by `TextReranker`, and what it decided."""

    def run(train: Lists, test: Lists) -> tuple[NDArray[np.float64], dict[str, Any]]:
        reranker = TextReranker(**options).fit(train)
        drift = reranker.drift(test)
        said = {"gate": str(reranker.gate_), "gained": reranker.gate_.passed}
        return reranker.predict(test), {**said, "drift": str(drift), "far": drift.warns}

    return run


def boosted(part: type[Any], python: Path) -> Ranker:
    """Scores by LightGBM over one of the feature sets."""

    def run(train: Lists, test: Lists) -> tuple[NDArray[np.float64], dict[str, Any]]:
        parts = [part()] if train.scores is None else [part(), FirstStage()]
        features = TextFeatures(parts).fit(train)
        own, judged = features.transform(train), train.y
        order, sizes = train.groups.rows, train.groups.sizes
        fold = np.empty(len(sizes), np.int64)
        for k, (_, held_out) in enumerate(folds(len(sizes))):
            fold[held_out] = k
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            arrays = {"train_X": own[order], "train_y": judged[order], "train_group": sizes}
            for key, array in {**arrays, "fold": fold, "test_X": features.transform(test)}.items():
                np.save(folder / f"{key}.npy", array)
            wanted = {"settings": SETTINGS, "trees": TREES, "threads": 2}
            (folder / "settings.json").write_text(json.dumps(wanted))
            command = [str(python), str(WORKER), name]
            child = subprocess.run(command, check=True, capture_output=True, text=True)
            return np.load(folder / "scores.npy"), json.loads(child.stdout.splitlines()[-1])

    return run


def tested(
    collection: Collection, ranker: Ranker | None, train: Lists, test: Lists
) -> dict[str, Any]:
    """Values of each test query, and what was decided; the first stage without a ranker."""
    said: dict[str, Any] = {}
    if ranker is None:
        scores = collection.first_stage(test)
    else:
        scores, said = ranker(train, test)
    values = collection.evaluate(test, scores)
    return {"said": said, "values": {name: column.tolist() for name, column in values.items()}}


def joined(parts: Sequence[Mapping[str, Any]]) -> Values:
    """Values of all folds."""
    return {name: [v for part in parts for v in part["values"][name]] for name in MEASURES}


def mean(values: Values, measure: str) -> float:
    """Over queries."""
    return float(np.mean(values[measure]))


class Study:
    """The three parts of the study over one folder of data."""

    def __init__(self, data: Path, kept: Kept, python: Path | None, **options: Any) -> None:
        self.data, self.kept, self.options = data, kept, options
        self.rankers: dict[str, Ranker | None] = {
            FIRST: None,
            OURS: ours(**options),
            "small features": ours(features="small", **options),
            "extended features": ours(features="extended", **options),
            "with word vectors": ours(vectors="wordllama", **options),
        }
        if python is not None:
            self.rankers["LightGBM, small features"] = boosted(SmallFeatures, python)
            self.rankers["LightGBM, extended features"] = boosted(ExtendedFeatures, python)

    def keep(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was kept under that name, or what is computed now."""

        def timed() -> dict[str, Any]:
            start = time.perf_counter()
            found = compute()
            found["seconds"] = time.perf_counter() - start
            print(f"{name}: {found['seconds']:.1f} s", file=sys.stderr, flush=True)
            return found

        return self.kept.record(name, timed)

    @cache  # noqa: B019
    def collection(self, name: str) -> Collection:
        """A collection, read once."""
        return COLLECTIONS[name][2](self.data)

    def home(self, names: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
        """Each ranker on each collection, fold by fold; what matters most comes first."""
        found: dict[str, dict[str, list[Any]]] = {name: {} for name in names}
        for row, ranker in self.rankers.items():
            for name in names:
                for k in range(len(self.collection(name).splits)):
                    part = self.keep(f"home-{name}-{row}-{k}", lambda: self._fold(name, ranker, k))  # noqa: B023
                    found[name].setdefault(row, []).append(part)
        return found

    def _fold(self, name: str, ranker: Ranker | None, k: int) -> dict[str, Any]:
        collection = self.collection(name)
        train, test = (collection.lists.select_lists(part) for part in collection.splits[k])
        return tested(collection, ranker, train, test)

    def abroad(self, names: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
        """Trained on all training queries of one collection, tested on those of another."""
        english = [name for name in names if COLLECTIONS[name][1]]
        found = {}
        for source in english:
            for target in english:
                if source != target:
                    name = f"abroad-{source}-{target}"
                    found[source, target] = self.keep(name, lambda: self._pair(source, target))  # noqa: B023
        return found

    def _pair(self, source: str, target: str) -> dict[str, Any]:
        collection = self.collection(target)
        splits = collection.splits
        test = splits[0][1] if len(splits) == 1 else np.arange(len(collection.lists.groups))
        lists = collection.lists.select_lists(test)
        alone, reranker = replace(lists, scores=None), self._trained(source)
        drift = reranker.drift(alone)
        said = {"drift": str(drift), "far": drift.warns}
        values = collection.evaluate(alone, reranker.predict(alone))
        first = collection.evaluate(lists, collection.first_stage(lists))
        return {
            "said": said,
            "values": {name: column.tolist() for name, column in values.items()},
            "first": {name: column.tolist() for name, column in first.items()},
        }

    @cache  # noqa: B019
    def _trained(self, source: str) -> TextReranker:
        collection = self.collection(source)
        splits = collection.splits
        train = splits[0][0] if len(splits) == 1 else np.arange(len(collection.lists.groups))
        alone = replace(collection.lists, scores=None)  # which others may not have
        return TextReranker(**self.options).fit(alone.select_lists(train))

    def curve(self, names: Sequence[str]) -> dict[str, dict[str, dict[int, list[Any]]]]:
        """Rankers of few queries, drawn five times; tested on those of the first split."""
        found: dict[str, dict[str, dict[int, list[Any]]]] = {}
        rows = [FIRST, OURS, *(row for row in self.rankers if row.startswith("LightGBM"))]
        for name in (name for name in CURVE if name in names):
            for row in rows:
                for size in SIZES:
                    for draw in range(1 if row == FIRST else N_DRAWS):
                        part = self.keep(
                            f"curve-{name}-{row}-{size}-{draw}",
                            lambda: self._draw(name, row, size, draw),  # noqa: B023
                        )
                        own = found.setdefault(name, {}).setdefault(row, {})
                        own.setdefault(size, []).append(part)
        return found

    def _draw(self, name: str, row: str, size: int, draw: int) -> dict[str, Any]:
        collection = self.collection(name)
        train, test = collection.splits[0]
        chosen = np.random.default_rng([draw, size]).permutation(train)[:size]
        lists = (collection.lists.select_lists(part) for part in (chosen, test))
        return tested(collection, self.rankers[row], *lists)


# --- Tables ---------------------------------------------------------------------------------------


def home_table(found: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """Means of each ranker, differences from BM25 in AP and Wilcoxon's test over queries."""
    rows = []
    for name, rankers in found.items():
        first = joined(rankers[FIRST])
        for row, parts in rankers.items():
            values = joined(parts)
            cells = [COLLECTIONS[name][0], row, *(f"{mean(values, m):.4f}" for m in MEASURES)]
            if row == FIRST:
                rows.append([*cells, "", ""])
            else:
                p = wilcoxon(values["AP"], first["AP"])
                rows.append([*cells, f"{mean(values, 'AP') - mean(first, 'AP'):+.4f}", f"{p:.2g}"])
    return markdown(["collection", "ranker", *MEASURES, "AP less BM25", "p"], rows)


def short_table(found: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """AP of BM25 and of `TextReranker` as it comes."""
    rows = []
    for name, rankers in found.items():
        first, own = joined(rankers[FIRST]), joined(rankers[OURS])
        p = wilcoxon(own["AP"], first["AP"])
        star = "*" if p < ALPHA else ""
        queries = len(own["AP"])
        means = [f"{mean(first, 'AP'):.3f}", f"{mean(own, 'AP'):.3f}{star}"]
        rows.append([COLLECTIONS[name][0], str(queries), *means])
    return markdown(["collection", "test queries", FIRST, OURS], rows)


def verdict_table(found: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """Whether `TextReranker` is above BM25, whether its gate foresaw it, and what was asked for."""
    rows = []
    for name, rankers in found.items():
        own, first = joined(rankers[OURS]), joined(rankers[FIRST])
        difference = mean(own, "AP") - mean(first, "AP")
        p = wilcoxon(own["AP"], first["AP"])
        said = [part["said"]["gained"] for part in rankers[OURS]]
        significant = "not significant" if p >= ALPHA else "above" if difference > 0 else "BELOW"
        floor, reached = "", ""
        if name in FLOORS:
            measure, least = FLOORS[name]
            value = mean(own, measure)
            floor = f"{measure} {least:.2f}"
            reached = f"{value:.4f}, {'met' if value >= least else 'missed'}"
        gate = f"gain in {sum(said)} of {len(said)}"
        title = COLLECTIONS[name][0]
        rows.append([title, f"{difference:+.4f}", significant, gate, floor, reached])
    header = ["collection", "AP less BM25", f"at p < {ALPHA}", "gate said", "floor", "reached"]
    return markdown(header, rows)


def abroad_table(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """AP abroad less that of BM25 there, by Wilcoxon's test, and the drift report."""
    rows = []
    for (source, target), part in found.items():
        own, first = part["values"]["AP"], part["first"]["AP"]
        difference, p = float(np.mean(own) - np.mean(first)), wilcoxon(own, first)
        hurt = difference < 0 and p < ALPHA
        far = part["said"]["far"]
        rows.append(
            [
                COLLECTIONS[source][0],
                COLLECTIONS[target][0],
                f"{np.mean(first):.4f}",
                f"{np.mean(own):.4f}",
                f"{difference:+.4f}",
                f"{p:.2g}",
                "differs" if far else "alike",
                "missed" if hurt and not far else "warned" if hurt else "",
            ]
        )
    header = ["trained on", "tested on", FIRST, OURS, "difference", "p", "drift", ""]
    return markdown(header, rows)


def curve_table(found: Mapping[str, Mapping[str, Mapping[int, list[Any]]]]) -> str:
    """Mean AP over draws and queries by the number of training queries."""
    rows = []
    for name, rankers in found.items():
        for row, sizes in rankers.items():
            means = [f"{_mean_of_draws(parts)[0]:.4f}" for parts in sizes.values()]
            rows.append([COLLECTIONS[name][0], row, *means])
    return markdown(["collection", "ranker", *(f"{size} queries" for size in SIZES)], rows)


def _mean_of_draws(parts: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Mean AP, and the standard error over draws."""
    means = [float(np.mean(part["values"]["AP"])) for part in parts]
    if len(means) == 1:
        return means[0], 0.0
    return float(np.mean(means)), float(np.std(means, ddof=1) / len(means) ** 0.5)


def draw_curve(found: Mapping[str, Mapping[str, Mapping[int, list[Any]]]], path: Path) -> None:
    """Mean AP by the number of training queries, one panel a collection."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(found), figsize=(3.4 * len(found), 3.2), squeeze=False)
    for panel, (name, rankers) in zip(panels[0], found.items()):
        for row, sizes in rankers.items():
            means, errors = zip(*(_mean_of_draws(parts) for parts in sizes.values()))
            panel.errorbar(list(sizes), means, errors, marker="o", markersize=3, label=row)
        panel.set(title=COLLECTIONS[name][0], xlabel="training queries", xscale="log")
        panel.set_xticks(SIZES, [str(size) for size in SIZES])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("mean average precision")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="lower center", ncols=4)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that were asked for; figures are printed once, at the end."""
    options = _parser().parse_args(arguments)
    warnings.filterwarnings("ignore", ".*queries have rows of one class only")
    python = options.python or environment("lightgbm")
    study = Study(options.data, Kept(options.cache), python)
    names = options.collections or list(COLLECTIONS)
    sections = {}
    if options.part in (None, "home"):
        home = study.home(names)
        sections["rerank_home"], sections["rerank_verdicts"] = home_table(home), verdict_table(home)
        if options.write:
            replace_sections(README, {"rerank": short_table(home)})
    if options.part in (None, "abroad"):
        sections["rerank_abroad"] = abroad_table(study.abroad(names))
    if options.part in (None, "curve"):
        curve = study.curve(names)
        sections["rerank_curve"] = curve_table(curve)
        if options.write:
            draw_curve(curve, PICTURE)
    for table in sections.values():
        print(table, end="\n\n")
    if options.write:
        stamps.write(RESULTS, sections)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", choices=("home", "abroad", "curve"))
    parser.add_argument("--collections", nargs="+", choices=tuple(COLLECTIONS))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "rerank")
    parser.add_argument("--python", type=Path, help="of an environment with LightGBM")
    parser.add_argument("--write", action="store_true")
    return parser


if __name__ == "__main__":
    main()
