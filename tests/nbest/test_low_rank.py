from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from didyma.errors import DataError
from didyma.nbest.candidates import read_lists
from didyma.nbest.low_rank import LowRankReranker

D1, D2 = 10, 8


def make(n=60, seed=0, sizes=(1, 6)):
    """Outputs that depend on inputs; candidates are outputs with errors; a noisy decoder."""
    hidden = np.random.default_rng(7).poisson(0.4, (D1, D2))
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.6, (n, D1)).astype(float)
    Y = np.minimum(X @ hidden, 3.0)
    candidates, losses, scores = [], [], []
    for y in Y:
        errors = rng.poisson(0.25, (rng.integers(*sizes), D2))
        candidates.append(y + errors)
        losses.append(errors.sum(axis=1).astype(float))
        scores.append(rng.normal(size=len(errors)) - 0.3 * losses[-1])
    return X, Y, candidates, losses, scores


def sparse(matrices):
    return [sp.csr_array(matrix) for matrix in matrices]


def mean_loss(losses, choice):
    return np.mean([own[j] for own, j in zip(losses, choice)])


TRAIN, DEV = make(), make(seed=1)
SMALL = {"n_components": 4, "tau": 0.5}


@pytest.fixture(scope="module")
def fitted():
    X, Y, candidates, losses, _ = TRAIN
    return LowRankReranker(**SMALL).fit(X, Y, candidates, losses)


@pytest.mark.parametrize("scale", ["mean", "sum"])
def test_the_generative_model_solves_the_joint_eigenproblem(scale):
    X, Y, *_ = TRAIN
    s = 1 / len(X) if scale == "mean" else 1.0
    model = LowRankReranker("generative", 3, 0.4, scale=scale).fit(X, Y)
    Cxx, Cyy = (0.6 * s * V.T @ V + 0.4 * np.eye(V.shape[1]) for V in (X, Y))
    cross = np.zeros((D1 + D2, D1 + D2))
    cross[:D1, D1:] = s * X.T @ Y
    rho, vectors = scipy.linalg.eigh(cross + cross.T, scipy.linalg.block_diag(Cxx, Cyy))
    np.testing.assert_allclose(model.correlations_, rho[::-1][:3])
    top = 2**0.5 * vectors[:, ::-1][:, :3]
    np.testing.assert_allclose(model.A_ @ model.B_.T, top[:D1] @ top[D1:].T, atol=1e-8)
    np.testing.assert_allclose(model.A_.T @ Cxx @ model.A_, np.eye(3), atol=1e-8)
    assert model.correlations_[0] <= 1 / (1 - 0.4)


def test_softened_is_the_first_round_of_discriminative():
    X, Y, candidates, losses, _ = TRAIN
    softened = LowRankReranker("softened", **SMALL).fit(X, Y, candidates, losses)
    once = LowRankReranker("discriminative", max_iter=1, **SMALL).fit(X, Y, candidates, losses)
    more = LowRankReranker("discriminative", **SMALL).fit(X, Y, candidates, losses)
    np.testing.assert_array_equal(softened.A_, once.A_)
    np.testing.assert_array_equal(softened.slacks_, once.slacks_)
    assert not np.allclose(softened.A_, more.A_)
    assert (softened.n_iter_, more.n_iter_) == (1, 5)


def test_without_candidates_share_softened_is_generative():
    X, Y, candidates, losses, _ = TRAIN
    generative = LowRankReranker("generative", **SMALL).fit(X, Y)
    softened = LowRankReranker("softened", lam=0.0, **SMALL).fit(X, Y, candidates, losses)
    np.testing.assert_array_equal(generative.B_, softened.B_)


@pytest.mark.parametrize("objective", ["generative", "softened", "discriminative"])
def test_sparse_input_gives_what_dense_input_gives(objective):
    X, Y, candidates, losses, scores = TRAIN
    model = LowRankReranker(objective, weight=3.0, **SMALL)
    dense = clone(model).fit(X, Y, candidates, losses)
    thin = clone(model).fit(sp.csr_array(X), sp.coo_matrix(Y), sparse(candidates), losses)
    np.testing.assert_allclose(thin.A_, dense.A_, atol=1e-8)
    np.testing.assert_allclose(
        np.concatenate(thin.score_candidates(sp.csr_array(X), sparse(candidates), scores)),
        np.concatenate(dense.score_candidates(X, candidates, scores)),
    )
    np.testing.assert_array_equal(
        thin.rerank(sp.csr_array(X), sparse(candidates)), dense.rerank(X, candidates)
    )


