"""Niculae et al. (2018), section 5.1: dependency parsing with four losses on UD 2.0.

Run by sparsemap_models.py --part parsing. Words and tags are gold, the parser is Kiperwasser &
Goldberg's, made smaller unless --full. Vietnamese is whole. English is every eighth sentence of the
training data and every fourth of the development data, and all of the test data; with --full it is
whole. Each model is kept at the epoch with the best UAS on development data.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from didyma.formats import conll
from didyma.formats.conll import Field, Sentence
from didyma.metrics.parsing import Attachment, LabelledTree, evaluate
from didyma.nn.parser import DependencyParser
from didyma.report.table import markdown
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

Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """How much is read (every n-th sentence of train, dev and test) and how models are trained."""

    steps: Mapping[str, tuple[int, int, int]]
    parser: Mapping[str, Any]
    rates: tuple[float, ...] = (2e-3,)


USUAL = Size(
    {"vi": (1, 1, 1), "en": (8, 4, 1)},
    {"word_size": 64, "hidden": 64, "mlp": 64, "batch_size": 8, "epochs": 25, "patience": 4},
)
QUICK = Size(
    {"vi": (20, 20, 20), "en": (200, 100, 100)},
    {"word_size": 16, "hidden": 16, "mlp": 16, "epochs": 2, "patience": 2},
)
FULL = Size(
    {"vi": (1, 1, 1), "en": (1, 1, 1)},
    {"batch_size": 8, "epochs": 30, "patience": 5},
    (0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3),  # the paper's
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
    kept = Kept(options.cache, "reproductions.sparsemap_parsing")
    found: list[dict[str, Any]] = []
    lead = [f"UAS in percent, mean ± standard deviation over {options.seeds} seeds."]
    for language, steps in size.steps.items():
        data = read(options.data, language, steps)
        counts = ", ".join(f"{len(sentences):,} {part}" for part, sentences in data.items())
        lead.append(f"{NAMES[language]}: {counts} sentences.")
        for seed, loss, rate in product(range(options.seeds), LOSSES, size.rates):
            key = Key(language, loss, rate, seed, steps, size.parser)
            record = kept.record(asdict(key), lambda: train(key, data))  # noqa: B023
            say(f"{language} {loss}, rate {rate:g}, seed {seed}: {_short(record)}")
            found.append({**asdict(key), **record})
    text = [" ".join(lead), accuracy(found, size), *sparsity(found)]
    return {"sparsemap_parsing": "\n\n".join(text)}


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
    return evaluate(_trees(gold), _trees(parsed))


def _trees(sentences: Sequence[Sentence]) -> list[LabelledTree]:
    return [([] if s.heads is None else s.heads, s.column(Field.DEPREL)) for s in sentences]


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
    for language in size.steps:
        header += [f"{NAMES[language]}: {part}" for part in ("dev", "test", "paper, test")]
    rows = []
    for loss, name in LOSSES.items():
        row = [name]
        for language in size.steps:
            own = chosen([r for r in records if (r["language"], r["loss"]) == (language, loss)])
            row += [_spread([r[part]["uas"] for r in own]) for part in ("dev", "test")]
            row.append(f"{PAPER[language][loss]:.2f}")
        rows.append(row)
    return markdown(header, rows)


def chosen(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with the learning rate whose mean UAS on development data is best."""
    by_rate: dict[float, list[Mapping[str, Any]]] = {}
    for record in records:
        by_rate.setdefault(record["rate"], []).append(record)
    return max(by_rate.values(), key=lambda own: np.mean([r["dev"]["uas"] for r in own]))


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


def _spread(values: Sequence[float]) -> str:
    text = f"{100 * np.mean(values):.2f}"
    return f"{text} ± {100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else text


def _short(record: Mapping[str, Any]) -> str:
    return (
        f"dev {100 * record['dev']['uas']:.2f}, test {100 * record['test']['uas']:.2f}, epoch "
        f"{record['best_epoch']} of {record['epochs']}, {record['seconds']:.0f} s of CPU time"
    )


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
