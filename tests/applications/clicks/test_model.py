"""Clicks: examination is told from relevance where documents moved, and nowhere else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.applications.clicks.click_logs import simulate

from didyma.applications.clicks import ClickModel
from didyma.applications.clicks.examination import estimate
from didyma.applications.clicks.log import ClickLog
from didyma.errors import DataError, LeftOutWarning

CURVE = 1.0 / np.arange(1, 7)


def relevances(random: np.random.Generator, n_queries: int) -> np.ndarray:
    return random.choice([0.05, 0.2, 0.6], size=(n_queries, len(CURVE)), p=[0.5, 0.3, 0.2])


def made(*cells: tuple[int, int, int, int, int]) -> ClickLog:
    """A log of cells: query, document, position, impressions, clicks."""
    table = np.array(sorted(cells))
    pairs, pair = np.unique(table[:, :2], axis=0, return_inverse=True)
    return ClickLog(
        [f"q{n}" for n in range(int(table[:, 0].max()) + 1)],
        pairs[:, 0],
        [f"d{n}" for n in pairs[:, 1].tolist()],
        pair.ravel(),
        *table[:, 2:].T,
    )


@pytest.mark.parametrize("method", ["swaps", "em"])
def test_the_curve_is_within_its_interval(method: str) -> None:
    """As often as an interval of 95 % says, or nearly: positions of a log are not independent."""
    inside, widths = [], []
    for seed in range(8):
        random = np.random.default_rng(seed)
        log = simulate(random, relevances(random, 60), CURVE, n_pages=200).log()
        found = estimate(log, method, bootstrap=40)
        assert found.converged
        assert found.values[0] == found.low[0] == found.high[0] == 1
        inside += ((found.low <= CURVE) & (found.high >= CURVE))[1:].tolist()
        widths += (found.high - found.low)[1:].tolist()
    assert np.mean(inside) >= 0.85
    assert max(widths) < 0.2


def test_few_impressions_of_each_document_do_no_harm_to_swaps() -> None:
    random = np.random.default_rng(0)
    log = simulate(random, relevances(random, 3000), CURVE, n_pages=4).log()
    errors = {m: np.abs(estimate(log, m).values - CURVE).max() for m in ("swaps", "em")}
    assert errors["swaps"] < 0.05 < 0.1 < errors["em"]


@pytest.mark.parametrize("method", ["swaps", "em"])
def test_counts_as_expected_give_the_truth(method: str) -> None:
    curve, gammas = {1: 1.0, 2: 0.5, 5: 0.25}, (0.8, 0.4, 0.08)
    log = made(
        *(
            (q, d, k, n, round(n * theta * gammas[d]))
            for q in range(2)
            for d in range(3)
            for k, theta in curve.items()
            for n in [1000 * (d + q + k)]
        )
    )
    found = estimate(log, method)
    assert found.positions.tolist() == [1, 2, 5]
    np.testing.assert_allclose(found.values, [1.0, 0.5, 0.25], rtol=1e-4)


def test_two_positions_shown_alike_differ_as_their_clicks() -> None:
    log = made((0, 0, 1, 50, 20), (0, 0, 2, 50, 5), (1, 0, 1, 90, 10), (1, 0, 2, 90, 10))
    assert estimate(log).values[1] == pytest.approx(15 / 30, abs=1e-5)


cells = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)),
    st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
)


def logs(found: dict[tuple[int, int, int], tuple[int, int]]) -> ClickLog:
    return made(*((*place, *counts) for place, counts in found.items()))


@pytest.mark.parametrize("method", ["swaps", "em"])
@settings(max_examples=60)
@given(found=cells)
def test_no_step_lowers_the_likelihood(
    method: str, found: dict[tuple[int, int, int], tuple[int, int]]
) -> None:
    try:
        examination = estimate(logs(found), method, bootstrap=1)
    except DataError:
        with pytest.raises(DataError, match=r"two positions|first, has no click"):
            estimate(logs(found), method)
        return
    values = np.array(examination.log_likelihood)
    assert np.isfinite(values).all()
    assert np.diff(values).min(initial=0) >= -1e-9 * (1 + np.abs(values).max())
    assert np.isfinite(examination.values).all()
    assert examination.values[0] == 1
    assert (examination.low <= examination.high).all()


@pytest.mark.parametrize("method", ["swaps", "em"])
def test_no_other_curve_has_a_higher_likelihood(method: str) -> None:
    """A general optimiser, of the same likelihoods written down once more, agrees."""
    random = np.random.default_rng(4)
    log = simulate(random, relevances(random, 6), CURVE, n_pages=60).log()
    shown, clicked = (np.zeros((len(log.documents), len(CURVE))) for _ in range(2))
    shown[log.pair, log.position - 1] = log.impressions
    clicked[log.pair, log.position - 1] = log.clicks
    kept = ((shown > 0).sum(axis=1) > 1) & (clicked.sum(axis=1) > 0)
    shown, clicked = shown[kept], clicked[kept]

    def loss(x: np.ndarray) -> float:
        if method == "swaps":
            share = shown * np.exp(np.append(0.0, x))
            share = share / share.sum(axis=1, keepdims=True)
            return float(-(clicked[shown > 0] * np.log(share[shown > 0])).sum())
        chance = 1 / (1 + np.exp(-x))
        rate = np.outer(chance[len(CURVE) :], chance[: len(CURVE)])
        value = clicked * np.log(rate) + (shown - clicked) * np.log1p(-rate)
        return float(-value.sum())

    size = len(CURVE) - 1 if method == "swaps" else len(CURVE) + len(shown)
    least = minimize(loss, np.full(size, -1.0), method="L-BFGS-B", options={"maxfun": 10**6}).fun
    assert -estimate(log, method).log_likelihood[-1] <= least + 1e-4


def test_judgements_order_documents_better_than_click_rates() -> None:
    """Whatever stood first was clicked most."""
    random = np.random.default_rng(1)
    relevance = relevances(random, 200)
    log = simulate(random, relevance, CURVE, n_pages=100).log()
    model = ClickModel(bootstrap=0).fit(log)
    judged = model.judge(log)
    documents = np.array([int(name[1:]) for name in judged.lists.docid.tolist()])
    truth = relevance[judged.lists.groups.codes, documents]
    ordered = {}
    for name, scores in {
        "labels": judged.lists.y,
        "click rates": judged.clicks / judged.impressions,
    }.items():
        right = []
        for n in range(len(judged.lists.groups)):
            rows = judged.lists.groups.rows_of(n)
            better = truth[rows][:, None] > truth[rows]
            right += (scores[rows][:, None] > scores[rows])[better].tolist()
        ordered[name] = np.mean(right)
    assert ordered["labels"] > ordered["click rates"] + 0.05
    raw = np.abs(judged.clicks / judged.impressions - truth).mean()
    assert np.abs(judged.lists.y - truth).mean() < raw / 2


def test_a_label_is_what_its_formula_says() -> None:
    random = np.random.default_rng(2)
    log = simulate(random, relevances(random, 20), CURVE, n_pages=40).log()
    model = ClickModel(clip=0.3, smoothing=2.5, min_impressions=1, bootstrap=0).fit(log)
    judged = model.judge(log)
    propensity = np.maximum(model.examination_.values, 0.3)
    looked = [
        sum(log.impressions[c] * propensity[log.position[c] - 1] for c in cells)
        for cells in (np.flatnonzero(log.pair == pair) for pair in range(len(log.documents)))
    ]
    clicks = np.bincount(log.pair, log.clicks)
    mean = clicks.sum() / np.sum(looked)
    expected = (clicks + 2.5 * mean) / (np.array(looked) + 2.5)
    np.testing.assert_allclose(judged.lists.y, expected)
    np.testing.assert_allclose(judged.weights, looked)
    assert judged.impressions.sum() == log.impressions.sum()
    assert judged.clicks.sum() == log.clicks.sum()
    assert not judged.left_out


def test_what_is_left_out_is_counted() -> None:
    log = made(
        *((0, 0, 1, 50, 20), (0, 0, 2, 50, 5), (0, 1, 2, 3, 1)),  # of which the last is too few
        *((1, 0, 1, 50, 0), (1, 1, 2, 50, 0)),  # without clicks
        (2, 0, 1, 9, 9),
    )
    judged = ClickModel(bootstrap=0).fit(log).judge(log)
    assert judged.left_out == {
        "of queries with fewer than 1 clicks": 2,
        "with fewer than 5 impressions": 1,
    }
    assert judged.lists.qid.tolist() == ["q0", "q2"]
    assert (judged.lists.y <= 1).all()
    with pytest.raises(
        DataError, match="found only 1 of queries with fewer than 20 clicks, 1 with"
    ):
        ClickModel(bootstrap=0, min_clicks=20, min_impressions=500).fit(log).judge(
            made((0, 0, 1, 50, 20), (1, 0, 1, 9, 9))
        )


def test_where_nothing_moved_nothing_is_told() -> None:
    log = made((0, 0, 1, 50, 20), (0, 1, 2, 50, 5), (1, 0, 1, 5, 0), (1, 0, 2, 5, 0))
    with pytest.raises(DataError, match="no document of a query was shown at two positions"):
        ClickModel().fit(log)


def test_positions_that_nothing_connects_are_left_out() -> None:
    top = (0, 0, 1, 50, 20), (0, 0, 2, 50, 5)
    log = made(*top, (0, 1, 7, 50, 4), (0, 1, 8, 50, 2), (0, 2, 9, 30, 1))
    model = ClickModel(bootstrap=0)
    with pytest.warns(LeftOutWarning, match="130 impressions at positions 7, 8, 9"):
        model.fit(log)
    assert model.examination_.positions.tolist() == [1, 2]
    assert np.isnan(model.examination_.at(np.array([0, 9]))).all()
    assert model.judge(log).lists.docid.tolist() == ["d0"]


def test_a_first_position_that_nobody_clicks() -> None:
    log = made((0, 0, 1, 50, 0), (0, 0, 2, 50, 5))
    with pytest.raises(DataError, match="position 1, the first, has no click"):
        estimate(log)


def test_a_position_that_nobody_clicks_is_clipped() -> None:
    log = made((0, 0, 1, 50, 20), (0, 0, 2, 50, 5), (0, 0, 3, 50, 0), (0, 1, 3, 10, 0))
    model = ClickModel(bootstrap=5, clip=0.1, smoothing=0.0).fit(log)
    assert model.examination_.values[2] == model.examination_.high[2] == 0
    judged = model.judge(log)
    assert judged.weights[1] == pytest.approx(1.0)
    assert judged.lists.y[1] == 0


def test_equal_seeds_equal_intervals() -> None:
    random = np.random.default_rng(3)
    log = simulate(random, relevances(random, 10), CURVE, n_pages=30).log()
    first, again, other = (estimate(log, bootstrap=9, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.low, again.low)
    assert (first.low != other.low)[1:].any()
    assert np.isnan(estimate(log).low).all()


def test_texts_that_are_missing() -> None:
    log = made((0, 0, 1, 50, 20), (0, 0, 2, 50, 5), (0, 1, 1, 10, 2), (1, 2, 1, 10, 2))
    known = dataclasses.replace(
        log, query_texts={"q0": "who?"}, passages={"d0": "Jane.", "d2": "It."}
    )
    judged = ClickModel(bootstrap=0).fit(known).judge(known)
    assert judged.left_out == {"without a text": 2}
    assert judged.lists.items == ["Jane."]
    assert judged.lists.queries == ["who?"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"method": "magic"}, "method: expected 'swaps' or 'em', found 'magic'"),
        ({"clip": 1.5}, "clip: expected 0 to 1, found 1.5"),
        ({"smoothing": -1}, "smoothing: expected 0 or more, found -1"),
        ({"min_clicks": "x"}, "min_clicks: expected 0 or more, found 'x'"),
        ({"bootstrap": float("nan")}, "bootstrap: expected 0 or more, found nan"),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, object], said: str) -> None:
    log = made((0, 0, 1, 50, 20), (0, 0, 2, 50, 5))
    with pytest.raises(DataError) as error:
        ClickModel(**parameters).fit(log)
    assert str(error.value) == said
