"""Calibrated scores: what they mean, that they keep the order, and what thresholds promise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.text.calibration import (
    FITS,
    Calibration,
    HeldOutError,
    least_logistic_loss,
    nested_choice,
    wilson,
)
from tests.test_imports import modules_after

finite = st.floats(allow_nan=False, allow_infinity=False)
# Scores as models give them, and doubles of any size, in lists with ties.
scores_of_any_size = st.one_of(
    arrays(np.float64, st.integers(2, 40), elements=finite),
    arrays(np.float64, st.integers(2, 40), elements=st.sampled_from([-2.0, 0.0, -0.0, 0.5, 3.0])),
    arrays(np.float64, st.integers(2, 40), elements=st.floats(-5, 5)),
)


def judged(n_queries=200, size=20, slope=1.5, seed=0):
    """Scores whose meaning is known: P(relevant | s) = 1 / (1 + exp(2 − slope s))."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=n_queries * size) + np.repeat(random.normal(size=n_queries), size)
    truth = 1 / (1 + np.exp(2 - slope * scores))
    labels = (random.random(len(scores)) < truth).astype(float)
    return scores, labels, Groups.from_sizes([size] * n_queries, len(scores)), truth


@st.composite
def calibrations(draw):
    scores = draw(scores_of_any_size)
    labels = draw(arrays(np.float64, len(scores), elements=st.sampled_from([0.0, 0.25, 1.0])))
    kind = draw(st.sampled_from(sorted(FITS)))
    groups = Groups.from_qid(np.arange(len(scores)) % draw(st.integers(1, 5)))
    fitted = Calibration.fit(scores, labels, groups)
    if kind != fitted.kind:  # both kinds are put to the test, whichever is better here
        parameters = FITS[kind](np.clip(scores, -1e300, 1e300), labels)
        fitted = Calibration(kind, parameters, {}, fitted.curve, 0.0, 1, ())
    return fitted, scores


@settings(max_examples=300)
@given(calibrations(), scores_of_any_size)
def test_order_is_kept(fitted, others):
    calibration, own = fitted
    scores = np.sort(np.concatenate([own, others, np.nextafter(own, 9e99), [-1e308, 0.0, 1e308]]))
    image = calibration(scores)
    assert np.all((image > 0) & (image < 1))
    step = np.diff(image)
    assert np.all(step >= 0)
    size = np.maximum(np.abs(scores[1:]), np.abs(scores[:-1]))
    apart = np.diff(scores / 2) > size * 2.0**-25
    assert np.all(step[apart & (size > 1e-300)] > 0)  # smaller doubles have fewer digits
    assert np.all(step[scores[1:] == scores[:-1]] == 0)


def test_order_is_kept_in_steps_of_single_precision():
    scores, labels, groups, _ = judged(20)
    for center in (0.0, 1e-3, 1.0, 7.0, 1e6, 1e38):
        value = np.float32(center)
        lattice = [value]
        for _ in range(200):
            lattice.append(np.nextafter(lattice[-1], np.float32(np.inf)))
        for labelled in (labels, (scores > 0).astype(float)):  # the second has two pools
            image = Calibration.fit(scores, labelled, groups)(np.float64(lattice))
            assert np.all(np.diff(image) > 0)


@pytest.mark.parametrize("kind", sorted(FITS))
def test_scores_mean_what_they_say(kind):
    scores, labels, _, truth = judged(2000)
    calibration = Calibration(kind, FITS[kind](scores, labels), {}, np.zeros((4, 0)), 0, 1, ())
    assert np.abs(calibration(scores) - truth).mean() < 0.015


def test_the_better_kind_is_taken():
    scores, labels, groups, _ = judged(300)
    calibration = Calibration.fit(scores, labels, groups)
    assert calibration.kind == min(calibration.log_losses, key=calibration.log_losses.get)
    assert calibration.error < 0.02
    # A step is no logistic function.
    random = np.random.default_rng(1)
    step = (random.random(len(scores)) < np.where(scores > 1, 0.3, 0.1)).astype(float)
    assert Calibration.fit(scores, step, groups).kind == "isotonic"


def test_platt_is_the_optimum():
    """Against a general optimiser on the same smoothed targets."""
    from scipy.optimize import minimize

    scores, labels, _, _ = judged(20)
    centre, slope, intercept = FITS["platt"](scores, labels)
    positives = labels.sum()
    target = np.where(
        labels > 0, (positives + 1) / (positives + 2), 1 / (len(labels) - positives + 2)
    )

    def loss(w):
        z = w[0] * scores + w[1]
        return np.sum(np.logaddexp(0, z) - target * z)

    best = minimize(loss, [0.0, 0.0]).x
    assert np.allclose([slope, intercept - slope * centre], best, atol=1e-4)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-308, 3e-308, 1e-289])
