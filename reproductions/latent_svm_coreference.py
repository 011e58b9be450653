"""Yu and Joachims (2009), "Learning structural SVMs with latent variables": coreference.

    python -m reproductions.latent_svm --part coreference    some tens of minutes

The paper's MUC6 is not free; this is LitBank, with gold mentions: of its 100 documents in the order
of their file names the first 80 are for training, the next 10 for choosing C, the last 10 for
testing. C is chosen by the dev CoNLL measure, for each r. Features are those of
`didyma.applications.coreference.mentions`. Differences between models come with intervals of the
paired bootstrap over test documents.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.applications.coreference import reader as coreference
from didyma.applications.coreference.measures import b_cubed, ceaf_e, evaluate, muc, pair_loss
from didyma.applications.coreference.mentions import FEATURES, pair_features
from didyma.applications.coreference.resolver import CoreferenceResolver
from didyma.applications.coreference.task import CoreferenceTask, MentionPairs
from didyma.errors import DataError
from didyma.learning.perceptron import Perceptron
from didyma.report.table import markdown
from reproductions import study

CS = (0.01, 0.1, 1.0, 10.0)
CORRELATION_CS = (1.0, 10.0, 100.0)  # its loss is a share, not a count
RS = (1.0, 0.1, 0.01)
EPOCHS = 20
SEEDS = (0, 1, 2)
TOL = 0.01
N_DRAWS = 10_000  # of the bootstrap
MAX_CUTS = 100  # of correlation clustering, whose greedy inference may never close the gap

# Table 2 of the paper: MITRE loss and pair loss on MUC6, in percent.
PAPER = {
    "correlation clustering": (41.3, 2.89),
    "latent SVM, r = 1": (44.1, 2.66),
    "latent SVM, modified loss": (35.6, 4.11),
}

Labels = list[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Part:
    """Documents as pairs of mentions, and their gold clusters."""

    examples: list[MentionPairs]
    labels: Labels

    def measure(self, predicted: Sequence[Any]) -> dict[str, float]:
        """Measures of some predictions, as plain numbers."""
        found = evaluate(self.labels, predicted)
        return {name: float(getattr(value, "f1", value)) for name, value in found.items()}

    def compare(self, predicted: Sequence[Any]) -> list[list[float]]:
        """What each document adds to MUC, B³, CEAF_e (four numbers each) and to wrong pairs."""
        rows = []
        for gold, found in zip(self.labels, predicted):
            scores = [measure(gold, found) for measure in (muc, b_cubed, ceaf_e)]
            numbers = [(s.recalled, s.recallable, s.precise, s.predicted) for s in scores]
            pairs = len(gold) * (len(gold) - 1) / 2
            rows.append(
                [*(n for four in numbers for n in four), pair_loss(gold, found) * pairs, pairs]
            )
        return rows


def pooled(sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Measures of sums of such rows, shape (…, 14)."""
    recalled, recallable, precise, predicted = np.moveaxis(
        sums[..., :12].reshape(*sums.shape[:-1], 3, 4), -1, 0
    )
    recall, precision = (
        np.divide(a, b, out=np.ones_like(a), where=b > 0)
        for a, b in ((recalled, recallable), (precise, predicted))
    )
    total = recall + precision
    f1 = np.divide(2 * recall * precision, total, out=np.zeros_like(total), where=total > 0)
    return {
        "mitre_loss": 1 - f1[..., 0],
        "pair_loss": sums[..., 12] / np.maximum(sums[..., 13], 1),
        "conll": f1.mean(axis=-1),
    }


def bootstrap(
    rows: Sequence[Any], others: Sequence[Any], seed: int = 0
) -> dict[str, tuple[float, float, float]]:
    """Differences of the measures, with 95 % intervals over draws of the documents."""
    both = np.array(rows), np.array(others)
    n = len(rows)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=N_DRAWS)
    here, drawn = (
        [pooled(weights @ each) for each in both] for weights in (np.ones(n), counts.astype(float))
    )
    found = {}
    for name in here[0]:
        low, high = np.percentile(drawn[0][name] - drawn[1][name], [2.5, 97.5])
        found[name] = (float(here[0][name] - here[1][name]), float(low), float(high))
    return found


