"""Tagged sentences with n-best lists, made up: bags of suffixes, bags of tags and pairs of tags."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix

__all__ = ["INPUTS", "OUTPUTS", "nbest_lists"]

TAGS = 38
WORDS = 21_760
INPUTS = WORDS + WORDS // 3 + 1 + WORDS // 25 + 1  # words, and two classes of their endings
OUTPUTS = TAGS + TAGS**2
BLOCK = 15_000  # sentences made at a time

Integers = NDArray[np.int64]


def nbest_lists(
    n: int, candidates: int = 10, words: float = 24.0, seed: int = 0
) -> tuple[Matrix, Matrix, Lists]:
    """Inputs (n, INPUTS), outputs (n, OUTPUTS) and a list of candidates for each.

    A candidate's loss is its number of wrong tags; the decoder sees it through noise.
    """
    parts = [
        _block(min(BLOCK, n - start), candidates, words, np.random.default_rng([seed, start]))
        for start in range(0, n, BLOCK)
    ]
    X, Y, rows = (
        sp.csr_array(sp.vstack(views, format="csr")) for views in zip(*(p[:3] for p in parts))
    )
    losses, scores = (np.concatenate(values) for values in zip(*(p[3:] for p in parts)))
    groups = Groups.from_lists(np.full(n, candidates))
    return X, Y, Lists(rows, grouping=groups, losses=losses, scores=scores)


def _block(
    n: int, m: int, words: float, rng: np.random.Generator
) -> tuple[Matrix, Matrix, Matrix, NDArray[np.float64], NDArray[np.float64]]:
    lengths = 3 + rng.poisson(words - 3, n)
    tags = _tags(lengths, rng)
    sentence = np.repeat(np.arange(n), lengths)
    # A tag's words have Zipf's frequencies, and their endings are much its own.
    rank = np.minimum(WORDS // TAGS, rng.pareto(0.8, len(tags))).astype(np.int64)
    word = np.minimum(tags * (WORDS // TAGS) + rank, WORDS - 1)
    endings = [word, WORDS + word // 3, WORDS + WORDS // 3 + 1 + word // 25]
    X = _bag(np.tile(sentence, 3), np.concatenate(endings), (n, INPUTS))
    Y = _tag_bag(sentence, tags, n)
    copies = np.repeat(np.arange(n * m), np.repeat(lengths, m))
    lists = [np.tile(own, m) for own in np.split(tags, np.cumsum(lengths)[:-1])]
    guesses = np.concatenate(lists)
    wrong = rng.random(len(guesses)) < 2 / words
    guesses[wrong] = rng.integers(0, TAGS, int(wrong.sum()))
    losses = np.bincount(copies, guesses != np.concatenate(lists), minlength=n * m)
    scores = rng.normal(size=n * m) - losses
    return X, Y, _tag_bag(copies, guesses, n * m), losses, scores


def _tags(lengths: Integers, rng: np.random.Generator) -> Integers:
    """A Markov chain for each sentence, all of them stepping together."""
    chain = np.random.default_rng(0).dirichlet(np.full(TAGS, 0.2), size=TAGS).cumsum(axis=1)
    tags = np.empty((len(lengths), lengths.max()), dtype=np.int64)
    tags[:, 0] = rng.integers(0, TAGS, len(lengths))
    for t in range(1, tags.shape[1]):
        draw = rng.random((len(lengths), 1))
        tags[:, t] = np.minimum(np.sum(chain[tags[:, t - 1]] < draw, axis=1), TAGS - 1)
    return tags[np.arange(tags.shape[1]) < lengths[:, None]]


def _tag_bag(sentence: Integers, tags: Integers, n: int) -> Matrix:
    """Tags, and pairs of neighbours."""
    together = sentence[1:] == sentence[:-1]
    pairs = TAGS + tags[:-1] * TAGS + tags[1:]
    rows = np.concatenate([sentence, sentence[1:][together]])
    return _bag(rows, np.concatenate([tags, pairs[together]]), (n, OUTPUTS))


def _bag(rows: Integers, columns: Integers, shape: tuple[int, int]) -> Matrix:
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
