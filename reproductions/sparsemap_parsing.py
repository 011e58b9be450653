"""Niculae et al. (2018), section 5.1: dependency parsing with four losses on UD 2.0.

Run by sparsemap_models.py --part parsing. Words and tags are gold, the parser is Kiperwasser &
Goldberg's, made smaller unless --full. Both treebanks are whole. In Vietnamese each loss has the
learning rate that is best on development data, and several seeds; English is trained on once, at
one rate, unless --full. Each model is kept at the epoch with the best UAS on development data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from didyma.applications.parsing.measures import Attachment, evaluate, labelled_tree
from didyma.applications.parsing.parser import DependencyParser
from didyma.data import conll
from didyma.data.conll import Sentence
from didyma.report.table import markdown
from reproductions import study
from reproductions.kept import Kept

LOSSES = {"svm": "SSVM", "crf": "CRF", "sparsemap": "SparseMAP", "margin-sparsemap": "m-SparseMAP"}
SPARSE = ("sparsemap", "margin-sparsemap")
WATCHED = 200  # development sentences whose trees are counted after each epoch

# Table 1 of the paper: UAS on the test data.
PAPER = {
    "vi": {"svm": 69.42, "crf": 69.10, "sparsemap": 69.71, "margin-sparsemap": 70.87},
    "en": {"svm": 87.02, "crf": 86.74, "sparsemap": 86.90, "margin-sparsemap": 87.34},
}
NAMES = {"vi": "Vietnamese", "en": "English"}
FILES = {"vi": "ud/vi_vtb_ud2.0/vi-ud-{}.conllu", "en": "ud/en_ewt_ud2.0/en-ud-{}.conllu"}


@dataclass(frozen=True)
class Corpus:
    """How much is read (every n-th sentence of train, dev and test), and which runs are made."""

    steps: tuple[int, int, int]
    rates: tuple[float, ...]  # the first seed tries them all, the others have the best of them
    seeds: int | None = None  # at most; None is as many as are asked for


@dataclass(frozen=True)
class Size:
    """What is read, and how models are trained."""

    corpora: Mapping[str, Corpus]
    parser: Mapping[str, Any]


WHOLE = (1, 1, 1)
USUAL = Size(
    {"vi": Corpus(WHOLE, (1e-3, 2e-3, 4e-3)), "en": Corpus(WHOLE, (2e-3,), seeds=1)},
    {"word_size": 64, "hidden": 64, "mlp": 64, "batch_size": 8, "epochs": 25, "patience": 4},
)
QUICK = Size(
    {"vi": Corpus((20, 20, 20), (2e-3,)), "en": Corpus((200, 100, 100), (2e-3,))},
    {"word_size": 16, "hidden": 16, "mlp": 16, "epochs": 2, "patience": 2},
)
PAPER_RATES = (0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3)
FULL = Size(
    {"vi": Corpus(WHOLE, PAPER_RATES), "en": Corpus(WHOLE, PAPER_RATES)},
    {"batch_size": 8, "epochs": 30, "patience": 5},
)


@dataclass(frozen=True)
class Key:
    """One training: what makes its result."""

    language: str
    loss: str
    rate: float
    seed: int
    steps: tuple[int, int, int]
    parser: Mapping[str, Any] = field(hash=False)


def run(options: argparse.Namespace) -> dict[str, str]:
    """Train what the cache lacks; the section of docs/RESULTS.md."""
    torch.set_num_threads(1)
    size = QUICK if options.quick else FULL if options.full else USUAL
    kept = Kept(options.cache)
    found: list[dict[str, Any]] = []
    lead = ["UAS in percent."]
    for language, corpus in size.corpora.items():
        data = read(options.data, language, corpus.steps)
        counts = ", ".join(f"{len(sentences):,} {part}" for part, sentences in data.items())
        seeds = options.seeds if corpus.seeds is None else min(options.seeds, corpus.seeds)
        runs = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
        lead.append(f"{NAMES[language]}: {counts} sentences, {runs}.")
        for loss in LOSSES:
            keys = [Key(language, loss, r, 0, corpus.steps, size.parser) for r in corpus.rates]
            tried = [made(key, data, kept) for key in keys]
            best = keys[int(np.argmax([record["dev"]["uas"] for record in tried]))]
            others = (replace(best, seed=seed) for seed in range(1, seeds))
            found += [*tried, *(made(key, data, kept) for key in others)]
    text = [" ".join(lead), accuracy(found, size), *rates(found), *sparsity(found)]
    return {"sparsemap_parsing": "\n\n".join(text)}


def made(key: Key, data: Mapping[str, Sequence[Sentence]], kept: Kept) -> dict[str, Any]:
    """A training and what came out, or what was kept of it."""
    record = kept.record(asdict(key), lambda: train(key, data))
    study.say(f"{key.language} {key.loss}, rate {key.rate:g}, seed {key.seed}: {_short(record)}")
    return {**asdict(key), **record}


def read(folder: Path, language: str, steps: Sequence[int]) -> dict[str, list[Sentence]]:
    """Every n-th sentence of each part."""
    return {
        part: conll.read(folder / FILES[language].format(part), trees=True)[::step]
        for part, step in zip(("train", "dev", "test"), steps)
    }


def train(key: Key, data: Mapping[str, Sequence[Sentence]]) -> dict[str, Any]:
    """Attachment scores of one parser, and for a sparse loss the trees it selects by epoch."""
    begun = time.process_time()
    sparsity: list[dict[str, float]] = []

    def watch(step: Any) -> None:
        if step.value is not None and key.loss in SPARSE:
            sparsity.append(count_trees(parser, data["dev"][:WATCHED]))

    parser = DependencyParser(
        key.loss,
        learning_rate=key.rate,
        random_state=key.seed,
        device="cpu",
        callback=watch,
        **key.parser,
    )
    parser.fit(data["train"], data["dev"])
    history = parser.history_
    record: dict[str, Any] = {"best_epoch": history.best_epoch, "epochs": len(history.records)}
    for part in ("dev", "test"):
        judged = judge(data[part], parser.predict(data[part]))
        record[part] = {"uas": judged.uas, "las": judged.las, "trees": judged.trees}
    return {**record, "sparsity": sparsity, "seconds": time.process_time() - begun}


def judge(gold: Sequence[Sentence], parsed: Sequence[Sentence]) -> Attachment:
    """Compare parsed sentences with gold ones."""
    return evaluate(list(map(labelled_tree, gold)), list(map(labelled_tree, parsed)))


def count_trees(parser: DependencyParser, sentences: Sequence[Sentence]) -> dict[str, float]:
    """How sparse the posteriors over trees are, and how often the gold tree is in them."""
    posteriors = parser.alternatives(sentences)
    counts = np.array([posterior.support_size for posterior in posteriors])
    arcs = sum(int((posterior.marginals > 0).sum()) for posterior in posteriors)
    gold = [
        (posterior.structures[:, 1:] == sentence.heads).all(axis=1).any()
        for sentence, posterior in zip(sentences, posteriors)
    ]
    return {
        "one_tree": float((counts == 1).mean()),
        "trees": float(counts.mean()),
        "heads": arcs / sum(map(len, sentences)),
        "gold": float(np.mean(gold)),
    }


def accuracy(records: Sequence[Mapping[str, Any]], size: Size) -> str:
    """UAS beside the paper's."""
    header = ["loss"]
    for language in size.corpora:
        header += [f"{NAMES[language]}: {part}" for part in ("dev", "test", "paper, test")]
    rows = []
    for loss, name in LOSSES.items():
        row = [name]
        for language in size.corpora:
            own = chosen([r for r in records if (r["language"], r["loss"]) == (language, loss)])
            row += [study.percent([r[part]["uas"] for r in own]) for part in ("dev", "test")]
            row.append(f"{PAPER[language][loss]:.2f}")
        rows.append(row)
    return markdown(header, rows)