def read_parts(folder: Path, n_documents: int | None = None) -> tuple[Part, Part, Part]:
    """Training, dev and test documents: 80, 10 and 10 percent by file name."""
    files = coreference.find(folder)[:n_documents]
    documents = [document for path in files for document in coreference.read(path)]
    n = len(documents)
    if n < 10:
        raise DataError(f"expected at least 10 documents, found {n}", path=folder)
    cuts = [0, round(0.8 * n), round(0.9 * n), n]
    parts = [documents[a:b] for a, b in pairwise(cuts)]
    train, dev, test = (
        Part([pair_features(d) for d in part], [d.labels for d in part]) for part in parts
    )
    return train, dev, test


def train_svm(
    parts: tuple[Part, Part, Part], Cs: Sequence[float], **parameters: Any
) -> list[dict[str, Any]]:
    """One record for each C: dev and test measures, rounds and time."""
    train, dev, test = parts
    records = []
    for C in Cs:
        start = time.perf_counter()
        model = CoreferenceResolver(C, tol=TOL, **parameters)
        model.fit_pairs(train.examples, train.labels)
        predicted = model.predict_pairs(test.examples)
        record = {
            "C": C,
            **parameters,
            "rounds": model.result_.n_iter,
            "passes": model.result_.passes,
            "objective": model.result_.value,
            "seconds": time.perf_counter() - start,
            "dev": dev.measure(model.predict_pairs(dev.examples)),
            "test": test.measure(predicted),
            "documents": test.compare(predicted),
        }
        records.append(record)
        study.say(
            f"{parameters} C={C:g}: {record['rounds']} rounds, {record['seconds']:.0f} s, dev "
            f"CoNLL {record['dev']['conll']:.4f}, MITRE {record['dev']['mitre_loss']:.4f}"
        )
    return records


def train_perceptron(parts: tuple[Part, Part, Part], seed: int) -> dict[str, Any]:
    """The averaged latent perceptron, without the loss; the best epoch by dev CoNLL."""
    train, dev, test = parts
    task = CoreferenceTask(len(FEATURES))
    weights = np.full(len(train.examples), 1.0 / len(train.examples))
    problem = task.problem(train.examples, train.labels, weights, augmented=False, online=True)
    best: dict[str, Any] = {}

    def answers(part: Part, w: NDArray[np.float64]) -> list[Any]:
        return [task.argmax(w, x).labels for x in part.examples]

    def watch(progress: Any) -> None:
        on_dev = dev.measure(answers(dev, progress.w))
        if not best or on_dev["conll"] > best["dev"]["conll"]:
            found = answers(test, progress.w)
            best.update(epoch=progress.n_iter, dev=on_dev)
            best.update(test=test.measure(found), documents=test.compare(found))

    Perceptron(EPOCHS, seed).solve(problem, callback=watch)
    found = f"epoch {best['epoch']}, dev CoNLL {best['dev']['conll']:.4f}"
    study.say(f"perceptron, seed {seed}: {found}")
    return {"seed": seed, **best}


