"""`BoostingReranker` against a literal implementation, and at the edges of its input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from didyma.errors import DataError
from didyma.nbest.boosting import BoostingReranker
from didyma.nbest.candidates import read_lists


def make_lists(seed, n_lists=25, n_features=12, noise=1.0):
    """Lists of one to six candidates whose losses are told by hidden weights, more or less."""
    random = np.random.default_rng(seed)
    weights = np.random.default_rng(99).normal(size=n_features)
    candidates, losses, scores = [], [], []
    for _ in range(n_lists):
        X = random.poisson(0.6, (random.integers(1, 7), n_features)).astype(float)
        bad = (X > 0) @ -weights + noise * random.normal(size=len(X))
        candidates.append(X)
        losses.append(np.round(np.maximum(0, bad - bad.min()), 0))
        scores.append(-losses[-1] + 2 * random.normal(size=len(X)))
    return candidates, losses, scores


def ridge_minimum(plus, minus, a, ridge):
    def change(x):
        return plus * np.expm1(-x) + minus * np.expm1(x) + ridge * ((a + x) ** 2 - a**2)

    return minimize_scalar(change, bracket=(-1, 1), tol=1e-14)


def literal(candidates, losses, scores, n_rounds, smoothing=1e-3, ridge=None):
    """Everything is computed again in each round, from the definitions."""
    differences, margin, quality = [], [], []
    for X, loss, score in zip(candidates, losses, scores):
        best = min(range(len(X)), key=lambda j: (loss[j], -score[j], j))
        for j in range(len(X)):
            if loss[j] > loss[best]:
                differences.append((X[best] > 0).astype(int) - (X[j] > 0))
                margin.append(score[best] - score[j])
                quality.append(loss[j] - loss[best])
    D, margin, quality = np.array(differences), np.array(margin), np.array(quality)
    a0 = minimize_scalar(
        lambda a: np.sum(quality * np.exp(-a * margin)), bounds=(-5, 5), options={"xatol": 1e-11}
    ).x
    coef = np.zeros(D.shape[1])
    features, steps, values = [], [], [np.sum(quality * np.exp(-a0 * margin))]
    for _ in range(n_rounds):
        weight = quality * np.exp(-a0 * margin - D @ coef)
        plus, minus = weight @ (D > 0), weight @ (D < 0)
        Z = weight.sum()
        if ridge is None:
            k = int(np.argmax(np.abs(np.sqrt(plus) - np.sqrt(minus))))
            step = 0.5 * np.log((plus[k] + smoothing * Z) / (minus[k] + smoothing * Z))
        else:
            found = [ridge_minimum(*sums, ridge) for sums in zip(plus, minus, coef)]
            k = int(np.argmin([minimum.fun for minimum in found]))
            step = found[k].x
        coef[k] += step
        features.append(k)
        steps.append(step)
        penalty = 0.0 if ridge is None else ridge * coef @ coef
        values.append(np.sum(quality * np.exp(-a0 * margin - D @ coef)) + penalty)
    return a0, coef, features, steps, values


@pytest.mark.parametrize("options", [{}, {"smoothing": 0.05}, {"ridge": 0.5}, {"ridge": 5.0}])
def test_the_rounds_are_those_of_the_definition(options):
    data = make_lists(0)
    reranker = BoostingReranker(40, **options).fit(*data)
    a0, coef, features, steps, values = literal(*data, 40, **options)
    history = reranker.history_[1:]
    assert reranker.decoder_weight_ == pytest.approx(a0, abs=1e-7)
    assert [record["feature"] for record in history] == features
    np.testing.assert_allclose([record["step"] for record in history], steps, atol=2e-6)
    np.testing.assert_allclose([record["value"] for record in reranker.history_], values, rtol=1e-6)
    np.testing.assert_allclose(reranker.coef_, coef, atol=1e-5)


def test_smoothing_hardly_matters_where_it_is_small():
    """Each step then takes (√W⁺ − √W⁻)² off the loss, which no other step could."""
    candidates, losses, scores = make_lists(1)
    reranker = BoostingReranker(15, smoothing=1e-12).fit(candidates, losses, scores)
    a0, coef = reranker.decoder_weight_, np.zeros(12)
    pairs = [
        (loss[j] - loss.min(), a0 * (score[best] - score[j]), (X[best] > 0) * 1.0 - (X[j] > 0))
        for X, loss, score in zip(candidates, losses, scores)
        for best in [np.lexsort((-score, loss))[0]]
        for j in np.flatnonzero(loss > loss.min())
    ]
    quality, margin, D = (np.array(part) for part in zip(*pairs))
    for before, after in zip(reranker.history_, reranker.history_[1:]):
        weight = quality * np.exp(-margin - D @ coef)
        taken = (np.sqrt(weight @ (D > 0)) - np.sqrt(weight @ (D < 0))) ** 2
        assert before["value"] == pytest.approx(weight.sum())
        assert before["value"] - after["value"] == pytest.approx(taken.max(), rel=1e-4)
        coef[after["feature"]] += after["step"]


@pytest.mark.parametrize("options", [{}, {"ridge": 1e-2}])
def test_the_objective_never_rises(options):
    reranker = BoostingReranker(300, **options).fit(*make_lists(2, 60))
    values = np.array([record["value"] for record in reranker.history_])
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert values[-1] < 0.9 * values[0]


def test_a_ridge_is_minimised_in_the_end():
    """No direction of the whole objective has a slope left."""
    candidates, losses, scores = make_lists(3)
    reranker = BoostingReranker(5000, ridge=0.5).fit(candidates, losses, scores)
    assert reranker.n_rounds_ < 5000
    slope = 2 * 0.5 * reranker.coef_
    for X, loss, score in zip(candidates, losses, scores):
        H = (X > 0).astype(float)
        best = np.lexsort((-score, loss))[0]
        F = H @ reranker.coef_ + reranker.decoder_weight_ * score
        weight = (loss - loss[best]) * np.exp(F - F[best])
        slope += weight @ (H - H[best])
    np.testing.assert_allclose(slope, 0, atol=1e-4)


def test_sums_stay_exact_over_many_rounds():
    """Separable lists: the loss falls by orders of magnitude and takes its rounding with it."""
    candidates, losses, _ = make_lists(4, noise=0.0)
    reranker = BoostingReranker(3000, smoothing=1e-4).fit(candidates, losses)
    history = reranker.history_
    assert history[-1]["value"] < 1e-6 * history[0]["value"]
    values = []
    for X, loss in zip(candidates, losses):
        F = (X > 0) @ reranker.coef_
        values.append(np.sum((loss - loss.min()) * np.exp(F - F[loss.argmin()])))
    assert history[-1]["value"] == pytest.approx(sum(values), rel=1e-6)


def test_it_learns_to_choose():
    train, test = make_lists(5, 300, noise=0.1), make_lists(6, 100, noise=0.1)
    reranker = BoostingReranker(200).fit(*train)
    chosen = reranker.rerank(test[0], test[2])
    loss = np.mean([loss[j] for loss, j in zip(test[1], chosen)])
    decoder = np.mean([loss[score.argmax()] for loss, score in zip(test[1], test[2])])
    assert loss < 0.5 * decoder


def test_sparse_and_dense_lists_are_alike():
    candidates, losses, scores = make_lists(7)
    sparse = [sp.csr_array(X) for X in candidates]
    first = BoostingReranker(30).fit(candidates, losses, scores)
    second = BoostingReranker(30).fit(sparse, losses, scores)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    found = second.score_candidates(sparse, scores)
    for X, score, values in zip(candidates, scores, found):
        expected = (X > 0) @ first.coef_ + first.decoder_weight_ * score
        np.testing.assert_allclose(values, expected)
    chosen = [int(np.argmax(values)) for values in found]
    assert first.rerank(candidates, scores).tolist() == chosen


def test_lists_may_be_stacked():
    candidates, losses, scores = make_lists(7)
    lists = read_lists(candidates, losses, scores)
    first = BoostingReranker(30).fit(candidates, losses, scores, (candidates, losses, scores))
    second = BoostingReranker(30).fit(lists, eval_set=lists)
    assert [record["loss"] for record in first.history_] == [
        record["loss"] for record in second.history_
    ]
    np.testing.assert_array_equal(first.rerank(candidates, scores), second.rerank(lists))
    with pytest.raises(DataError, match="12 features"):
        second.rerank(read_lists([np.eye(3)], decoder_scores=[[1, 2, 3]]))


def test_rounds_are_chosen_by_the_held_out_loss():
    train, dev = make_lists(8, 40, noise=3.0), make_lists(9, 40, noise=3.0)
    reranker = BoostingReranker(80).fit(*train, eval_set=dev)
    losses = []
    for rounds in range(81):
        shorter = BoostingReranker(rounds).fit(*train)
        chosen = shorter.rerank(dev[0], dev[2])
        losses.append(np.mean([loss[j] for loss, j in zip(dev[1], chosen)]))
    np.testing.assert_allclose([record["loss"] for record in reranker.history_], losses)
    assert reranker.n_rounds_ == int(np.argmin(losses))
    kept = BoostingReranker(reranker.n_rounds_).fit(*train)
    np.testing.assert_allclose(reranker.coef_, kept.coef_)


def test_patience_and_callbacks_stop():
    train, dev = make_lists(8, 40, noise=3.0), make_lists(9, 40, noise=3.0)
    patient = BoostingReranker(500, patience=5).fit(*train, eval_set=dev)
    assert patient.history_[-1]["n_iter"] == patient.n_rounds_ + 5
    seen = []
    BoostingReranker(500, callback=lambda done: seen.append(done) or done.n_iter == 7).fit(*train)
    assert [done.n_iter for done in seen] == list(range(8))


def test_an_interrupt_keeps_what_was_learned():
    def interrupt(done):
        if done.n_iter == 3:
            raise KeyboardInterrupt

    train = make_lists(8)
    reranker = BoostingReranker(100, callback=interrupt).fit(*train)
    np.testing.assert_allclose(reranker.coef_, BoostingReranker(3).fit(*train).coef_)


def test_the_decoders_weight_has_no_slope():
    _, losses, scores = make_lists(10, 80)
    candidates = [np.zeros((len(loss), 3)) for loss in losses]
    weight = BoostingReranker(5).fit(candidates, losses, scores).decoder_weight_
    slope = size = 0.0
    for loss, score in zip(losses, scores):
        best = np.lexsort((-score, loss))[0]
        terms = (score[best] - score) * (loss - loss[best])
        terms = terms * np.exp(-weight * (score[best] - score))
        slope, size = slope + terms.sum(), size + np.abs(terms).sum()
    assert abs(slope) <= 1e-9 * size


@pytest.mark.parametrize(("sign", "weight"), [(1, 1.0), (-1, -1.0), (0, 1.0)])
def test_a_decoder_that_nothing_contradicts_keeps_its_score(sign, weight):
    losses = [[0, 1, 2], [1, 0]]
    scores = [sign * -np.array(loss, float) for loss in losses]
    candidates = [np.zeros((len(loss), 2)) for loss in losses]
    assert BoostingReranker().fit(candidates, losses, scores).decoder_weight_ == weight


def test_the_best_of_equal_losses_is_the_decoders():
    """Features 0 and 1 mark two candidates of loss 0, of which the decoder prefers the second."""
    candidates, losses, scores = [np.eye(3)], [[0, 0, 1]], [[-2.0, -1.0, -1.5]]
    reranker = BoostingReranker(1).fit(candidates, losses, scores)
    assert reranker.coef_[0] == 0
    assert reranker.coef_[1] > 0 or reranker.coef_[2] < 0
    without = BoostingReranker(1).fit(candidates, losses)
    assert without.coef_[1] == 0


def test_lists_that_teach_nothing_change_nothing():
    candidates, losses, scores = make_lists(11)
    more = [
        (np.zeros((0, 12)), [], []),
        (np.ones((1, 12)), [4.0], [-3.0]),
        (np.eye(12), np.full(12, 2.0), np.arange(12.0)),
    ]
    longer = [[*values, *(other[k] for other in more)] for k, values in enumerate(make_lists(11))]
    first = BoostingReranker(30).fit(candidates, losses, scores)
    second = BoostingReranker(30).fit(*longer)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    chosen = second.rerank(longer[0], longer[2])
    assert chosen[-3:-1].tolist() == [-1, 0]
    assert [len(values) for values in second.score_candidates(longer[0], longer[2])][-3:] == [
        *(0, 1, 12)
    ]


def test_empty_lists_may_be_held_out():
    train = make_lists(12)
    dev = [*train[0], np.zeros((0, 12))], [*train[1], []], [*train[2], []]
    reranker = BoostingReranker(10).fit(*train, eval_set=dev)
    alone = BoostingReranker(10).fit(*train, eval_set=train)
    ratio = len(train[0]) / (len(train[0]) + 1)
    for record, other in zip(reranker.history_, alone.history_):
        assert record["loss"] == pytest.approx(ratio * other["loss"])


def test_a_reference_that_is_absent_is_not_needed():
    candidates, losses, scores = make_lists(13)
    worse = [np.asarray(loss) + 3.0 for loss in losses]
    first = BoostingReranker(20).fit(candidates, losses, scores)
    second = BoostingReranker(20).fit(candidates, worse, scores)
    np.testing.assert_allclose(first.coef_, second.coef_)


def test_a_reranker_outlives_its_process(tmp_path):
    data = make_lists(14)
    reranker = BoostingReranker(20, ridge=0.1, callback=lambda done: None).fit(*data)
    reranker.save(tmp_path / "model")
    loaded = BoostingReranker.load(tmp_path / "model")
    assert loaded.n_rounds_ == 20
    assert loaded.get_params() == {**reranker.get_params(), "callback": None}
    for first, second in zip(
        reranker.score_candidates(data[0], data[2]), loaded.score_candidates(data[0], data[2])
    ):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"n_rounds": -1}, "n_rounds"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"ridge": 0.0}, "ridge"),
        ({"patience": 0}, "patience"),
        ({"patience": 3}, "patience"),
    ],
)
def test_parameters_are_checked(options, field):
    with pytest.raises(DataError, match=field):
        BoostingReranker(**options).fit(*make_lists(0))


def test_bad_lists_are_named():
    candidates, losses, scores = make_lists(0)
    with pytest.raises(DataError, match="nothing to learn"):
        BoostingReranker().fit(candidates, [np.ones(len(loss)) for loss in losses])
    with pytest.raises(DataError, match="losses"):
        BoostingReranker().fit(candidates, losses[:-1])
    with pytest.raises(DataError, match="losses"):
        BoostingReranker().fit(candidates)
    with pytest.raises(DataError, match="eval_set"):
        BoostingReranker().fit(candidates, losses, scores, eval_set=(candidates, losses))
    with pytest.raises(DataError, match="eval_set"):
        BoostingReranker().fit(candidates, losses, scores, eval_set=(candidates, losses, None))
    with pytest.raises(DataError, match="eval_set"):
        BoostingReranker().fit(candidates, losses, scores, eval_set=(candidates, None, scores))
    fitted = BoostingReranker(3).fit(candidates, losses, scores)
    with pytest.raises(DataError, match="decoder_scores"):
        fitted.rerank(candidates)
    with pytest.raises(DataError, match="12 features"):
        fitted.rerank([np.eye(3)], [[1, 2, 3]])


def test_lists_that_a_feature_decides_end_early():
    reranker = BoostingReranker(1000).fit([np.array([[1, 0], [0, 1]])] * 3, [[0, 1]] * 3)
    assert reranker.n_rounds_ < 1000
    assert np.isfinite(reranker.coef_).all()
    assert reranker.rerank([np.eye(2)]) == [0]
