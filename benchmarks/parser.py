"""The dependency parser: an epoch with the SparseMAP loss against the SSVM loss, and parsing speed.

All on one thread, in the default sizes. A sentence is three of the example treebank, drawn at
random and joined, 23 words on average. spaCy's untrained parser lives in the peers' own
environment; it reads no tags, its convolutions are 96 wide and 4 deep, and it decodes greedily.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.peers import environment, printed
from benchmarks.row import Row
from benchmarks.timing import Timer, interleave, stopwatch, torch_threads
from didyma.applications.parsing.parser import DependencyParser
from didyma.data import conll
from didyma.data.conll import Field, Sentence
from didyma.nn.inference import Inference

DATA = Path(__file__).parents[1] / "examples" / "data" / "treebank-train.conllu"
WORKER = Path(__file__).with_name("parser_worker.py")
SENTENCES, JOINED = 800, 3
EPOCHS = 4  # posteriors are dense in the first epoch, sparse in the last
LOSSES = {"sparsemap": "SparseMAP", "svm": "SSVM"}


def run(scale: float = 1.0) -> list[Row]:
    trees, random = conll.read(DATA, trees=True), np.random.default_rng(0)
    sentences = [
        joined([trees[i] for i in random.choice(len(trees), JOINED)])
        for _ in range(max(8, round(SENTENCES * scale)))
    ]
    with one_thread():
        return [*_training(sentences, scale), *_parsing(sentences)]


def joined(sentences: Sequence[Sentence]) -> Sentence:
    """One sentence of several; the roots of all but the first depend on its root."""
    columns: dict[Field, list[Any]] = {column: [] for column in Field if column != Field.ID}
    root = 0
    for sentence in sentences:
        assert sentence.heads is not None
        heads = np.where(sentence.heads > 0, sentence.heads + len(columns[Field.HEAD]), root)
        root = root or int(np.argmin(heads)) + 1
        for column, values in columns.items():
            values += heads.tolist() if column == Field.HEAD else sentence.column(column)
    return Sentence.from_words(columns[Field.FORM]).replaced(columns)


def _training(sentences: Sequence[Sentence], scale: float) -> Iterator[Row]:
    inside = dict.fromkeys(LOSSES, 0.0)  # seconds of structured inference
    total = dict.fromkeys(LOSSES, 0.0)

    def timer(loss: str) -> Timer:
        def seconds() -> float:
            with timed_inference() as spent:
                parser = DependencyParser(loss, epochs=EPOCHS, device="cpu").fit(sentences)
            taken = sum(record["seconds"] for record in parser.history_.records)
            inside[loss] += sum(spent)
            total[loss] += taken
            return taken / EPOCHS

        return seconds

    for loss in LOSSES:  # warms up
        DependencyParser(loss, epochs=1, device="cpu", hidden=4).fit(sentences[:8])
    seconds = interleave({loss: timer(loss) for loss in LOSSES}, 3 if scale >= 1.0 else 1)
    words = sum(map(len, sentences))
    for loss, name in LOSSES.items():
        yield Row(f"{name}: training", words / seconds.best(loss), "words/s")
    yield Row.at_most("epoch with SparseMAP over SSVM", seconds.ratio("sparsemap", "svm"), "x", 1.3)
    for loss, name in LOSSES.items():
        share = inside[loss] / total[loss]
        yield Row.at_most(f"{name}: inference in a step", share, "share", round(1 / 3, 3))


def _parsing(sentences: Sequence[Sentence]) -> Iterator[Row]:
    parser = DependencyParser(epochs=1, device="cpu").fit(sentences[:100])
    relations = sorted({label for s in sentences for label in s.column(Field.DEPREL)})
    words = sum(map(len, sentences))
    ours = stopwatch(lambda: parser.predict(sentences))
    before = min(ours() for _ in range(3))
    theirs = _spacy(sentences, relations)
    seconds = min(before, *(ours() for _ in range(3)))  # as busy a machine as the peer had
    yield Row("ours: parsing", words / seconds, "words/s")
    if theirs is None:
        yield Row.absent("spaCy: parsing")
        return
    yield Row("spaCy: parsing", words / theirs, "words/s")
    yield Row.at_least("spaCy's time over ours", theirs / seconds, "x", 1)


def _spacy(sentences: Sequence[Sentence], relations: Sequence[str]) -> float | None:
    if (python := environment("spacy")) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sentences.json")
        given = {"sentences": [s.words for s in sentences], "relations": relations}
        path.write_text(json.dumps(given), encoding="utf-8")
        try:
            return float(printed(python, WORKER, path).split()[-1])
        except subprocess.CalledProcessError:
            return None


@contextmanager
def timed_inference() -> Iterator[list[float]]:
    """Seconds of each structured inference in the block."""
    spent: list[float] = []
    maximise = Inference.maximise

    def timed(self: Inference, *arguments: Any) -> Any:
        start = time.perf_counter()
        found = maximise(self, *arguments)
        spent.append(time.perf_counter() - start)
        return found

    with mock.patch.object(Inference, "maximise", timed):
        yield spent


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for the network, and one for structured inference."""
    with torch_threads(1), mock.patch("didyma.execution.n_cores", return_value=1):
        yield