def chosen(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The record with the best dev CoNLL; of equals, the first."""
    return max(records, key=lambda record: record["dev"]["conll"])


def run(
    folder: Path,
    *,
    n_documents: int | None = None,
    Cs: Sequence[float] = CS,
    rs: Sequence[float] = RS,
    correlation_Cs: Sequence[float] = CORRELATION_CS,
    seeds: Sequence[int] = SEEDS,
) -> dict[str, Any]:
    """All models on the CoNLL files of ``folder``; the records that `table` shows."""
    parts = read_parts(folder, n_documents)
    test = parts[2]
    study.say(f"documents: {[len(part.examples) for part in parts]}, {len(FEATURES)} features")
    sizes = [x.n_mentions for x in test.examples]
    return {
        "documents": [len(part.examples) for part in parts],
        "baselines": {
            "all mentions apart": test.measure([np.arange(n) for n in sizes]),
            "all mentions together": test.measure([np.zeros(n, np.int64) for n in sizes]),
        },
        "perceptron": [train_perceptron(parts, seed) for seed in seeds],
        "latent": {str(r): train_svm(parts, Cs, model="latent", r=r) for r in rs},
        "correlation": train_svm(parts, correlation_Cs, model="correlation", max_iter=MAX_CUTS),
    }


COLUMNS = ("mitre_loss", "pair_loss", "muc", "b_cubed", "ceaf_m", "ceaf_e", "conll")


def table(results: dict[str, Any]) -> str:
    """The results beside the paper's as Markdown."""
    train, dev, test = results["documents"]
    lines = [
        f"LitBank, {train} documents for training, {dev} for choosing C, {test} for testing; in "
        "percent. MITRE loss is 1 − F1 of MUC.",
        "",
        "| model | MITRE loss | pair loss | MUC | B³ | CEAF_m | CEAF_e | CoNLL | paper (MUC6): "
        "MITRE, pair |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in results["baselines"].items():
        lines.append(_row(name, found))
    record = chosen(results["correlation"])
    lines.append(
        _row(
            f"correlation clustering, C = {record['C']:g}", record["test"], "correlation clustering"
        )
    )
    runs = [found["test"] for found in results["perceptron"]]
    means = {name: float(np.mean([found[name] for found in runs])) for name in COLUMNS}
    deviation = 100 * float(np.std([found["conll"] for found in runs]))
    lines.append(_row(f"latent perceptron, {len(runs)} seeds (CoNLL ± {deviation:.1f})", means))
    for r, records in results["latent"].items():
        record = chosen(records)
        paper = "latent SVM, r = 1" if float(r) == 1.0 else "latent SVM, modified loss"
        lines.append(
            _row(f"latent SVM, r = {float(r):g}, C = {record['C']:g}", record["test"], paper)
        )
    lines += ["", "Rounds of CCCP, passes over the documents and dev CoNLL by C:", ""]
    Cs = [record["C"] for record in next(iter(results["latent"].values()))]
    lines.append("| r | " + " | ".join(f"C = {C:g}" for C in Cs) + " |")
    lines.append("|---" * (len(Cs) + 1) + "|")
    for r, records in results["latent"].items():
        cells = [
            f"{record['rounds']} rounds, {record['passes']:.0f} passes, "
            f"{100 * record['dev']['conll']:.1f}"
            for record in records
        ]
        lines.append(f"| {float(r):g} | " + " | ".join(cells) + " |")
    lines += ["", f"Differences on the test documents, with 95 % intervals of {N_DRAWS:,} draws of"]
    lines[-1] += " these documents (paired bootstrap); the perceptron is that of the first seed:"
    lines += ["", markdown(["", "MITRE loss", "pair loss", "CoNLL"], _differences(results))]
    return "\n".join(lines)


def _differences(results: dict[str, Any]) -> list[list[str]]:
    """Every model against correlation clustering, and others against the latent SVM at r = 1."""
    models = {f"r = {float(r):g}": chosen(records) for r, records in results["latent"].items()}
    models["perceptron"] = results["perceptron"][0]
    rows = []
    for title, against in (
        ("correlation clustering", chosen(results["correlation"])),
        ("r = 1", models["r = 1"]),
    ):
        for name, record in models.items():
            if name != title:
                found = bootstrap(record["documents"], against["documents"])
                cells = (
                    f"{100 * d:+.2f} ({100 * a:+.2f} to {100 * b:+.2f})"
                    for d, a, b in found.values()
                )
                rows.append([f"{name} less {title}", *cells])
    return rows


def _row(name: str, found: dict[str, float], paper: str | None = None) -> str:
    cells = [f"{100 * found[column]:.{2 if 'pair' in column else 1}f}" for column in COLUMNS]
    theirs = "{:.1f}, {:.2f}".format(*PAPER[paper]) if paper else ""
    return f"| {name} | " + " | ".join([*cells, theirs]) + " |"
