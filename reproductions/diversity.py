"""What diversity gains and costs: German sentences (XQuAD-R) and questions with two intents.

A question with two intents is one of two questions, of different articles, joined; its relevant
sentences are those of both. A reranker is trained on single questions of a third of the articles,
weights are chosen on a third, and the last third is scored once. Intents covered are the share of
both whose sentence is among the first three. Single questions have one intent: there diversity can
only lose, and the table says how much.

``python -m reproductions.diversity DATA`` prints the table; DATA is the folder ``rerank``.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from didyma.data.lists import Lists
from didyma.text import Diversity, PassageIndex, TextReranker

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
CUT, TOP, CANDIDATES, MOST = 10, 3, 50, 300


class Asked(NamedTuple):
    """A query, and the relevant sentence of each of its intents."""

    query: str
    intents: tuple[str, ...]


def read(folder: Path) -> tuple[dict[str, str], dict[str, list[Asked]]]:
    """Sentences by id, and questions by article."""
    rows = {
        name: [line.split("\t") for line in (folder / f"{name}.tsv").read_text().splitlines()]
        for name in ("queries", "passages", "qrels")
    }
    queries, by_article = dict(rows["queries"]), dict[str, list[Asked]]()
    for qid, sentence, _ in rows["qrels"]:
        asked = Asked(queries[qid], (sentence,))
        by_article.setdefault(sentence.partition("-")[0], []).append(asked)
    return dict(rows["passages"]), by_article


def joined(articles: Sequence[list[Asked]], rng: np.random.Generator) -> list[Asked]:
    """Questions with two intents, of different articles."""
    pairs = []
    for _ in range(MOST):
        one, other = rng.choice(len(articles), 2, replace=False)
        first, second = (articles[n][rng.integers(len(articles[n]))] for n in (one, other))
        pairs.append(Asked(f"{first.query} {second.query}", first.intents + second.intents))
    return pairs


def gain(found: Sequence[str], intents: Sequence[str]) -> float:
    """nDCG@10, which is α-nDCG with any α, as each intent has one sentence."""
    places = [n for n, name in enumerate(found[:CUT]) if name in intents]
    best = sum(1 / math.log2(n + 2) for n in range(len(intents)))
    return sum(1 / math.log2(n + 2) for n in places) / best


def measures(rankings: list[list[str]], asked: list[Asked]) -> tuple[float, float, float]:
    """Intents covered by the first three, nDCG@10, and the mean reciprocal rank of the first."""
    covered, gains, reciprocal = [], [], []
    for found, (_, intents) in zip(rankings, asked):
        covered.append(sum(name in found[:TOP] for name in intents) / len(intents))
        gains.append(gain(found, intents))
        places = [n for n, name in enumerate(found, 1) if name in intents]
        reciprocal.append(1 / places[0] if places else 0.0)
    return float(np.mean(covered)), float(np.mean(gains)), float(np.mean(reciprocal))


def ranked(
    index: PassageIndex, reranker: TextReranker, asked: list[Asked], weight: float, by: str
) -> list[list[str]]:
    """Ids of the first ten sentences for each query."""
    then = [Diversity(weight, by)] if weight else []
    return [
        [
            str(one.id)
            for one in index.search(query, CUT, reranker=reranker, candidates=CANDIDATES, then=then)
        ]
        for query, _ in asked
    ]


def trained(index: PassageIndex, asked: list[Asked]) -> TextReranker:
    """A reranker of the candidates that the index finds."""
    queries, passages, labels = [], [], []
    for query, intents in asked:
        found = index.search(query, CANDIDATES)
        queries.append(query)
        passages.append([one.text for one in found])
        labels.append([float(one.id in intents) for one in found])
    lists = Lists.of_texts(queries, passages, labels)
    return TextReranker(language="german", quick=True).fit(lists)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m reproductions.diversity", description=__doc__)
    parser.add_argument("data", type=Path)
    sentences, by_article = read(parser.parse_args().data / "xquadr-de")
    rng = np.random.default_rng(0)
    names = rng.permutation(sorted(by_article)).tolist()
    parts = [[by_article[name] for name in names[n::3]] for n in range(3)]
    documents = [
        {"id": name, "text": text, "article": name.partition("-")[0]}
        for name, text in sentences.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        index = PassageIndex.build(documents, Path(folder) / "index", language="german")
        reranker = trained(index, [one for article in parts[0] for one in article])
        for by in ("words", "article"):
            dev, test = joined(parts[1], rng), joined(parts[2], rng)
            values = {w: measures(ranked(index, reranker, dev, w, by), dev) for w in WEIGHTS}
            for weight, value in values.items():
                print(f"dev {by} {weight:g}: covered@3 {value[0]:.3f}, nDCG@10 {value[1]:.3f}")
            best = max(WEIGHTS, key=lambda weight: values[weight][1])
            single = [one for article in parts[2] for one in article][:MOST]
            for weight in dict.fromkeys((0.0, best)):
                two = measures(ranked(index, reranker, test, weight, by), test)
                one = measures(ranked(index, reranker, single, weight, by), single)
                print(
                    f"test {by} {weight:g}: two intents covered@3 {two[0]:.3f}, "
                    f"nDCG@10 {two[1]:.3f}; one intent RR {one[2]:.3f}"
                )


if __name__ == "__main__":
    main()
