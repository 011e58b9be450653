"""A probability in any company: of one query and one document alone, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import didyma
from didyma import Lists, TextReranker
from didyma.data.attributes import Attributes
from didyma.text.observation import OLD_FILE
from didyma.text.relevance import RIDGES, Logits
from tests.text.test_text_reranker_signals import letters, with_signals
from tests.text.texts import DOINGS, THINGS, made

QUERY = "when does the ship of the river sail?"
ANSWER = "The ship of the river sails in 1800."
WORDS = (*THINGS, *DOINGS, "the", "of", "when", "1800", "Zanzibar", "sailing", "不", "ships.")


@pytest.fixture(scope="module")
def in_lists() -> TextReranker:
    """Two signals of which each list has scales of its own: the order compares within lists."""
    lists, rng = made(60), np.random.default_rng(0)
    signals = {
        name: np.repeat(np.exp(2 * rng.normal(size=60)), 6) * (lists.y + rng.normal(size=360) / 2)
        for name in ("clicks", "sales")
    }
    relative = replace(lists, items=["It."] * len(lists), attributes=Attributes({}, signals))
    reranker = TextReranker(quick=True).fit(relative)
    assert any(name.endswith((" in list", " rank")) for name in reranker.model_.features.names)
    return reranker


@pytest.fixture(scope="module")
def everything() -> TextReranker:
    """Of fields, signals, a first stage's scores and an encoder, with windows of ten words."""
    lists = with_signals(made(40, scores=True))
    assert lists.attributes is not None
    titles = {"title": [f"{text[:20]}" for text in lists.items]}
    lists = replace(lists, attributes=replace(lists.attributes, fields=titles))
    return TextReranker(encoder=letters, window=10, time_budget=1).fit(lists)


def chances(reranker: TextReranker, documents: list[Any], **more: Any) -> list[float]:
    ranked = {one.index: one.probability for one in reranker.rank(QUERY, documents, **more)}
    return [ranked[n] for n in range(len(documents))]  # type: ignore[misc]


def test_one_pair_has_one_number_in_five_lists(in_lists: TextReranker) -> None:
    """Scores compare the documents of a list; a probability does not."""
    document = {"text": "It.", "clicks": 5.0, "sales": 1.0}
    companies: list[list[dict[str, Any]]] = [
        [],
        [{"text": "It.", "clicks": 0.1}],
        [{"text": "It.", "clicks": 9.0}] * 3,
        [{"text": "It.", "clicks": 6.0}, {"text": "It."}],
        [{"text": "It.", "clicks": float(n)} for n in range(40)],
    ]
    found = [in_lists.rank(QUERY, [document, *others]) for others in companies]
    first = [next(one for one in ranking if one.index == 0) for ranking in found]
    assert len({one.score for one in first}) > 1
    assert len({one.probability for one in first}) == 1


numbers = st.none() | st.floats(-1e6, 1e6)
texts = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
documents = st.fixed_dictionaries(
    {"text": texts, "title": texts, "score": st.floats(-100, 100)},
    optional={"dense": numbers, "clicks": numbers, "kind": st.sampled_from(["blog", "?"])},
)