def test_fewer_components_are_a_prefix_of_more():
    X, Y, candidates, losses, _ = TRAIN
    more, fewer = (
        LowRankReranker("softened", k, 0.5).fit(X, Y, candidates, losses) for k in (5, 2)
    )
    np.testing.assert_allclose(fewer.A_, more.A_[:, :2], atol=1e-8)
    np.testing.assert_allclose(fewer.correlations_, more.correlations_[:2])


def test_scores_are_the_decoders_and_weighted_cosines(fitted):
    X, _, candidates, _, scores = DEV
    near = fitted.similarities(X, candidates)
    a, b = fitted.A_.T @ X[3], fitted.B_.T @ candidates[3][0]
    assert near[3][0] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    weighted = clone(fitted).set_params(weight=2.5).fit(*TRAIN[:4])
    for i, both in enumerate(weighted.score_candidates(X, candidates, scores)):
        np.testing.assert_allclose(both, scores[i] + 2.5 * near[i])
        assert weighted.rerank(X, candidates, scores)[i] == np.argmax(both)
    np.testing.assert_allclose(fitted.score_candidates(X, candidates)[3], near[3])


def test_a_weight_of_zero_is_the_decoders_choice(fitted):
    X, _, candidates, _, scores = DEV
    model = clone(fitted).set_params(weight=0).fit(*TRAIN)
    expected = [np.argmax(own) for own in scores]
    np.testing.assert_array_equal(model.rerank(X, candidates, scores), expected)


def test_one_input_has_one_vector_and_one_choice(fitted):
    X, _, candidates, _, scores = DEV
    several = fitted.score_candidates(X, candidates, scores)
    for x in (X[4], X[4:5], sp.csr_array(X[4:5]), X[4].tolist()):
        for own in (candidates[4], sp.csr_array(candidates[4])):
            one = fitted.score_candidates(x, own, scores[4])
            np.testing.assert_allclose(one, several[4])
            assert fitted.rerank(x, own, scores[4]) == np.argmax(several[4])
            assert fitted.similarities(x, own).shape == (len(candidates[4]),)


def test_reranking_helps():
    """On data where inputs determine outputs, up to noise."""
    X, Y, candidates, losses, scores = make(300)
    x, _, others, hidden, heard = make(300, seed=1)
    model = LowRankReranker(n_components=8, tau=0.1, lam=0.3)
    model.fit(X, Y, candidates, losses, scores)
    alone = mean_loss(hidden, [np.argmax(own) for own in heard])
    assert mean_loss(hidden, model.rerank(x, others, heard)) < 0.95 * alone
    assert 0 < model.weight_ <= 100


def test_the_weight_is_chosen_by_cross_validation():
    X, Y, candidates, losses, scores = TRAIN
    model = LowRankReranker("softened", **SMALL).fit(X, Y, candidates, losses, scores)
    totals = np.zeros(101)
    for fold in range(2):
        learn, rest = (
            [i for i in range(len(X)) if (i % 2 == fold) is held] for held in (False, True)
        )
        part = LowRankReranker("softened", **SMALL).fit(
            X[learn], Y[learn], [candidates[i] for i in learn], [losses[i] for i in learn]
        )
        near = part.similarities(X[rest], [candidates[i] for i in rest])
        for w in range(101):
            totals[w] += sum(
                losses[i][np.argmax(scores[i] + w * own)] for i, own in zip(rest, near)
            )
    assert model.weight_ == np.argmin(totals)
    assert LowRankReranker(**SMALL).fit(X, Y, candidates, losses).weight_ == 1.0
    fixed = LowRankReranker("softened", weight=7, **SMALL).fit(X, Y, candidates, losses, scores)
    assert fixed.weight_ == 7.0
    np.testing.assert_array_equal(fixed.A_, model.A_)


