"""Word vectors in the network of Table 2 (Haponchyk and Moschitti 2019): do they help on dev?

    python -m reproductions.passage_vectors            some ten minutes on one core
    python -m reproductions.passage_vectors --write    put the table into docs/RESULTS.md

The paper's network has word vectors from a large corpus; that of `latent_reranking_cnn` learns its
own from the training questions. Here it is given those of the package wordllama, as they are or to
be trained further, for all words or for those that occur twice in training, which are the ones that
it would learn a vector of. Only WikiQA's dev questions are looked at.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from didyma.applications.networks.words import Vectors
from didyma.applications.passages.ranker import SPREAD, PassageRanker
from didyma.applications.passages.text_pairs import shape, tokenize
from didyma.data.lists import Lists
from didyma.report.table import markdown
from didyma.text.encoders.static import SubwordTable
from reproductions import latent_reranking as reranking
from reproductions import study
from reproductions.kept import Kept
from reproductions.latent_reranking_cnn import QUICK, SETTINGS

DIMENSION = 50  # that of learned vectors

# How often a word must occur to be given a vector (None: no word is), and what becomes of it.
WAYS: dict[str, tuple[int | None, dict[str, Any]]] = {
    "learned": (None, {}),
    "given for all words, frozen": (1, {"tune_vectors": False}),
    "given for all words, trained further": (1, {"tune_vectors": True}),
    "given for words that occur twice, frozen": (2, {"tune_vectors": False}),
    "given for words that occur twice, trained further": (2, {"tune_vectors": True}),
    "the same, with the similarity of the two texts": (
        2,
        {"tune_vectors": True, "similarity": True},
    ),
    "learned, with the similarity of the two texts": (None, {"similarity": True}),
}


def vectors(asked: Mapping[str, Lists], least: int) -> Vectors:
    """Of words of the training questions; as wide and as spread as those that are learned."""
    texts = asked["all"].query_texts + asked["all"].texts
    counts = Counter(word for text in texts for word in map(shape, tokenize(text)))
    words = sorted(word for word, count in counts.items() if count >= least)
    given = SubwordTable.installed()([word.lower() for word in words])
    given -= given.mean(axis=0)
    _, _, axes = np.linalg.svd(given, full_matrices=False)
    narrow = given @ axes[:DIMENSION].T
    return words, narrow * (SPREAD / narrow.std())


def train(asked: Mapping[str, Lists], way: str, seed: int, settings: Mapping[str, Any]) -> Any:
    """AP of the network on dev, and the epoch that it has it after."""
    least, options = WAYS[way]
    ranker = PassageRanker(
        "cross-entropy", random_state=seed, device="cpu", **{**settings, **options}
    )
    ranker.fit(asked["all"], asked["dev"], None if least is None else vectors(asked, least))
    found = reranking.judge(asked["dev"], ranker.predict(asked["dev"]))["MAP"]
    return {"dev": float(found.mean()), "epoch": ranker.history_.best_epoch}


def table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Means over the seeds, and each seed."""
    rows = []
    for way, runs in found.items():
        values = 100 * np.array([run["dev"] for run in runs])
        spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
        rows.append([way, f"{values.mean():.1f}{spread}", ", ".join(f"{v:.1f}" for v in values)])
    return markdown(["word vectors", "dev MAP", "seeds"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "quick", "seeds", "cache")
    parser.set_defaults(cache=study.ROOT / "build")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Train the networks that are not kept, and write the table."""
    from threadpoolctl import threadpool_limits
    from torch import set_num_threads

    set_num_threads(1)
    settings = {**QUICK, "dimension": DIMENSION} if options.quick else SETTINGS
    seeds = range(1 if options.quick else options.seeds)
    kept = Kept(options.cache)
    asked = reranking.read("wikiqa", options.data / "wikiqa", 0)
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    with threadpool_limits(1):
        for seed, way in product(seeds, WAYS):
            key = {"way": way, "seed": seed, "settings": settings}
            run = kept.record(key, lambda: train(asked, way, seed, settings))  # noqa: B023
            study.say(f"seed {seed}, {way}: dev {100 * run['dev']:.2f}")
            found[way].append(run)
    study.publish(options, {"passage_vectors": table(found)}, seed=f"0 to {len(seeds) - 1}")


if __name__ == "__main__":
    raise SystemExit(main())