def chosen(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with the learning rate that the first seed has chosen on development data."""
    first = [record for record in records if record["seed"] == 0]
    rate = max(first, key=lambda record: record["dev"]["uas"])["rate"]
    return [record for record in records if record["rate"] == rate]


def rates(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """UAS of the first seed on development data by rate, where several were tried."""
    for language in dict.fromkeys(record["language"] for record in records):
        first = [r for r in records if (r["language"], r["seed"]) == (language, 0)]
        tried = sorted({record["rate"] for record in first})
        if len(tried) > 1:
            found = {(r["loss"], r["rate"]): 100 * r["dev"]["uas"] for r in first}
            rows = [
                [name, *(f"{found[loss, rate]:.2f}" for rate in tried)]
                for loss, name in LOSSES.items()
            ]
            yield (
                f"{NAMES[language]}, development UAS of seed 0 by learning rate:\n\n"
                + markdown(["loss", *(f"{rate:g}" for rate in tried)], rows)
            )


def sparsity(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Trees and heads with a probability, by epoch."""
    columns = {
        "one_tree": "sentences with one tree",
        "trees": "trees a sentence",
        "heads": "heads a word",
        "gold": "gold tree selected",
    }
    for language in dict.fromkeys(record["language"] for record in records):
        rows = []
        for loss in SPARSE:
            own = chosen([r for r in records if (r["language"], r["loss"]) == (language, loss)])
            made = min(len(r["sparsity"]) for r in own)  # epochs of every seed
            for epoch in sorted({1, 2, 4, 8, made} & set(range(1, made + 1))):
                there = [r["sparsity"][epoch - 1] for r in own]
                values = {name: np.mean([s[name] for s in there]) for name in columns}
                cells = [
                    f"{100 * value:.0f} %" if name in ("one_tree", "gold") else f"{value:.2f}"
                    for name, value in values.items()
                ]
                rows.append([LOSSES[loss], str(epoch), *cells])
        yield (
            f"{NAMES[language]}, {WATCHED} development sentences, means over seeds:\n\n"
            + markdown(["loss", "epoch", *columns.values()], rows)
        )


def _short(record: Mapping[str, Any]) -> str:
    return (
        f"dev {100 * record['dev']['uas']:.2f}, epoch {record['best_epoch']} of "
        f"{record['epochs']}, {record['seconds']:.0f} s of CPU time"
    )