@pytest.mark.parametrize("objective", ["generative", "softened", "discriminative"])
def test_tuning_tries_what_fits_would_give_and_takes_the_best(objective):
    x, _, others, hidden, heard = DEV
    taus, lams, components, weights = [0.2, 0.8], [0.1, 0.5], [1, 4], [0, 1, 5]
    model = LowRankReranker(objective, weight=1.0, max_iter=3).fit(*TRAIN[:4])
    assert (
        model.tune(
            x, others, hidden, heard, taus=taus, lams=lams, components=components, weights=weights
        )
        is model
    )
    table = model.tuning_
    shares = [model.lam] if objective == "generative" else lams
    assert len(table) == len(taus) * len(shares) * len(components) * len(weights)
    for row in table:
        single = LowRankReranker(
            objective,
            int(row["n_components"]),
            row["tau"],
            row["lam"],
            weight=row["weight"],
            max_iter=3,
        ).fit(*TRAIN[:4])
        assert mean_loss(hidden, single.rerank(x, others, heard)) == pytest.approx(row["loss"])
    best = table[np.lexsort((table["weight"], table["loss"]))[0]]
    assert (model.tau, model.lam, model.n_components, model.weight_) == best.tolist()[:4]
    assert mean_loss(hidden, model.rerank(x, others, heard)) == pytest.approx(best["loss"])
    again = clone(model).fit(*TRAIN[:4])
    np.testing.assert_allclose(again.A_, model.A_, atol=1e-8)
    assert np.ptp(table["loss"][table["weight"] == 0]) == 0  # the decoder does not care


def test_tuning_without_decoder_scores_or_grid_keeps_the_parameters():
    x, _, others, hidden, _ = DEV
    model = LowRankReranker(**SMALL).fit(*TRAIN[:4])
    before = model.A_.copy()
    model.tune(x, others, hidden)
    np.testing.assert_array_equal(model.A_, before)
    assert model.tuning_["weight"].tolist() == [1.0]
    assert model.tuning_["loss"][0] == pytest.approx(mean_loss(hidden, model.rerank(x, others)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 59), st.integers(0, 12))
def test_contributions_sum_up_to_the_cosine(fitted, i, n):
    X, _, candidates, *_ = TRAIN
    own = candidates[i][0]
    found = fitted.explain(X[i], own, n)
    assert found.similarity == pytest.approx(fitted.similarities(X[i], candidates[i])[0])
    assert sum(pair.contribution for pair in found.pairs) + found.rest == pytest.approx(
        found.similarity
    )
    every = fitted.explain(sp.csr_array(X[i : i + 1]), own, n=None)
    assert every.rest == pytest.approx(0, abs=1e-12)
    assert len(every.pairs) == np.count_nonzero(X[i]) * np.count_nonzero(own)
    sizes = [abs(pair.contribution) for pair in every.pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert [pair.contribution for pair in found.pairs] == pytest.approx(
        [pair.contribution for pair in every.pairs[:n]]
    )


def test_a_contribution_is_what_its_pair_of_features_adds(fitted):
    X, _, candidates, *_ = TRAIN
    x, y = X[2], candidates[2][0]
    norm = np.linalg.norm(fitted.A_.T @ x) * np.linalg.norm(fitted.B_.T @ y)
    for p, q, contribution in fitted.explain(x, y).pairs:
        assert contribution == pytest.approx(x[p] * y[q] * fitted.A_[p] @ fitted.B_[q] / norm)


def test_explanations_name_features():
    pandas = pytest.importorskip("pandas")
    X, Y, *_ = TRAIN
    names = [f"word {p}" for p in range(D1)]
    model = LowRankReranker("generative", 3).fit(pandas.DataFrame(X, columns=names), Y)
    tags = [f"tag {q}" for q in range(D2)]
    pair = model.explain(X[0], Y[0], 1, output_names=tags).pairs[0]
    numbers = model.explain(X[0], Y[0], 1, input_names=range(D1)).pairs[0]
    assert (pair.input, pair.output) == (f"word {numbers.input}", f"tag {numbers.output}")


def test_the_randomised_solver_is_close_where_inputs_have_few_directions():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(200, 5))
    X = hidden @ rng.normal(size=(5, 60)) + 1e-3 * rng.normal(size=(200, 60))
    Y = hidden @ rng.normal(size=(5, D2)) + 0.5 * rng.normal(size=(200, D2))
    candidates = [y + rng.normal(size=(3, D2)) for y in Y]
    losses = [np.ones(3)] * 200
    exact = LowRankReranker(**SMALL).fit(X, Y, candidates, losses)
    model = LowRankReranker(solver="randomized", rank=8, **SMALL)
    close = model.fit(X, Y, candidates, losses)
    np.testing.assert_allclose(close.correlations_, exact.correlations_, rtol=1e-4)
    np.testing.assert_allclose(
        np.concatenate(close.similarities(X, candidates)),
        np.concatenate(exact.similarities(X, candidates)),
        atol=1e-3,
    )
    assert exact.residual_ < 1e-8 < close.residual_ < 1e-2
    np.testing.assert_array_equal(clone(model).fit(X, Y, candidates, losses).A_, close.A_)


