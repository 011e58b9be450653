"""Niculae et al. (2018), section 5.2: entailment with three latent alignments, here on SICK.

Run by sparsemap_models.py --part nli. The paper's data, SNLI and MultiNLI, have 550 000 and 390 000
training pairs; SICK has 4 500. Word vectors are learned from these pairs alone. The network is
ESIM, made smaller unless --full; each model is kept at the epoch with the best accuracy on
development data. All three alignments are trained alike.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from didyma.applications.alignment import reader as nli
from didyma.applications.alignment.esim import EntailmentClassifier, nonzero_share
from didyma.applications.alignment.layers import ALIGNMENTS
from didyma.applications.alignment.reader import Pair
from didyma.report.table import markdown
from reproductions import study
from reproductions.kept import Kept

# Table 2 of the paper: test accuracy, and percentage of nonzero alignments.
PAPER = {
    "softmax": ("76.05 (100 %)", "86.52 (100 %)"),
    "sequential": ("75.54 (13 %)", "86.62 (19 %)"),
    "matching": ("76.13 (8 %)", "86.05 (15 %)"),
}
FILES = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}


@dataclass(frozen=True)
class Size:
    """How much is read (every n-th pair) and how models are trained."""

    step: int
    model: Mapping[str, Any]
    rates: tuple[float, ...] = (1e-3,)


USUAL = Size(1, {"dimension": 100, "hidden": 100, "dropout": 0.3, "epochs": 10, "patience": 3})
QUICK = Size(20, {"dimension": 16, "hidden": 16, "epochs": 2, "patience": 2})
PAPER_RATES = (2**-6, 2**-5, 2**-4, 2**-3)
# The paper's optimiser: after each epoch that is not the best so far the rate becomes 0.9 of it. It
# stands still for many epochs at first, and does not leave the most frequent answer at lower rates.
SGD = replace(
    USUAL,
    model={**USUAL.model, "optimizer": "sgd", "epochs": 40, "patience": 40},
    rates=PAPER_RATES[-1:],
)
FULL = Size(
    1,
    {
        "dimension": 300,
        "hidden": 300,
        "dropout": 0.5,
        "optimizer": "sgd",
        "epochs": 100,
        "patience": 10,
    },
    PAPER_RATES,
)


@dataclass(frozen=True)
class Key:
    """One training: what makes its result."""

    alignment: str
    rate: float
    seed: int
    step: int
    model: Mapping[str, Any] = field(hash=False)


def run(options: argparse.Namespace) -> dict[str, str]:
    """Train what the cache lacks; the section of docs/RESULTS.md."""
    torch.set_num_threads(1)
    size = QUICK if options.quick else FULL if options.full else SGD if options.sgd else USUAL
    kept = Kept(options.cache)
    data = read(options.data / "sick", size.step)
    found: list[dict[str, Any]] = []
    for seed, alignment, rate in product(range(options.seeds), ALIGNMENTS, size.rates):
        key = Key(alignment, rate, seed, size.step, size.model)
        record = kept.record(asdict(key), lambda: train(key, data))  # noqa: B023
        study.say(f"{alignment}, rate {rate:g}, seed {seed}: {_short(record)}")
        found.append({**asdict(key), **record})
    name = "sparsemap_alignment_sgd" if options.sgd else "sparsemap_alignment"
    return {name: section(found, data)}


def read(folder: Path, step: int) -> dict[str, list[Pair]]:
    """Every n-th pair of each part."""
    return {part: nli.read(folder / name)[::step] for part, name in FILES.items()}


def train(key: Key, data: Mapping[str, Sequence[Pair]]) -> dict[str, Any]:
    """Accuracy of one classifier, and how sparse its alignments of the test pairs are."""
    labels = {part: [str(pair.label) for pair in pairs] for part, pairs in data.items()}
    classifier = EntailmentClassifier(
        key.alignment,
        learning_rate=key.rate,
        random_state=key.seed,
        n_jobs=1,
        device="cpu",
        **key.model,
    )
    begun = time.process_time()
    classifier.fit(data["train"], labels["train"], (data["dev"], labels["dev"]))
    seconds = time.process_time() - begun
    alignments = classifier.alignments(data["test"])
    counts = [len(one.probabilities) for a in alignments for one in a.selected.values()]
    return {
        "dev": classifier.score(data["dev"], labels["dev"]),
        "test": classifier.score(data["test"], labels["test"]),
        "nonzero": nonzero_share(alignments),
        "structures": float(np.mean(counts)) if counts else None,
        "best_epoch": classifier.history_.best_epoch,
        "epochs": len(classifier.history_.records),
        "seconds": seconds,
    }


def section(records: Sequence[Mapping[str, Any]], data: Mapping[str, Sequence[Pair]]) -> str:
    """The table as Markdown."""
    labels = [pair.label for pair in data["test"]]
    most = max(set(labels), key=labels.count)
    sizes = " / ".join(f"{len(pairs)}" for pairs in data.values())
    seeds = len({record["seed"] for record in records})
    rows = []
    for alignment in ALIGNMENTS:
        own = chosen([record for record in records if record["alignment"] == alignment])
        structures = [record["structures"] for record in own if record["structures"]]
        rows.append(
            [
                alignment,
                *(study.percent([record[part] for record in own]) for part in ("dev", "test")),
                f"{100 * np.mean([record['nonzero'] for record in own]):.0f} %",
                f"{np.mean(structures):.1f}" if structures else "",
                f"{sum(r['seconds'] for r in own) / sum(r['epochs'] for r in own):.1f} s",
                *PAPER[alignment],
            ]
        )
    header = ["alignment", "SICK: dev", "test", "nonzero, test", "structures a pair"]
    header += ["CPU an epoch", "paper, MultiNLI", "paper, SNLI"]
    return (
        f"SICK, {sizes} pairs; accuracy in percent, mean ± standard deviation over {seeds} seeds. "
        f"To say {most} always scores {100 * labels.count(most) / len(labels):.2f} on the test "
        f"pairs.\n\n{markdown(header, rows)}"
    )


def chosen(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with the learning rate whose mean accuracy on development data is best."""
    by_rate: dict[float, list[Mapping[str, Any]]] = {}
    for record in records:
        by_rate.setdefault(record["rate"], []).append(record)
    return max(by_rate.values(), key=lambda own: np.mean([record["dev"] for record in own]))


def _short(record: Mapping[str, Any]) -> str:
    return (
        f"dev {100 * record['dev']:.2f}, test {100 * record['test']:.2f}, "
        f"{100 * record['nonzero']:.0f} % nonzero, epoch {record['best_epoch']} of "
        f"{record['epochs']}, {record['seconds']:.0f} s of CPU time"
    )