@given(st.lists(documents, min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_a_probability_is_the_same_in_any_company(everything: TextReranker, given, random) -> None:
    scores = [document.pop("score") for document in given]
    together = chances(everything, given, scores=scores)
    for n, document in enumerate(given):
        (alone,) = chances(everything, [document], scores=scores[n : n + 1])
        assert alone.hex() == together[n].hex()
    order = random.sample(range(len(given)), len(given))
    mixed = chances(everything, [given[n] for n in order], scores=[scores[n] for n in order])
    assert mixed == [together[n] for n in order]


def test_columns_that_compare_documents_do_not_count(everything: TextReranker) -> None:
    assert everything.relevance_ is not None
    names = everything.relevance_.names
    assert not [name for name in names if name.endswith((" in list", " rrf", " rank"))]
    assert "first_reciprocal_rank" not in names
    assert set(names) <= set(everything.featuriser.names)


def test_what_knows_the_passages_of_training_does_not_count() -> None:
    reranker = TextReranker(features="extended").fit(made(40))
    assert reranker.relevance_ is not None
    assert "concepts" in reranker.featuriser.names
    assert "concepts" not in reranker.relevance_.names
    assert "stem_bm25" in reranker.relevance_.names


def test_a_signal_that_is_called_as_the_rank_of_another() -> None:
    lists, rng = made(20), np.random.default_rng(0)
    signals = {name: rng.normal(size=len(lists)) for name in ("dense", "dense rank")}
    reranker = TextReranker(quick=True).fit(replace(lists, attributes=Attributes({}, signals)))
    assert reranker.relevance_ is not None
    assert "signal.dense rank" not in reranker.relevance_.names


def test_it_means_what_it_says() -> None:
    """Labels are drawn by a chance that a signal tells; a held-out half judges."""
    rng = np.random.default_rng(0)
    extent = rng.normal(size=4000)
    truth = 1 / (1 + np.exp(1 - extent))
    labels = (rng.random(4000) < truth).astype(float)
    sizes = np.arange(4000) // 10
    lists = Lists(
        ["It."] * 4000,
        labels,
        sizes,
        queries=["which?"] * 400,
        attributes=Attributes({}, {"extent": extent}),
    )
    reranker = TextReranker(quick=True).fit(lists.select_lists(np.arange(200)))
    values = np.linspace(-2, 2, 9)
    found = chances(reranker, [{"text": "It.", "extent": value} for value in values])
    assert np.abs(np.array(found) - 1 / (1 + np.exp(1 - values))).max() < 0.08
    errors = {(row["of"], row["kind"]): row for row in reranker.calibration_report()}
    assert errors["probability", "chosen"]["brier"] <= np.mean((truth - labels) ** 2) + 0.01
    assert errors["probability", "chosen"]["error"] < 0.04


def test_it_is_monotone_where_the_order_must_be() -> None:
    lists, rng = made(30), np.random.default_rng(0)
    clicks = rng.normal(size=len(lists)) - lists.y  # which tell the contrary
    judged = replace(lists, attributes=Attributes({}, {"clicks": clicks}))
    for quick in (True, False):
        reranker = TextReranker(quick=quick, time_budget=1, increasing=["clicks"]).fit(judged)
        values = np.linspace(-9, 9, 30)
        found = chances(reranker, [{"text": ANSWER, "clicks": value} for value in values])
        assert (np.diff(found) >= 0).all()


def test_without_judgements_there_is_no_probability() -> None:
    fused = TextReranker(quick=True).fit(replace(made(12), labels=None))
    assert [one.probability for one in fused.rank(QUERY, [ANSWER])] == [None]
    assert fused.calibration_report() == []
    with pytest.raises(didyma.DataError, match="a threshold needs"):
        fused.calibration_.threshold(0.9)


def test_a_file_of_before_says_that_probabilities_are_scores(tmp_path: Path) -> None:
    reranker = TextReranker(quick=True).fit(made(12))
    old = tmp_path / "old"
    reranker.relevance_ = None
    reranker.save(old)
    again = didyma.load(old)
    ranking = again.rank(QUERY, [ANSWER, "It rains."])
    assert [one.probability for one in ranking] == [one.score for one in ranking]
    assert ranking.notes == (OLD_FILE,)


def test_the_ridge_is_the_optimum() -> None:
    """Against a general optimiser, and with a weight that must not be negative."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    share = (rng.random(80) < 1 / (1 + np.exp(X[:, 0] - X[:, 1]))).astype(float)
    for ridge, logits in zip(RIDGES, Logits.path(X, share, np.zeros(3))):
        columns = np.vstack([np.clip(X * logits.scales + logits.offsets, -4, 4).T, np.ones(80)])
        n = share.sum()
        target = np.where(share > 0, (n + 1) / (n + 2), 1 / (80 - n + 2))

        def loss(w, columns=columns, target=target, ridge=ridge):
            z = w @ columns
            return np.sum(np.logaddexp(0, z) - target * z) + 40 * ridge * np.sum(w[:3] ** 2)

        best = minimize(loss, np.zeros(4), tol=1e-12).x
        assert np.allclose([*logits.weights, logits.intercept], best, atol=1e-4)
        assert np.allclose(logits(X), best @ columns, atol=1e-4)
    signed = Logits.path(X, share, np.array([1.0, 1.0, 0.0]))[-1]
    assert signed.weights[0] == 0 < signed.weights[1]