def test_both_views_are_restricted_where_both_are_large(monkeypatch):
    monkeypatch.setattr("didyma.nbest.low_rank.SMALL", 4)
    X, Y, candidates, losses, _ = TRAIN
    model = LowRankReranker(solver="randomized", rank=5, n_components=3)
    model.fit(X, Y, candidates, losses)
    assert np.linalg.matrix_rank(model.A_) == np.linalg.matrix_rank(model.B_) == 3
    whole = LowRankReranker(solver="randomized", rank=D1, n_components=3)
    exact = LowRankReranker(n_components=3).fit(X, Y, candidates, losses)
    np.testing.assert_allclose(whole.fit(X, Y, candidates, losses).A_, exact.A_, atol=1e-8)


def test_lists_may_be_empty_or_of_one_and_lack_the_reference(fitted):
    X, Y, candidates, losses, scores = make(40, seed=3)
    candidates[0], losses[0], scores[0] = np.zeros((0, D2)), [], []
    candidates[1], losses[1], scores[1] = candidates[1][:1], [2.0], [0.0]
    model = LowRankReranker(**SMALL).fit(X, Y, candidates, losses, scores)
    choice = model.rerank(X, candidates, scores)
    assert choice[:2].tolist() == [-1, 0]
    assert model.slacks_[0] == 0
    assert [len(own) for own in model.score_candidates(X, candidates, scores)] == [
        len(own) for own in candidates
    ]
    assert model.rerank(X[0], candidates[0]) == -1
    model.tune(X, candidates, losses, scores, components=[1, 2])
    nothing = [np.zeros((0, D2))] * 40
    generative = LowRankReranker("generative", **SMALL).fit(X, Y, nothing, [[]] * 40)
    assert generative.rerank(X, nothing).tolist() == [-1] * 40


def test_vectors_without_known_features_leave_it_to_the_decoder():
    X, Y, candidates, losses, _ = TRAIN
    X, Y = np.pad(X, [(0, 0), (0, 1)]), np.pad(Y, [(0, 0), (0, 1)])
    lists = [np.pad(own, [(0, 0), (0, 1)]) for own in candidates]
    model = LowRankReranker(weight=5.0, **SMALL).fit(X, Y, lists, losses)
    unseen, rows = np.zeros(D1 + 1), np.zeros((3, D2 + 1))
    unseen[-1] = 1.0  # a feature that no training input has
    rows[1, -1] = 1.0
    rows[2] = 1.0
    np.testing.assert_array_equal(model.similarities(unseen, rows), 0.0)
    assert model.rerank(unseen, rows, [0.0, 2.0, 1.0]) == 1
    near = model.similarities(X[0], rows)
    assert near[:2].tolist() == [0.0, 0.0]
    assert near[2] != 0
    nothing = model.explain(unseen, rows[2])
    assert nothing.similarity == 0
    assert all(pair.contribution == 0 for pair in nothing.pairs)
    assert model.explain(np.zeros(D1 + 1), rows[2]).pairs == []


def test_stacked_lists_are_taken_as_they_are(fitted):
    X, Y, candidates, losses, scores = TRAIN
    lists = read_lists(candidates, losses, scores)
    model = LowRankReranker(weight=1.0, **SMALL).fit(X, Y, lists)
    np.testing.assert_array_equal(model.A_, fitted.A_)
    np.testing.assert_array_equal(model.rerank(X, lists), fitted.rerank(X, candidates, scores))

    with pytest.raises(DataError, match="of their own"):
        model.rerank(X, lists, scores)


