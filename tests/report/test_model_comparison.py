"""Two rerankers on queries that neither has seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.metrics import evaluate
from didyma.metrics.significance import holm, wilcoxon
from didyma.report.model_comparison import ModelComparison, query_groups, unseen
from didyma.text.training_data import TrainingData

N = 40


@dataclass
class Fixed:
    """Scores as they are told, and queries that were seen."""

    noise: float
    trained_on_: TrainingData | None = None

    def predict(self, lists: Lists) -> np.ndarray:
        drawn = [np.random.default_rng(len(text)).normal() for text in lists.texts]
        return lists.y + self.noise * np.array(drawn)


@pytest.fixture(scope="module")
def lists() -> Lists:
    random = np.random.default_rng(0)
    queries = [f"what is {'very ' * (n % 4)}number {n} ?" for n in range(N)]
    passages = [
        ["x" * int(own) for own in random.choice(250, 6, replace=False) + 1] for _ in range(N)
    ]
    return Lists.of_texts(queries, passages, [[1, 0, 0, 1, 0, 0]] * N)


def test_figures_are_those_of_the_values_of_each_query(lists: Lists) -> None:
    old, new = Fixed(2.0), Fixed(0.3)
    found = ModelComparison.of(old, new, lists)
    a, b = (evaluate(own.predict(lists), lists.y, lists.groups, "AP")["AP"] for own in (new, old))
    gain = found.gain
    assert (gain.name, gain.queries) == ("AP", N)
    assert gain.difference == pytest.approx((a - b).mean())
    assert gain.low < gain.difference < gain.high
    error = (a - b).std() / np.sqrt(N)
    assert gain.low == pytest.approx(gain.difference - 1.96 * error, abs=0.4 * error)
    assert gain.p_value == wilcoxon(a, b)
    assert [own.corrected for own in found.measures] == holm(
        [own.p_value for own in found.measures]
    ).tolist()
    assert found.better
    assert found.verdict.startswith("Promote new: AP")
    reverse = ModelComparison.of(new, old, lists)
    assert not reverse.better
    assert "which is worse" in reverse.verdict
    equal = ModelComparison.of(new, new, lists)
    assert not equal.better
    assert "no gain is certain" in equal.verdict


def test_documents_that_moved_have_their_ranks(lists: Lists) -> None:
    old, new = Fixed(2.0), Fixed(0.3)
    found = ModelComparison.of(old, new, lists)
    orders = [
        np.argsort(-model.predict(lists)[lists.groups.rows_of(3)], kind="stable").tolist()
        for model in (old, new)
    ]
    texts = [lists.texts[row] for row in lists.groups.rows_of(3)]
    moved = {text: (before, after) for _, text, _, before, after in found.queries[3].moved}
    for place, text in enumerate(texts):
        ranks = tuple(order.index(place) + 1 for order in orders)
        assert moved.get(text[:300], ranks) == ranks
    assert found.to_dict()["queries"][3]["query"] == lists.queries[3]


def test_queries_of_training_are_left_out(lists: Lists) -> None:
    seen = TrainingData.of(lists.select_lists(range(10)))
    other = TrainingData.of(lists.select_lists(range(5, 12)))
    old, new = Fixed(2.0, seen), Fixed(0.3, other)
    assert unseen(lists, old, new).sum() == N - 12
    found = ModelComparison.of(old, new, lists)
    assert found.gain.queries == N - 12
    assert found.left_out["seen in training"] == 12
    with pytest.raises(DataError, match="40 were seen in training"):
        ModelComparison.of(Fixed(1.0, TrainingData.of(lists)), new, lists)


def test_groups_share_the_queries_out(lists: Lists) -> None:
    strength = np.random.default_rng(1).random(N)
    groups = query_groups(lists, strength)
    lengths = [own for name, own in groups.items() if "words" in name]
    thirds = [own for name, own in groups.items() if "third" in name]
    for parts in (lengths, thirds):
        assert sorted(np.concatenate(parts).tolist()) == list(range(N))
    assert (
        strength[groups["first stage: worst third"]].max()
        < strength[groups["first stage: best third"]].min()
    )
    mixed = Lists.of_texts(
        [*["what is the name of it ?"] * 6, *["was ist der name von der und die ?"] * 6],
        [["a", "b"]] * 12,
        [[1, 0]] * 12,
    )
    assert {"english", "german"} <= query_groups(mixed, np.zeros(12)).keys()


def test_the_page_has_all_of_it(lists: Lists, tmp_path: Path) -> None:
    found = ModelComparison.of(Fixed(2.0), Fixed(0.3), lists)
    found.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for text in ("Promote the new model?", "95 % interval", "six words or more", "Examples"):
        assert text in page
    assert found.verdict.partition(":")[0] in page
