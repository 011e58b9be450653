"""From a query and 100 passages of 100 words to a ranking, on one core; to a model and from a file.

Relevant passages begin with the query. All words were met before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.row import Row
from benchmarks.text_features import ASKED, PASSAGES, WORDS, text
from benchmarks.timing import blas_threads, interleave, stopwatch
from didyma.data.lists import Lists
from didyma.model import load
from didyma.ranking.svm import SVMRanker
from didyma.text.features.extended import ExtendedFeatures
from didyma.text.features.union import TextFeatures
from didyma.text.reranker import Reranker
from didyma.text.text_reranker import TextReranker

LISTS, CANDIDATES = 200, 10  # that are learned from


def run(scale: float = 1.0) -> list[Row]:
    with blas_threads(1):
        return _rows(max(4, round(PASSAGES * scale)), max(10, round(LISTS * scale)))


def _rows(n_passages: int, n_lists: int) -> list[Row]:
    rng = np.random.default_rng(0)
    lists = _lists(rng, n_lists)
    asked, passages = text(rng, ASKED), [text(rng, WORDS) for _ in range(n_passages)]
    found: dict[str, Reranker] = {
        "small": TextReranker(quick=True, language="english"),
        "all": TextReranker(language="english"),
        "extended": Reranker(TextFeatures([ExtendedFeatures()], "english"), SVMRanker(C=1.0)),
    }
    fits = {name: stopwatch(lambda own=own: own.fit(lists)) for name, own in found.items()}
    seconds = {name: min(own) for name, own in interleave(fits, 2).items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        found["all"].save(path)
        timers = {
            name: stopwatch(lambda own=found[name]: own.rank(asked, passages))
            for name in ("small", "extended")
        }
        timers["explain"] = stopwatch(lambda: found["all"].explain(asked, passages[:1]))
        timers["load"] = stopwatch(lambda: load(path))
        milliseconds = {name: 1e3 * min(own) for name, own in interleave(timers, 20).items()}
        megabytes = path.stat().st_size / 1e6
    name = f"rank {n_passages} passages of {WORDS} words"
    learned = f"{n_lists} queries of {CANDIDATES} passages"
    return [
        Row.at_most(f"{name}, small set", milliseconds["small"], "ms", 6),
        Row.at_most(f"{name}, extended set", milliseconds["extended"], "ms", 25),
        Row("explain one passage", milliseconds["explain"], "ms"),
        Row("load a reranker", milliseconds["load"], "ms"),
        Row.at_most("its file", megabytes, "MB", 5),
        Row(f"fit {learned}, quickly", seconds["small"], "s"),
        Row(f"fit {learned}", seconds["all"], "s"),
    ]


def _lists(rng: np.random.Generator, n: int) -> Lists:
    queries = [text(rng, ASKED) for _ in range(n)]
    passages = [
        [f"{query} {text(rng, WORDS - ASKED)}", *(text(rng, WORDS) for _ in range(CANDIDATES - 1))]
        for query in queries
    ]
    return Lists.of_texts(queries, passages, [[1.0] + [0.0] * (CANDIDATES - 1)] * n)
