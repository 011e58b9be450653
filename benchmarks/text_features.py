"""From texts to features: 100 passages of 100 words for one query, on one core.

Words are drawn with the frequencies of a language; two thirds of the distinct ones are learned.
"""

from __future__ import annotations

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import blas_threads, interleave, stopwatch
from didyma.data.lists import Lists
from didyma.text.features.extended import ExtendedFeatures
from didyma.text.features.reading import Reader
from didyma.text.features.small import SmallFeatures
from didyma.text.features.union import TextFeatures
from didyma.text.features.word_vectors import WordVectors

PASSAGES, WORDS, ASKED, N_WORDS = 100, 100, 10, 20_000
LISTS, DIMENSION = 200, 256  # lists that are learned from; of word vectors


def run(scale: float = 1.0) -> list[Row]:
    with blas_threads(1):
        return _rows(max(4, round(PASSAGES * scale)), max(2, round(LISTS * scale)))


def _rows(n_passages: int, n_lists: int) -> list[Row]:
    rng = np.random.default_rng(0)
    queries = [text(rng, ASKED) for _ in range(n_lists)]
    passages = [[text(rng, WORDS) for _ in range(10)] for _ in range(n_lists)]
    vectors = rng.standard_normal((N_WORDS, DIMENSION), dtype=np.float32)
    table = {word(n): vector for n, vector in enumerate(vectors)}
    features = {
        "small": TextFeatures([SmallFeatures()], "english"),
        "extended": TextFeatures([ExtendedFeatures()], "english"),
        "vectors": TextFeatures([WordVectors(table)], "english"),
    }
    asked = Lists.of_texts(queries[:1], [[text(rng, WORDS) for _ in range(n_passages)]])
    for part in features.values():
        part.fit(Lists.of_texts(queries, passages)).transform(asked)
    reader = features["small"].reader_
    reading = reader.read(asked)

    def fresh() -> None:
        Reader.from_state(*reader.state()).read(asked)

    timers = {name: stopwatch(lambda f=f: f.transform(asked)) for name, f in features.items()}
    timers["read"] = stopwatch(lambda: reader.read(asked))
    timers["overlaps"] = stopwatch(lambda: features["small"].parts[0].columns(reading))
    timers["fresh"] = stopwatch(fresh)
    milliseconds = {name: 1e3 * min(s) for name, s in interleave(timers, 20).items()}
    name = f"{n_passages} passages of {WORDS} words"
    return [
        Row.at_most(f"{name}, small set", milliseconds["small"], "ms", 5),
        Row(f"{name}, of which finding the words", milliseconds["read"], "ms"),
        Row(f"{name}, of which their overlaps", milliseconds["overlaps"], "ms"),
        Row.at_most(f"{name}, extended set", milliseconds["extended"], "ms", 20),
        Row(f"{name}, word vectors of {DIMENSION}", milliseconds["vectors"], "ms"),
        Row(f"{name}, finding words, just loaded", milliseconds["fresh"], "ms"),
    ]


def word(n: int) -> str:
    return np.base_repr(n + 1296, 36).lower()


def text(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(word(n) for n in rng.zipf(1.2, n_words) % N_WORDS)
