"""Small collections of texts to rerank, of the project's own making."""

from __future__ import annotations

import numpy as np

from didyma.data.lists import Lists

THINGS = ("ship", "tree", "clock", "wing", "river", "bridge", "storm", "garden", "engine", "lamp")
DOINGS = (
    "sails",
    "grows",
    "stops",
    "lifts",
    "floods",
    "breaks",
    "rises",
    "blooms",
    "turns",
    "burns",
)


def made(n_queries: int = 40, seed: int = 0, *, n_passages: int = 6, scores: bool = False) -> Lists:
    """Queries with an answer that BM25 can mistake: a long passage has the words as well."""
    rng = np.random.default_rng(seed)
    queries, passages, labels, first = [], [], [], []
    for number in rng.permutation(1000)[:n_queries]:
        thing, place, doing = THINGS[number // 100], THINGS[number // 10 % 10], DOINGS[number % 10]
        others = [t for t in THINGS if t not in (thing, place)]
        queries.append(f"when does the {thing} of the {place} {doing[:-1]}?")
        own = [f"The {thing} of the {place} {doing} in {rng.integers(1700, 2000)}."]
        own += [f"A {thing} {thing} {thing} is near the {place}, which {rng.choice(DOINGS)} there."]
        while len(own) < n_passages:
            a, b = rng.choice(others, 2)
            own.append(f"The {a} of the {b} {rng.choice(DOINGS)} or {doing} in {rng.integers(9)}.")
        order = rng.permutation(n_passages)
        passages.append([own[n] for n in order])
        labels.append([float(n == 0) for n in order])
        first.append((rng.normal(size=n_passages) + (order == 0)).tolist())
    return Lists.of_texts(queries, passages, labels, first if scores else None)


class Counting:
    """An encoder for which queries are near what begins with "yes"; it notes what it is asked."""

    def __init__(self, *near: str) -> None:
        self.asked: list[str] = []
        self.near = {"yes", "does", *near}

    def encode(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        near = [text.partition(" ")[0].strip(",") in self.near for text in texts]
        return np.where(np.array(near)[:, None], [1.0, 0.1], [0.1, 1.0])


def yes_or_no(n_queries: int = 12) -> Lists:
    """Lists that a `Counting` encoder ranks without a fault, and words do not."""
    answers = [
        [f"{'yes' if n % 3 == k else 'nes'} {n} {k}" for k in range(3)] for n in range(n_queries)
    ]
    labels = [[int(n % 3 == k) for k in range(3)] for n in range(n_queries)]
    return Lists.of_texts([f"does it sail on {n}?" for n in range(n_queries)], answers, labels)
