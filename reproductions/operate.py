"""Does a comparison promote the better model? Does the power estimate foresee what queries show?

    python -m reproductions.operate                 both questions: a quarter of an hour
    python -m reproductions.operate --quick         five draws
    python -m reproductions.operate --write         put the tables into docs/RESULTS.md

From a collection, models are trained on few and on many queries, drawn again for each of fifty
draws. Other queries, some to compare on and 400 as the truth, decide which is better.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.metrics import evaluate, power_of, t_test
from didyma.report.model_comparison import ModelComparison
from didyma.report.table import markdown
from didyma.text import TextReranker
from reproductions import study
from reproductions.rerank_collections import COLLECTIONS

NAMES = ("xquadr-de",)
FEW, MANY, COMPARED, AT_HAND, POOL = 15, 120, 150, 60, 400
LATER = (100, 200)  # queries whose verdict is foreseen
DRAWS, REDRAWS = 50, 200

Vector = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = study.Arguments(__doc__, "json", "quick")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Both tables of all collections."""
    warnings.simplefilter("ignore")
    draws = 5 if options.quick else DRAWS
    results: dict[str, list[dict[str, Any]]] = {}
    for name in NAMES:
        title, _, read = COLLECTIONS[name]
        lists = read(options.data).lists
        lists = lists.select_lists(np.flatnonzero(lists.mixed))
        results[title] = []
        for seed in range(draws):
            results[title].append(draw(lists, seed))
            study.say(f"{title}: {seed + 1} of {draws}")
    sections = {"operate_promotion": promotion(results), "operate_power": power(results)}
    study.publish(options, sections, results, seed=f"0 to {draws - 1}")


def draw(lists: Lists, seed: int) -> dict[str, Any]:
    """Three models, compared on some queries, and what all others say of them."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(lists.groups))
    few, many, other = np.split(order[: FEW + 2 * MANY], [FEW, FEW + MANY])
    rest = order[FEW + 2 * MANY :]
    compared, pool = lists.select_lists(rest[:COMPARED]), lists.select_lists(rest[COMPARED:][:POOL])
    models = {
        name: TextReranker(quick=True).fit(lists.select_lists(own))
        for name, own in {"few": few, "many": many, "other": other}.items()
    }
    values = {name: ap(model, pool) for name, model in models.items()}
    found: dict[str, Any] = {}
    for old, new in (("few", "many"), ("many", "few"), ("many", "other")):
        verdict = ModelComparison.of(models[old], models[new], compared)
        truth = float((values[new] - values[old]).mean())
        found[f"{old} → {new}"] = {"promote": verdict.better, "truth": truth}
    at_hand = lists.select_lists(rest[:AT_HAND])
    differences = ap(models["many"], at_hand) - ap(models["few"], at_hand)
    truth_differences = values["many"] - values["few"]
    found["power"] = [foreseen(differences, truth_differences, n, random) for n in LATER]
    return found


def ap(model: TextReranker, lists: Lists) -> Vector:
    """Average precision of each query."""
    return evaluate(model.predict(lists), lists.y, lists.groups, "AP", docid=lists.docid)["AP"]


def foreseen(
    at_hand: Vector, later: Vector, n: int, random: np.random.Generator
) -> dict[str, float]:
    """The chance that n queries show the gain: by the deviation at hand, and as draws show it."""
    gain = float(later.mean())
    drawn = [later[random.integers(0, len(later), n)] for _ in range(REDRAWS)]
    shown = np.mean([t_test(own, np.zeros(n)) < 0.05 and own.mean() > 0 for own in drawn])
    deviation = float(at_hand.std(ddof=1))
    return {"n": n, "gain": gain, "foreseen": power_of(n, deviation, gain), "shown": float(shown)}


def promotion(results: dict[str, list[dict[str, Any]]]) -> str:
    """How often the new model is promoted, by whether it is the better one on all other queries."""
    rows = []
    for title, draws in results.items():
        for pair in ("few → many", "many → few", "many → other"):
            own = [one[pair] for one in draws]
            better = [one for one in own if one["truth"] > 0]
            worse = [one for one in own if one["truth"] <= 0]
            rows.append(
                [
                    title,
                    pair,
                    f"{np.mean([one['truth'] for one in own]):+.3f}",
                    *(
                        f"{sum(one['promote'] for one in part)} of {len(part)}"
                        for part in (better, worse)
                    ),
                ]
            )
    head = ["collection", "old → new", "gain in AP", "promoted if better", "promoted if worse"]
    return (
        f"Models of {FEW} (few) and {MANY} (many, other) training queries, compared on {COMPARED}; "
        f"the truth is the mean over {POOL} other queries.\n\n{markdown(head, rows)}"
    )


def power(results: dict[str, list[dict[str, Any]]]) -> str:
    """What was foreseen by the queries at hand, and what was shown, in thirds of the former."""
    rows = []
    for title, draws in results.items():
        for n in LATER:
            own = [p for one in draws for p in one["power"] if p["n"] == n and p["gain"] > 0]
            own.sort(key=lambda p: p["foreseen"])
            for third, part in zip(("least", "middle", "most"), np.array_split(np.array(own), 3)):
                if len(part):
                    means = [np.mean([p[k] for p in part]) for k in ("gain", "foreseen", "shown")]
                    apart = np.mean([abs(p["foreseen"] - p["shown"]) for p in part])
                    figures = [f"{means[0]:.3f}", *(f"{m:.2f}" for m in (*means[1:], apart))]
                    rows.append([title, f"{n}", third, *figures])
    head = ["collection", "queries", "third", "gain in AP", "foreseen", "shown", "mean distance"]
    return (
        f"The chance that so many queries show the gain of many over few with p < .05 (t-test): "
        f"foreseen by the deviation over {AT_HAND} queries, and the share of {REDRAWS} draws from "
        f"{POOL} other queries. Draws by what was foreseen, in thirds.\n\n{markdown(head, rows)}"
    )


if __name__ == "__main__":
    sys.exit(main())