def test_equations_that_are_not_solved_are_told_of(monkeypatch):
    monkeypatch.setattr("didyma.nbest.canonical.LARGE", 0)
    monkeypatch.setattr("didyma.nbest.canonical.SMALL", 0)
    monkeypatch.setattr("didyma.nbest.canonical.MAX_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning, match="larger tau"):
        LowRankReranker("generative", 2, 1e-4).fit(*TRAIN[:2])


def test_callbacks_see_rounds():
    rounds = []
    LowRankReranker(callback=rounds.append, max_iter=3, **SMALL).fit(*TRAIN[:4])
    assert [each.n_iter for each in rounds] == [1, 2, 3]


def test_model_files(tmp_path, fitted):
    X, _, candidates, _, scores = DEV
    path = tmp_path / "model.didyma"
    LowRankReranker.save(fitted, path)
    loaded = LowRankReranker.load(path)
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(
        np.concatenate(loaded.score_candidates(X, candidates, scores)),
        np.concatenate(fitted.score_candidates(X, candidates, scores)),
    )
    with pytest.raises(DataError, match="no training data"):
        loaded.tune(X, candidates, DEV[3], scores)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"objective": "best"}, "objective"),
        ({"tau": 0.0}, "tau"),
        ({"tau": "high"}, "tau"),
        ({"lam": 1.5}, "lam"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"weight": np.nan}, "weight"),
        ({"scale": "max"}, "scale"),
        ({"step": -1.0}, "step"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"solver": "fast"}, "solver"),
        ({"rank": 0}, "rank"),
    ],
)
def test_bad_parameters_are_named(parameters, field):
    with pytest.raises(DataError, match="expected") as error:
        LowRankReranker(**parameters).fit(*TRAIN[:4])
    assert error.value.field == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"X": [[1.0], [np.nan]]}, "X"),
        ({"X": [["a"], ["b"]]}, "X"),
        ({"X": np.zeros((0, 3))}, "X"),
        ({"X": np.ones(2)}, "X"),
        ({"Y": np.eye(3)}, "Y"),
        ({"candidates": None}, "candidates"),
        ({"candidates": [np.eye(2)]}, "candidates"),
        ({"candidates": [np.eye(2), None]}, "candidates"),
        ({"candidates": [np.eye(3), np.eye(2)]}, "candidates"),
        ({"losses": None}, "losses"),
        ({"losses": [[0.0, 1.0], [0.0]]}, "losses"),
        ({"losses": [[0.0, 1.0], [0.0, -1.0]]}, "losses"),
        ({"decoder_scores": [[0.0, np.inf], [0.0, 1.0]]}, "decoder_scores"),
        ({"X": np.zeros((2, 2))}, None),
    ],
)
def test_bad_input_is_named(changes, field):
    good = {
        "X": np.eye(2),
        "Y": np.eye(2),
        "candidates": [np.eye(2)] * 2,
        "losses": [[0.0, 1.0], [1.0, 0.0]],
        "decoder_scores": None,
    }
    with pytest.raises(DataError) as error:
        LowRankReranker(weight=1.0).fit(**good | changes)
    assert error.value.field == field


def test_bad_input_after_learning_is_named(fitted):
    X, _, candidates, losses, scores = DEV
    for call, field in (
        (lambda: fitted.rerank(X[:, :3], candidates), "X"),
        (lambda: fitted.rerank(X, candidates[:-1]), "candidates"),
        (lambda: fitted.rerank(X, candidates[0]), "X"),
        (lambda: fitted.rerank(X, None), "candidates"),
        (lambda: fitted.rerank(X[0], candidates[0][:, :2]), "candidates"),
        (lambda: fitted.rerank(X, candidates, scores[:-1]), "decoder_scores"),
        (lambda: fitted.tune(X, candidates), "losses"),
        (lambda: fitted.tune(X, candidates, losses, taus=[]), "tau"),
        (lambda: fitted.tune(X, candidates, losses, lams=[2.0]), "lam"),
        (lambda: fitted.explain(X[:2], candidates[0][0]), "x"),
        (lambda: fitted.explain(X[0], candidates[0][0][:2]), "candidate"),
    ):
        with pytest.raises(DataError) as error:
            call()
        assert error.value.field == field
    with pytest.raises(NotFittedError):
        LowRankReranker().rerank(X, candidates)