@pytest.mark.parametrize("n", [2, 5, 40])
def test_scores_that_are_next_to_nothing_have_a_finite_slope(size, n):
    scores = np.zeros(n)
    scores[[0, -1]] = -size, size
    _, slope, _ = FITS["platt"](scores, (scores > 0).astype(float))
    assert 0 <= slope < np.inf
    assert (slope > 0) == (size > 1e-290)


def test_scores_that_mislead_mean_the_base_rate():
    scores, labels, groups, _ = judged(50)
    calibration = Calibration.fit(-scores, labels, groups)
    assert np.allclose(calibration(scores), labels.mean(), atol=0.02)


def test_held_out_queries_decide():
    """Each query has a score of its own that tells all: nothing is learned from it about others."""
    random = np.random.default_rng(0)
    query = np.repeat(np.arange(50), 10)
    labels = (random.random(50) < 0.5)[query].astype(float)
    scores = random.permutation(50)[query].astype(float)
    calibration = Calibration.fit(scores, labels, Groups.from_qid(query))
    in_sample = np.interp(scores, *FITS["isotonic"](scores, labels))
    assert calibration.log_losses["isotonic"] > -np.mean(
        labels * np.log(in_sample) + (1 - labels) * np.log(1 - in_sample)
    )
    assert min(calibration.log_losses.values()) > 0.66


@pytest.mark.parametrize("precision", [0.3, 0.5, 0.7, 0.9])
def test_a_threshold_keeps_its_promise(precision):
    calibration = Calibration.fit(*judged(400)[:3])
    found = calibration.threshold(precision)
    assert found.precision >= precision
    assert found.low < found.precision < found.high
    scores, labels, groups, _ = judged(400, seed=1)
    above = calibration(scores) >= found.score
    # The sample of new queries and the one that the threshold was read off both err.
    assert abs(labels[above].mean() - precision) < 0.05 + 2 / np.sqrt(above.sum())
    assert abs(above @ labels / labels.sum() - found.recall) < 0.05
    answered = np.maximum.reduceat(above[groups.rows], groups.starts[:-1]).mean()
    assert abs(answered - found.answered) < 0.08


def test_a_threshold_is_the_least():
    scores, labels, groups, _ = judged(60)
    calibration = Calibration.fit(scores, labels, groups)
    score, count, relevant, _ = calibration.curve
    found = calibration.threshold(0.5)
    assert not np.any((relevant / count >= 0.5)[(score < found.score) & (count >= 10)])
    assert calibration.threshold(0.9).score > found.score
    # The whole of the curve is counted, not estimated.
    assert count[-1] == len(scores)
    assert relevant[-1] == labels.sum()


def test_a_threshold_out_of_reach_is_refused_in_words():
    random = np.random.default_rng(0)
    scores, labels = random.normal(size=600), (random.random(600) < 0.2).astype(float)
    calibration = Calibration.fit(scores, labels, Groups.from_sizes([20] * 30, 600))
    with pytest.raises(DataError, match=r"no threshold reaches 0\.99: the greatest precision that"):
        calibration.threshold(0.99)
    for wrong in (0, -1, 1.5, float("nan")):
        with pytest.raises(DataError, match="expected a share"):
            calibration.threshold(wrong)


def test_one_query_has_no_held_out_scores():
    calibration = Calibration.fit([1.0, 2.0, 3.0], [0, 0, 1], Groups.from_sizes([3], 3))
    assert calibration.kind == "platt"
    assert calibration.bins == ()
    assert calibration.error == 0.0
    with pytest.raises(DataError, match="of two queries, found 0"):
        calibration.threshold(0.5)


def test_queries_without_passages_are_unanswered():
    scores, labels, groups, _ = judged(30)
    half = Groups.from_lists([size for own in groups.sizes for size in (own, 0)])
    found, same = Calibration.fit(scores, labels, half), Calibration.fit(scores, labels, groups)
    assert np.array_equal(found(scores), same(scores))
    assert found.threshold(0.5).answered == same.threshold(0.5).answered / 2
    assert Calibration.fit([1.0, 2.0], [0, 1], Groups.from_lists([0, 2, 0])).bins == ()


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_are_all_the_same(label):
    scores, _, groups, _ = judged(5)
    image = Calibration.fit(scores, np.full(len(scores), label), groups)(scores)
    assert np.all(np.abs(image - label) < 0.05)


def test_a_teacher_is_regressed_to():
    """The calibrated score is the mean of what is between, too."""
    scores, _, groups, truth = judged(300)
    shares = Calibration.fit(scores, truth, groups)
    assert np.abs(shares(scores) - truth).max() < 0.02


