"""Words per second and accuracy of the tagger, on one core, against NLTK's TnT and CRFsuite.

English of Universal Dependencies with its fine tags where it is at hand (../shared/data), otherwise
sentences of a hidden Markov model with 50 tags, and all of them in memory. TnT gets NLTK's suffix
tagger for unknown words; CRFsuite has words, affixes, shapes and neighbours.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import ONE_THREAD, environment
from benchmarks.row import Row
from benchmarks.timing import stopwatch
from didyma.applications.tagging.tagger import TrigramTagger
from didyma.data import conll

WORKER = Path(__file__).with_name("tagger_worker.py")
TREEBANK = Path(__file__).parents[2] / "shared" / "data" / "ud" / "en_ewt_ud2.0"
N_TAGS, N_WORDS, LENGTH, AMBIGUITY = 50, 10_000, 16, 1.6  # without a treebank
TIMES = 5


class Tagged(NamedTuple):
    """Sentences and their tags."""

    words: list[list[str]]
    tags: list[list[str]]

    @property
    def n_words(self) -> int:
        return sum(map(len, self.words))


def run(scale: float = 1.0) -> list[Row]:
    train, test = _data(scale)
    tagger = TrigramTagger().fit(*train)
    tagger.n_best(test.words[:1]), tagger.predict(test.words[:1])  # warms up
    seconds = {
        name: min(stopwatch(call)() for _ in range(TIMES))
        for name, call in {
            "fit": lambda: TrigramTagger().fit(*train),
            "1 best": lambda: tagger.predict(test.words),
            "10 best": lambda: tagger.n_best(test.words, 10),
        }.items()
    }
    accuracy = tagger.score(*test)
    return [
        Row("tags", float(len(tagger.tags_)), ""),
        Row("training of the tagger", train.n_words / seconds["fit"], "words/s"),
        Row.at_least("tagging, 1 best", test.n_words / seconds["1 best"], "words/s", 100_000),
        Row("tagging, 10 best", test.n_words / seconds["10 best"], "words/s"),
        Row("tagging, accuracy", 100 * accuracy, "%"),
        *_peer("NLTK TnT", "nltk", "nltk_tnt", train, test, seconds, accuracy),
        *_peer("CRFsuite", "python-crfsuite", "crfsuite", train, test, seconds),
    ]


def _peer(
    name: str,
    package: str,
    peer: str,
    train: Tagged,
    test: Tagged,
    seconds: dict[str, float],
    least: float | None = None,
) -> Iterator[Row]:
    """A peer's seconds over ours, and its accuracy, which ours has to reach if it is given."""
    if (python := environment(package)) is None:
        yield Row.absent(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.json")
        path.write_text(json.dumps([*train, *test]))
        child = subprocess.run(
            [str(python), str(WORKER), peer, str(path)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | ONE_THREAD,
        )
    found = json.loads(child.stdout)
    yield Row.at_least(f"{name}, fit over ours", found["fit"] / seconds["fit"], "x", 1)
    yield Row.at_least(f"{name}, tagging over 1 best", found["tag"] / seconds["1 best"], "x", 1)
    reached = 100 * found["accuracy"]
    judged = ("", None) if least is None else ("≤ ours", reached <= 100 * least)
    yield Row(f"{name}, accuracy", reached, "%", *judged)


def _data(scale: float) -> tuple[Tagged, Tagged]:
    """Training and test sentences, a share of them."""
    if not TREEBANK.is_dir():
        return _synthetic(max(50, round(12_000 * scale)), max(20, round(2_000 * scale)))
    parts = []
    for part in ("train", "test"):
        sentences = conll.read(TREEBANK / f"en-ud-{part}.conllu")
        few = sentences[: max(20, round(len(sentences) * scale))]
        words = [list(sentence.words) for sentence in few]
        parts.append(Tagged(words, [list(s.column(conll.Field.XPOS)) for s in few]))
    return parts[0], parts[1]


def _synthetic(*sizes: int) -> tuple[Tagged, Tagged]:
    """A first-order model; a word has one or a few tags."""
    random = np.random.default_rng(0)
    follow = random.dirichlet(np.full(N_TAGS, 0.1), size=N_TAGS).cumsum(axis=1)
    emit = (random.random((N_TAGS, N_WORDS)) < AMBIGUITY / N_TAGS) / np.arange(1.0, N_WORDS + 1)
    emit = (emit / emit.sum(axis=1, keepdims=True)).cumsum(axis=1)

    def sentence() -> tuple[list[str], list[str]]:
        tags = [int(random.integers(N_TAGS))]
        while len(tags) < LENGTH:
            tags.append(_draw(random, follow[tags[-1]]))
        return [f"w{_draw(random, emit[tag])}" for tag in tags], [f"T{tag}" for tag in tags]

    first, second = ([sentence() for _ in range(size)] for size in sizes)
    return _columns(first), _columns(second)


def _draw(random: np.random.Generator, cumulated: Any) -> int:
    return min(int(np.searchsorted(cumulated, random.random())), len(cumulated) - 1)


def _columns(sentences: list[tuple[list[str], list[str]]]) -> Tagged:
    return Tagged([words for words, _ in sentences], [tags for _, tags in sentences])
