"""Haponchyk and Moschitti (2019), Table 2: the models on the embeddings of a convolutional network.

    python -m reproductions.latent_reranking --features cnn             about 20 minutes on a core
    python -m reproductions.latent_reranking --features cnn --quick     one network, two values of C

A network is trained by cross-entropy, as theirs, and its sentence vectors [φ(q), φ(d)] are the
features of all models. A second one, which needs no further model, is trained end to end by the
structured hinge of average precision. Each is trained from several seeds. Their word vectors came
from a large corpus; ours begin at random and are learned from the training questions alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.applications.passages.ranker import PassageRanker
from didyma.data.lists import Lists
from didyma.report.table import markdown
from reproductions import latent_reranking as reranking
from reproductions import study
from reproductions.kept import Kept
from reproductions.latent_reranking import _spread

Vector = NDArray[np.float64]
Asked = Mapping[str, Lists]

SETS = ("train", "dev", "test")
NETWORKS = {"CNN": "cross-entropy", "CNN, AP end to end": "ap"}
REFERENCE = "CNN"
CS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
SETTINGS: dict[str, Any] = {"epochs": 12, "patience": 3}
QUICK: dict[str, Any] = {"epochs": 3, "dimension": 10, "filters": 20, "hidden": 20}

# Table 2, dev and test: MAP, MRR, P@1.
PAPER: dict[str, tuple[str, str]] = {
    "CNN": ("71.7 72.0 59.8", "68.7 70.3 56.1"),
    "SVM": ("70.7 70.9 58.2", "65.0 66.7 53.2"),
    "LSP": ("67.7 67.7 52.5", "65.3 66.8 52.3"),
    "SVMmap": ("72.8 73.6 63.1", "66.9 68.6 54.9"),
    "LSP-AP": ("70.7 70.5 56.6", "64.2 65.6 50.2"),
    "LSSVM-AP": ("71.3 71.9 59.8", "67.6 69.2 55.7"),
    "LSP-AP*": ("73.7 74.6 64.8", "65.7 67.5 52.3"),
    "LSSVM-AP*": ("71.9 72.2 60.7", "67.9 69.7 56.5"),
}


def encode(asked: Asked, loss: str, seed: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of dev and test by a network, and the embeddings of all three sets.

    Cross-entropy learns from questions without an answer too.
    """
    ranker = PassageRanker(loss, random_state=seed, device="cpu", **settings)
    ranker.fit(asked["all" if loss == NETWORKS[REFERENCE] else "train"], asked["dev"])
    found = {f"{name} scores": ranker.predict(asked[name]) for name in SETS[1:]}
    found |= {name: ranker.embed(asked[name]) for name in SETS}
    seconds = sum(record["seconds"] for record in ranker.history_.records)
    return {**found, "epoch": ranker.history_.best_epoch, "seconds": seconds}


def split_of(asked: Asked, found: Mapping[str, Any]) -> Any:
    """The embeddings as features."""
    return reranking.Split(*(asked[name].with_items(found[name]) for name in SETS))