def test_bins_count_every_held_out_passage():
    scores, labels, groups, _ = judged(100)
    calibration = Calibration.fit(scores, labels, groups)
    assert sum(own.passages for own in calibration.bins) == len(scores)
    assert np.isclose(sum(own.passages * own.share for own in calibration.bins), labels.sum())
    inside = [own.low <= own.score <= own.high for own in calibration.bins if own.passages > 20]
    assert np.mean(inside) > 0.7
    assert all(own.low <= own.share <= own.high for own in calibration.bins)


def test_wilson_is_the_inverse_of_the_score_test():
    for successes, trials in ((0, 5), (3, 7), (200, 1000), (5, 5)):
        p = successes / trials
        for end in wilson(successes, trials):
            if 0 < end < 1:
                assert np.isclose(abs(p - end) / np.sqrt(end * (1 - end) / trials), 1.959964)


@pytest.mark.parametrize("kind", sorted(FITS))
def test_round_trip(kind):
    scores, labels, groups, _ = judged(40)
    if kind == "isotonic":
        share = np.where(scores > 1, 0.4, 0.1)
        labels = (np.random.default_rng(1).random(len(scores)) < share).astype(float)
    calibration = Calibration.fit(scores, labels, groups)
    assert calibration.kind == kind
    known, values = calibration.state()
    restored = Calibration.from_state(known, json.loads(json.dumps(values)))
    assert np.array_equal(restored(scores), calibration(scores))
    assert restored.bins == calibration.bins
    assert restored.threshold(0.3) == calibration.threshold(0.3)
    assert json.loads(json.dumps(restored.to_dict())) == json.loads(
        json.dumps(calibration.to_dict())
    )
    with pytest.raises(ValueError, match=r"has parameters of \(4,\)"):
        Calibration.from_state({**known, "parameters": np.zeros(4)}, values)


def test_a_state_is_small_whatever_it_was_learned_from():
    calibration = Calibration.fit(*judged(2000)[:3])
    known, values = calibration.state()
    assert sum(array.nbytes for array in known.values()) < 40_000
    assert len(json.dumps(values)) < 4_000


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, np.nan], [0, 1], "scores: expected a list of finite numbers"),
        ([1.0, 2.0], [0, np.inf], "relevance: expected a list of finite numbers"),
        ([1.0, 2.0], [0, 2], "relevance: expected numbers from 0 to 1"),
        ([1.0, "x"], [0, 1], "scores: expected numbers"),
        ([1.0], [0, 1], "scores: expected as many scores as labels and rows, found 1, 2 and 2"),
    ],
)
def test_bad_input(scores, labels, message):
    with pytest.raises(DataError, match=message):
        Calibration.fit(scores, labels, Groups.from_sizes([1, 1], 2))


def test_asking_needs_numpy_alone():
    code = (
        "import numpy as np\n"
        "from didyma.text.calibration import Calibration\n"
        "known = {'parameters': np.array([0.0, 1.0, 0.0]), 'curve': np.zeros((4, 0))}\n"
        "values = {'kind': 'platt', 'log_losses': {}, 'relevant': 0, 'n_queries': 1, 'bins': []}\n"
        "Calibration.from_state(known, values)([0.5])"
    )
    assert not modules_after(code) & {"scipy", "sklearn", "ir_measures"}


def test_weights_without_a_penalty_are_those_of_least_loss() -> None:
    rng = np.random.default_rng(0)
    columns, target = rng.normal(size=(2, 50)), rng.random(50)
    w = least_logistic_loss(columns, target, np.zeros(2), np.zeros(2))
    assert np.abs(columns @ (1 / (1 + np.exp(-w @ columns)) - target)).max() < 1e-6


def test_what_a_fold_is_judged_by_is_not_learned_from_it() -> None:
    """Labels of fold 0 change neither what was learned nor what was chosen without it."""
    rng = np.random.default_rng(0)
    fold, y = np.arange(40) % 4, rng.normal(size=40)

    def held_out(y: np.ndarray) -> float:
        def learn(rows: np.ndarray) -> list[float]:
            return [float(y[rows].mean()), float(np.median(y[rows])), 0.0]

        def loss(value: float, rows: np.ndarray) -> float:
            return float(((y[rows] - value) ** 2).sum())

        return nested_choice(learn, loss, fold).held_out[0]

    other = np.where(fold == 0, 100.0, y)
    assert held_out(other) == held_out(y)


def test_errors_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    p, y = rng.random(103), (rng.random(103) < 0.5).astype(float)
    found = HeldOutError.of("platt", p, y)
    assert found.brier == pytest.approx(sum((a - b) ** 2 for a, b in zip(p, y)) / 103)
    pairs = sorted(zip(p, y))
    sizes = [11] * 3 + [10] * 7
    apart = 0.0
    for size in sizes:
        own, pairs = pairs[:size], pairs[size:]
        apart += abs(sum(a for a, _ in own) - sum(b for _, b in own)) / 103
    assert found.error == pytest.approx(apart)
