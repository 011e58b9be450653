"""Time to an equal held-out measure: when boosted trees reach nDCG@10 of our rankers, if they do.

Every ranker is trained for NDCG on one thread, all of them in turns, with default settings (those
of boosters at a rate of 0.1). A booster has reached ours with the first tree after which its
nDCG@10 is not lower; its best is the highest of all trees, which flatters it. Of real data
(../shared/data) the queries for validation are held out; those for testing are not read.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from reproductions.folds import N_PARTS, join

from benchmarks import synthetic
from benchmarks.courses import Course, of_lightgbm, of_ranker, of_xgboost
from benchmarks.row import Row
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.execution import threads
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.scaling import QueryMinMaxScaler
from didyma.ranking.svm import SVMRanker

DATA = Path(__file__).parents[2] / "shared" / "data"
QUERIES, TREES, TURNS = 1000, 300, 3
MEASURE = "nDCG@10"

OURS = {
    "SVMRanker": partial(SVMRanker, "ndcg", n_jobs=1),
    "AdditiveSVMRanker in one fit": partial(
        AdditiveSVMRanker, "ndcg", C=4.0, line="quantile", interactions=0, n_jobs=1
    ),
    "AdditiveSVMRanker without pairs": partial(AdditiveSVMRanker, "ndcg", interactions=0, n_jobs=1),
    "AdditiveSVMRanker": partial(AdditiveSVMRanker, "ndcg", n_jobs=1),
}
JUDGED = "LightGBM lambdarank"  # whose time has a target
OWN_OBJECTIVE = " by our objective"  # of which the measures alone are told
BOOSTERS: Mapping[str, tuple[str, Callable[[Lists, Lists, int], Course]]] = {
    JUDGED: ("lightgbm", partial(of_lightgbm, "lambdarank")),
    "LightGBM" + OWN_OBJECTIVE: ("lightgbm", partial(of_lightgbm, None)),
    "XGBoost rank:ndcg": ("xgboost", partial(of_xgboost, "rank:ndcg")),
    "XGBoost" + OWN_OBJECTIVE: ("xgboost", partial(of_xgboost, None)),
}

Split = tuple[Lists, Lists]  # to train on, and held out
Turn = dict[str, Course]  # by the name of a ranker


def run(scale: float = 1.0, folder: Path = DATA) -> list[Row]:
    rows = []
    trees = max(5, round(TREES * scale))
    with threads(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*queries have rows of one class only")
        for title, split in splits(scale, folder):
            if split is None:
                rows.append(absent(title, folder))
            else:
                rows += [*compare(title, take_turns(split, trees), trees)]
    return rows


# --- Data -----------------------------------------------------------------------------------------


def splits(scale: float, folder: Path) -> Iterator[tuple[str, Split | None]]:
    """Synthetic queries and, in a whole run, real ones; None where their files are absent."""
    n = max(20, round(QUERIES * scale))
    yield "linear", (synthetic.dense(n), synthetic.dense(n // 2, seed=1))
    parts = (synthetic.interacting(size, 0.5, seed=seed) for seed, size in enumerate((n, n // 2)))
    yield "half the signal in pairs", (next(parts), next(parts))
    if scale >= 1:
        yield from collections(folder)


def collections(folder: Path = DATA) -> Iterator[tuple[str, Split | None]]:
    """The real ones."""
    for title, (name, read) in READERS.items():
        yield title, read(folder / name) if (folder / name).is_dir() else None


def absent(title: str, folder: Path = DATA) -> Row:
    return Row.absent(f"{title} (not in {folder.parent.name}/{folder.name})")


def read_letor(folder: Path, scaled: bool) -> Split:
    """Parts 1 to 3 to train on, part 4 held out; part 5 is for tests alone."""
    parts = [letor.read(folder / f"S{n}.txt", sparse=False) for n in (1, 2, 3, 4)]
    if not scaled:
        scale = QueryMinMaxScaler().fit_transform
        parts = [part.with_items(scale(part.X, qid=part.qid)) for part in parts]
    return join(parts[:3]).gathered(), parts[3]


def read_example(folder: Path) -> Split:
    """Every fifth training query is held out; the test file stays unread."""
    data = letor.read(folder / "rank.train", sparse=False)
    part = np.random.default_rng(0).permutation(len(data.groups)) % N_PARTS
    is_held_out = part[data.groups.codes] == 0
    return data.select(~is_held_out).gathered(), data.select(is_held_out)


READERS: Mapping[str, tuple[str, Callable[[Path], Split]]] = {
    "MQ2008": ("mq2008", partial(read_letor, scaled=True)),
    "OHSUMED": ("ohsumed", partial(read_letor, scaled=False)),
    "LightGBM's example": ("lightgbm_lambdarank", read_example),
}


# --- Comparison -----------------------------------------------------------------------------------


def take_turns(split: Split, trees: int) -> list[Turn]:
    """Courses of all rankers: whole ones first, then again as far as boosters reach ours."""
    train, held_out = split
    boosters = {
        name: train_booster
        for name, (package, train_booster) in BOOSTERS.items()
        if find_spec(package) is not None
    }
    few = train.select_lists(np.arange(min(10, len(train.groups))))

    def turn(data: Lists, trees_of: Mapping[str, int]) -> Turn:
        courses = {name: of_ranker(make, data, held_out) for name, make in OURS.items()}
        for name, n_trees in trees_of.items():
            courses[name] = boosters[name](data, held_out, n_trees)
        return courses

    turn(few, dict.fromkeys(boosters, 2))  # loads libraries
    first = turn(train, dict.fromkeys(boosters, trees))
    reached = {name: max(trees_to_ours(first, name).values(), default=0) for name in boosters}
    again = {name: n_trees for name, n_trees in reached.items() if n_trees}
    return [first, *(turn(train, again) for _ in range(TURNS - 1))]


def trees_to_ours(turn: Turn, booster: str) -> dict[str, int]:
    """The number of trees to each ranker of ours that a booster reaches."""
    counts = {name: turn[booster].trees_to(turn[name].values[-1]) for name in OURS}
    return {name: count for name, count in counts.items() if count is not None}


def compare(title: str, turns: list[Turn], trees: int) -> Iterator[Row]:
    """Measures and seconds of all rankers, and ratios of the seconds to an equal measure."""
    first = turns[0]
    for name in OURS:
        yield Row(f"{title}: {name}", first[name].values[-1], MEASURE)
        yield Row(f"{title}: {name}, training", seconds_of_fit(turns, name), "s")
    highest = max(first[name].values[-1] for name in OURS)
    for booster in BOOSTERS:
        if booster not in first:
            yield Row.absent(f"{title}: {booster}")
            continue
        course = first[booster]
        best = int(np.argmax(course.values))
        rank = ", above all of ours" if course.values[best] > highest else ""
        yield Row(f"{title}: {booster}, best of {trees} trees{rank}", course.values[best], MEASURE)
        yield Row(f"{title}: {booster}, training up to its best", course.seconds[best], "s")
        if booster.endswith(OWN_OBJECTIVE):
            continue
        reached = trees_to_ours(first, booster)
        for name in OURS:
            yield ratio(title, turns, booster, name, reached.get(name))


def ratio(title: str, turns: list[Turn], booster: str, name: str, reached: int | None) -> Row:
    """Seconds of a booster to the measure of ours, or of all its trees where it stays below."""
    if reached is None:
        course = turns[0][booster]
        text = f"{title}: {booster} stays below {name}, all {len(course.values)} trees over ours"
        return Row(text, course.seconds[-1] / seconds_of_fit(turns, name), "x")
    ratios = (turn[booster].seconds[reached - 1] / turn[name].seconds[-1] for turn in turns)
    text = f"{title}: {booster} reaches {name} by tree {reached}, time over ours"
    value = statistics.median(ratios)
    return Row.at_least(text, value, "x", 1) if booster == JUDGED else Row(text, value, "x")


def seconds_of_fit(turns: list[Turn], name: str) -> float:
    """Median seconds of a ranker of ours."""
    return statistics.median(turn[name].seconds[-1] for turn in turns)