def judged(split: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """The network's own ranking, as `fitted` gives that of a model."""
    values = {
        f"{name} {measure}": each
        for name in SETS[1:]
        for measure, each in reranking.judge(getattr(split, name), found[f"{name} scores"]).items()
    }
    return {**values, "C": np.nan, "epoch": found["epoch"]}


def fitted(name: str, split: Any, Cs: Sequence[float], epochs: int, seed: int) -> dict[str, Any]:
    """Measures of each question of dev and test, by a model that is chosen on dev."""
    chosen = reranking.choose(reranking.MODELS[name], split, Cs, epochs, seed)
    values = {f"dev {measure}": each for measure, each in chosen.dev.items()}
    values |= {f"test {measure}": each for measure, each in chosen.test.items()}
    return {**values, "C": chosen.C, "epoch": chosen.epoch or 0}


def reproduce_part(part: str, options: argparse.Namespace, cache: Kept) -> dict[str, Any]:
    """All networks and models on one collection."""
    asked = reranking.read(part, options.data / part, options.seed)
    if part == "trecqa":
        asked["all"] = asked["train"]  # ten candidates of each question, for all models
    settings, Cs, epochs = (QUICK, CS[2:3], 5) if options.quick else (SETTINGS, CS, 100)
    counts = {name: len(asked[name]) for name in ("all", *SETS)}
    seeds = range(options.seed, options.seed + (1 if options.quick else options.seeds))
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (*NETWORKS, *reranking.MODELS)}
    embedded = {}
    for seed, (name, loss) in product(seeds, NETWORKS.items()):
        key = {"part": part, "seed": seed, "rows": counts, "settings": settings, "loss": loss}
        found = cache.arrays(key, partial(encode, asked, loss, seed, settings))
        split = split_of(asked, found)
        if name == REFERENCE:
            embedded[seed] = key, split
        runs[name].append(judged(split, found))
        study.say(f"{part}, seed {seed}, {name}: epoch {found['epoch']}, {found['seconds']:.0f} s")
    for name, seed in product(reranking.MODELS, seeds):
        key, split = embedded[seed]
        key = {**key, "model": name, "Cs": Cs, "epochs": epochs}
        row = cache.arrays(key, partial(fitted, name, split, Cs, epochs, seed))
        runs[name].append(row)
        study.say(f"{part}, seed {seed}, {name}: C {row['C']:g}")
    return {
        "questions": {name: len(asked[name].groups) for name in SETS},
        "networks": len(runs[REFERENCE]),
        "models": summary(runs),
    }


def summary(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Means and deviations over the seeds; questions won and lost by their mean AP."""
    mean_ap = {
        name: np.mean([run["test MAP"] for run in found], axis=0) for name, found in runs.items()
    }
    rows = {}
    for name, found in runs.items():
        values = {
            part: {
                measure: _spread([float(run[f"{part} {measure}"].mean()) for run in found])
                for measure in reranking.MEASURES
            }
            for part in SETS[1:]
        }
        rows[name] = {
            **values,
            "C": [float(run["C"]) for run in found if np.isfinite(run["C"])],
            "epoch": [int(run["epoch"]) for run in found],
            **reranking.against(mean_ap[name], mean_ap[REFERENCE]),
        }
    return rows


def table(part: str, found: Mapping[str, Any]) -> str:
    """Ours, and on WikiQA the paper's, beside each other."""
    with_paper = part == "wikiqa"
    measures = list(reranking.MEASURES)
    header = ["", *(f"{name} {measure}" for name in SETS[1:] for measure in measures)]
    header += ["W/L", "p", "C"]
    header += [f"paper: dev {' '.join(measures)}", "paper: test"] if with_paper else []
    body = []
    for name, row in found["models"].items():
        line = [name]
        for values in (row["dev"], row["test"]):
            line += [f"{100 * mean:.1f} ± {100 * spread:.1f}" for mean, spread in values.values()]
        line += ["", ""] if name == REFERENCE else reranking._against(row)
        line.append("" if name == "LSP" else ", ".join(f"{C:g}" for C in sorted(set(row["C"]))))
        body.append(line + (list(PAPER.get(name, ("", ""))) if with_paper else []))
    counts = " / ".join(str(count) for count in found["questions"].values())
    return "\n\n".join(
        [
            f"### {reranking.TITLES[part]}, embeddings of a convolutional network",
            f"{counts} questions (train / dev / test); means ± deviations over "
            f"{found['networks']} networks. W/L and p compare the AP of test questions, the mean "
            "over networks, with that of the network trained by cross-entropy.",
            markdown(header, body),
        ]
    )


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print their tables, and write what was asked for."""
    from threadpoolctl import threadpool_limits
    from torch import set_num_threads

    set_num_threads(1)
    cache = Kept(options.cache)
    with threadpool_limits(1):
        results = {part: reproduce_part(part, options, cache) for part in options.parts}
    text = "\n\n".join(table(part, found) for part, found in results.items())
    seeds = f"0 to {options.seeds - 1}"
    study.publish(options, {"latent_reranking_cnn": text}, results, seed=seeds)
