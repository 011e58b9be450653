"""The additive ranker against the same problem with its indicators written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.learning.bcfw import BCFW
from didyma.learning.problem import clipped
from didyma.learning.row_bcfw import RowBCFW
from didyma.model import Model, load
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.bins import FEW, Binned, step_scores
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from didyma.ranking.svm import SVMRanker
from tests.reference import written_out

RNG = np.random.default_rng(3)
N_QUERIES, ROWS = 20, 9
QID = np.repeat(np.arange(N_QUERIES), ROWS)
X = RNG.normal(size=(len(QID), 5))
HIDDEN = np.abs(X[:, 0]) + np.tanh(3 * X[:, 1]) + 0.3 * RNG.normal(size=len(QID))
Y = (HIDDEN.reshape(-1, ROWS) >= np.sort(HIDDEN.reshape(-1, ROWS))[:, [-3]]).astype(float).ravel()
GROUPS = Groups.from_qid(QID)


def some_bins(sloped: bool = True) -> Binned:
    bins = RNG.integers(7, size=(len(QID), 4)).astype(np.uint8)
    units = RNG.uniform(0.5, 2.0, (7, 4))
    rises = RNG.uniform(0.1, 1.0, (7, 4)) if sloped else None
    return Binned(bins, 7, np.array([True, False, True, True]), units, rises=rises)


@pytest.mark.parametrize("sloped", [False, True])
def test_products_are_those_of_the_written_out_matrix(sloped: bool) -> None:
    binned = some_bins(sloped)
    Z = written_out(binned)
    w = RNG.normal(size=Z.shape[1])
    np.testing.assert_allclose(binned @ w, Z @ w)
    np.testing.assert_allclose(binned[3:50] @ w, Z[3:50] @ w)
    ours = RankingProblem(binned, Y, GROUPS, AveragePrecision())
    theirs = RankingProblem(Z, Y, GROUPS, AveragePrecision())
    assert ours.n_features == theirs.n_features
    np.testing.assert_allclose(ours.scores(w), theirs.scores(w))
    np.testing.assert_allclose(ours.risks(w), theirs.risks(w))
    c = RNG.normal(size=len(QID))
    np.testing.assert_allclose(ours.gather(c), theirs.gather(c))
    for mine, other in ((ours.cut(w, 2), theirs.cut(w, 2)), (ours.cut_all(w), theirs.cut_all(w))):
        np.testing.assert_allclose(mine.direction, other.direction, atol=1e-14)
        assert mine.loss == pytest.approx(other.loss)


def test_weights_of_tables_are_the_least_that_give_them() -> None:
    binned = some_bins()
    w = RNG.normal(size=binned.shape[1])
    least = binned.weights(binned.tables(w))
    np.testing.assert_allclose(binned.tables(least), binned.tables(w), atol=1e-12)
    slopes = least.reshape(7, 4)[0]
    for shift in (-1e-3, 1e-3):  # of one slope, made up for by the steps
        other = binned.rises[1:] * (slopes + shift) * (np.arange(4) == 1)
        steps = least.reshape(7, 4)[1:].copy()
        steps[:, 1] -= (other[:, 1] - binned.rises[1:, 1] * slopes[1]) / binned.units[1:, 1]
        moved = np.concatenate([[slopes + shift * (np.arange(4) == 1)], steps]).ravel()
        np.testing.assert_allclose(binned.tables(moved), binned.tables(w), atol=1e-12)
        assert moved @ moved > least @ least


@pytest.mark.parametrize(
    "parameters",
    [{}, {"roughness": 0.0}, {"line": "none"}, {"increasing": [1]}, {"interactions": 2}],
)
def test_the_ramp_begins_where_a_former_one_ended(parameters: dict[str, Any]) -> None:
    ranker = AdditiveSVMRanker(
        "ndcg@3", **{"C": 40.0, "bins": 8, "line": "quantile", "warm_start": True} | parameters
    ).fit(X, Y, qid=QID)
    reached = ranker.result_.value
    first = ranker.fit(X, Y, qid=QID).objective_trace_[0]
    assert first == pytest.approx(reached, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_planes_of_rows_reach_the_optimum_of_planes_of_features(C: float) -> None:
    binned = some_bins()
    ours = RankingProblem(binned, Y, GROUPS, AveragePrecision())
    theirs = RankingProblem(written_out(binned), Y, GROUPS, AveragePrecision())
    one = RowBCFW(tol=1e-4).solve(ours, C)
    best = BCFW(tol=1e-7).solve(theirs, C).result
    assert one.result.converged
    assert one.result.dual <= best.value
    assert best.dual <= one.result.value <= best.value * (1 + 1.1e-4)
    # The report is about these weights.
    value = 0.5 * one.w @ one.w + C * ours.weights @ theirs.risks(one.w)
    assert one.result.value == pytest.approx(value)
    again = RowBCFW(tol=1e-4).solve(ours, 2 * C, start=one)
    cold = RowBCFW(tol=1e-4).solve(ours, 2 * C)
    assert again.result.value == pytest.approx(cold.result.value, rel=2e-4)


def lines_and_steps(
    binner: ScoreBinner, rows: NDArray[Any], roughness: float
) -> NDArray[np.float64]:
    """The quantile of each row's bin, and its indicators in units of roughness/√steps."""
    steps = np.asarray(binner.transform(rows))
    below = np.stack([steps[:, binner.column_ == j].sum(axis=1) for j in range(rows.shape[1])], 1)
    lines = np.empty_like(below)
    for j, column in enumerate(below.T):
        lines[:, j] = [np.mean(column < b) + np.mean(column == b) / 2 for b in column]
    return np.concatenate([lines, roughness * steps / np.sqrt(binner.n_thresholds)], axis=1)


@pytest.mark.parametrize("loss", ["ap", "ndcg@5", "precision@3", "roc"])
def test_same_optimum_as_a_linear_ranker_of_lines_and_indicators(loss: str) -> None:
    linear = SVMRanker(loss, C=4.0, tol=1e-4)
    binner = ScoreBinner(7, sparse_output=False).fit(X)
    design = lines_and_steps(binner, X, 0.7)
    linear.fit(design, Y, qid=QID)
    additive = AdditiveSVMRanker(loss, C=4.0, bins=8, line="quantile", roughness=0.7, tol=1e-4)
    additive.fit(X, Y, qid=QID)
    assert additive.result_.value == pytest.approx(linear.result_.value, rel=2e-4)
    difference = additive.predict(X) - linear.predict(design)
    np.testing.assert_allclose(difference, difference.mean(), atol=0.05)
    np.testing.assert_array_equal(additive.bins_.edges[0][:7], binner.thresholds_[:7])


def test_without_a_line_weights_are_those_of_indicators() -> None:
    linear = SVMRanker(C=1.0, tol=1e-4)
    binner = ScoreBinner(7, sparse_output=False)
    linear.fit(binner.fit_transform(X), Y, qid=QID)
    additive = AdditiveSVMRanker(C=1.0, bins=8, line="none", tol=1e-4).fit(X, Y, qid=QID)
    assert additive.result_.value == pytest.approx(linear.result_.value, rel=2e-4)
    np.testing.assert_allclose(additive.predict(X), linear.predict(binner.transform(X)), atol=0.05)


def test_without_roughness_functions_are_lines_over_quantiles() -> None:
    ranker = AdditiveSVMRanker(C=4.0, bins=8, line="quantile", roughness=0.0)
    ranker.fit(X, Y, qid=QID)
    steps = np.diff(ranker.tables_[:8], axis=0)
    mass = ranker.mass_[:8]
    rises = (mass[1:] + mass[:-1]) / 2
    np.testing.assert_allclose(steps / rises, np.tile(steps[0] / rises[0], (7, 1)))


def test_settings_are_chosen_by_cross_validation() -> None:
    """Extremes that count want the line for them; what is given stays."""
    rng = np.random.default_rng(0)
    rows, qid = rng.normal(size=(1200, 3)), np.repeat(np.arange(60), 20)
    top = np.sort(rows.sum(axis=1).reshape(60, 20))[:, [-3]]
    y = (rows.sum(axis=1).reshape(60, 20) >= top).astype(float).ravel()
    ranker = AdditiveSVMRanker(roughness=0.0).fit(rows, y, qid=qid)
    assert ranker.line_ == "normal"
    assert ranker.C_ in (1.0, 4.0, 16.0)
    ranker = AdditiveSVMRanker(C=3.0, line="quantile").fit(rows, y, qid=qid)
    assert (ranker.C_, ranker.line_) == (3.0, "quantile")
    assert AdditiveSVMRanker("ndcg@3", tol=0.01).fit(rows, y, qid=qid).C_ in (10, 40, 160)


def test_few_queries_have_the_usual_settings() -> None:
    few = QID < 4
    ranker = AdditiveSVMRanker(bins=8).fit(X[few], Y[few], qid=QID[few])
    assert (ranker.C_, ranker.line_) == (4.0, "quantile")


@pytest.mark.parametrize("interactions", [0, "auto"])
@pytest.mark.filterwarnings("ignore:.*queries have rows of one class only")
def test_labels_of_queries_without_weight_choose_nothing(interactions: int | str) -> None:
    weight = (QID < 8).astype(float)
    others = [Y, 1.0 - Y, *((HIDDEN * X[:, k] > 0).astype(float) for k in range(4))]
    models = [
        AdditiveSVMRanker(bins=8, interactions=interactions).fit(
            X, np.where(weight > 0, Y, labels), qid=QID, sample_weight=weight
        )
        for labels in others
    ]
    for name in ("C_", "line_", "pairs_", "coef_"):
        for model in models:
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name))


def test_path_weights_and_early_stopping_are_those_of_any_svm(tmp_path: Path) -> None:
    ranker = AdditiveSVMRanker(bins=8, tol=1e-4)
    path = ranker.path(X, Y, [0.5, 4.0], qid=QID, eval_set=(X, Y), eval_qid=QID)
    for each in path:
        alone = AdditiveSVMRanker(C=each.C, line=each.line_, bins=8, tol=1e-4).fit(X, Y, qid=QID)
        assert each.result_.value == pytest.approx(alone.result_.value, rel=2e-4)
        assert "AP" in each.history_[-1]
        each.save(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(
            load(tmp_path / "model.safetensors").predict(X), each.predict(X)
        )
    half = QID < N_QUERIES // 2
    weighted = AdditiveSVMRanker(bins=8, tol=1e-4).fit(X, Y, qid=QID, sample_weight=half)
    stopped = AdditiveSVMRanker(bins=8, patience=1).fit(
        X, Y, qid=QID, eval_set=(X[half], Y[half]), eval_qid=QID[half]
    )
    assert weighted.score(X[half], Y[half], qid=QID[half]) > 0.9
    assert stopped.result_.status in ("stopped", "converged")


@pytest.mark.parametrize("solver", ["one-slack", "bundle"])
def test_other_solvers_find_the_same(solver: str) -> None:
    found = [
        AdditiveSVMRanker(C=4.0, bins=8, line="normal", tol=1e-4, solver=name).fit(X, Y, qid=QID)
        for name in ("bcfw", solver)
    ]
    assert found[0].result_.value == pytest.approx(found[1].result_.value, rel=3e-4)


def test_missing_values_have_a_weight_of_their_own() -> None:
    rows = X.copy()
    rows[Y == 1, 2] = np.nan
    ranker = AdditiveSVMRanker(bins=8).fit(rows, Y, qid=QID)
    assert ranker.score(rows, Y, qid=QID) == 1.0
    assert ranker.tables_[-1, 2] > 0
    one = np.full((1, 5), np.nan)
    assert ranker.predict(one)[0] == pytest.approx(ranker.tables_[-1].sum())


def test_categories_have_weights_of_their_own_and_strangers_none() -> None:
    rows = X.copy()
    rows[:, 4] = np.where(Y == 1, RNG.choice([7.0, -3.0], len(Y)), RNG.choice([2.0, 9.0], len(Y)))
    ranker = AdditiveSVMRanker(bins=4, categorical=[4]).fit(rows, Y, qid=QID)
    assert ranker.score(rows, Y, qid=QID) == 1.0
    table = ranker.tables_[:, 4]
    assert ranker.edges_[4][:4].tolist() == [-3.0, 2.0, 7.0, 9.0]
    assert min(table[1], table[3]) > max(table[2], table[4])
    strange = rows[:1].copy()
    strange[0, 4] = 5.5
    base = ranker.predict(rows[:1]) - ranker.tables_[ranker.bins_.transform(rows[:1]).bins[0, 4], 4]
    assert ranker.predict(strange)[0] == pytest.approx(base[0])


@pytest.mark.parametrize("solver", ["bcfw", "one-slack"])
def test_monotone_features(solver: str) -> None:
    """The dual of the constrained problem certifies it, and the functions keep their promise."""
    random = np.random.default_rng(7)
    rows = np.column_stack([X, -X[:, 1] + 0.5 * random.normal(size=len(Y))])
    shared: dict[str, Any] = {"bins": 16, "C": 5.0, "line": "quantile", "tol": 1e-6}
    free = AdditiveSVMRanker(**shared).fit(rows, Y, qid=QID)
    ranker = AdditiveSVMRanker(**shared, solver=solver, increasing=[0, 1], decreasing=[5])
    ranker.fit(rows, Y, qid=QID)
    assert ranker.result_.converged
    assert ranker.result_.value > free.result_.value
    steps = np.diff(ranker.tables_[:-1], axis=0)
    assert np.all(steps[:, :2] >= -1e-15)
    assert np.all(steps[:, 5] <= 1e-15)
    assert np.any(np.diff(free.tables_[:-1, 0]) < 0)
    # No feasible change of the weights improves the objective.
    design = ranker._design_rows(rows)
    problem = RankingProblem(design, Y, GROUPS, AveragePrecision())
    w = RowBCFW(tol=1e-6).solve(problem, 5.0).w
    plain = ranker.bins_.transform(rows)
    np.testing.assert_allclose(plain.weights(design.tables(w)), ranker.coef_, atol=2e-3)

    def value(w: NDArray[np.float64]) -> float:
        return float(0.5 * w @ w + 5.0 * problem.weights @ problem.risks(w))

    assert value(w) == pytest.approx(ranker.result_.value, rel=2e-6)
    for _ in range(50):
        other = clipped(
            w + 0.1 * random.normal(size=len(w)) * random.random(), problem.weight_signs
        )
        assert value(other) >= value(w) * (1 - 1e-6)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"bins": 1}, "bins"),
        ({"bins": 300}, "bins"),
        ({"strategy": "nonsense"}, "strategy"),
        ({"categorical": [9]}, "categorical"),
        ({"increasing": ["bm25"]}, "increasing"),
        ({"increasing": [1], "decreasing": [1]}, "decreasing"),
        ({"increasing": [1], "solver": "n-slack"}, "solver"),
        ({"increasing": [1], "solver": "bundle"}, "solver"),
        ({"interactions": -1}, "interactions"),
        ({"interactions": "many"}, "interactions"),
        ({"roughness": -1.0}, "roughness"),
        ({"roughness": "low"}, "roughness"),
        ({"bins": 2.5}, "bins"),
        ({"bins": "many"}, "bins"),
        ({"line": "curve"}, "line"),
    ],
)
def test_mistakes_name_their_parameter(parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError, match=field):
        AdditiveSVMRanker(**parameters).fit(X, Y, qid=QID)


def test_importance_is_the_deviation_of_what_a_feature_adds() -> None:
    ranker = AdditiveSVMRanker(bins=8).fit(X, Y, qid=QID)
    bins = ranker.bins_.transform(X).bins
    added = np.take_along_axis(ranker.tables_, bins.astype(int), axis=0)
    np.testing.assert_allclose(ranker.feature_importances_, added.std(axis=0))
    assert set(np.argsort(-ranker.feature_importances_)[:2]) == {0, 1}


def all_pairs(seed: int, n_queries: int = 60) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Judged rows whose relevance is the product of the signs of two features."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(10 * n_queries, 6))
    hidden = (rows[:, 1] * rows[:, 4] + 0.1 * rng.normal(size=len(rows))).reshape(n_queries, 10)
    y = (hidden >= np.sort(hidden)[:, [-3]]).astype(float).ravel()
    return rows, y, np.repeat(np.arange(n_queries), 10)


def test_interactions_are_found_and_learned(tmp_path: Path) -> None:
    rows, y, qid = all_pairs(0)
    other = all_pairs(1)
    alone = AdditiveSVMRanker(bins=16, interactions=0).fit(rows, y, qid=qid)
    ranker = AdditiveSVMRanker(bins=16, interactions=1).fit(rows, y, qid=qid)
    assert ranker.pairs_.tolist() == [[1, 4]]
    assert ranker.score(other[0], other[1], qid=other[2]) > 0.7
    assert alone.score(other[0], other[1], qid=other[2]) < 0.6
    assert ranker.feature_importances_.shape == (6,)
    assert ranker.pair_importances_[0] > 5 * ranker.feature_importances_.max()
    ranker.save(tmp_path / "model.safetensors")
    again = AdditiveSVMRanker.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(other[0]), ranker.predict(other[0]))


def test_as_many_interactions_as_clearly_pay() -> None:
    rows, y, qid = all_pairs(0)
    paired = AdditiveSVMRanker(bins=8, tol=1e-2).fit(rows, y, qid=qid)
    assert [1, 4] in paired.pairs_.tolist()
    additive = AdditiveSVMRanker(bins=8, tol=1e-2).fit(X, Y, qid=QID)
    assert len(additive.pairs_) == 0
    assert additive.bins_.height == 9  # no room for cells of pairs that there are not


@pytest.mark.parametrize("interactions", ["auto", 3])
def test_where_all_columns_but_one_are_monotone_there_are_no_pairs(interactions: int | str) -> None:
    for rising in (range(5), range(4)):
        ranker = AdditiveSVMRanker(C=4.0, increasing=[*rising], interactions=interactions)
        assert not len(ranker.fit(X, Y, qid=QID).pairs_)


def test_a_warm_start_begins_at_weights_of_the_same_pairs() -> None:
    ranker = AdditiveSVMRanker("ndcg@5", C=4.0, interactions=2, warm_start=True).fit(X, Y, qid=QID)
    pairs = ranker.pairs_
    other = RNG.normal(size=X.shape)
    ranker.fit(other, np.argsort(np.argsort(other[:, 2] * other[:, 4])) % 9 < 3, qid=QID)
    assert ranker.pairs_.tolist() == pairs.tolist()
    assert len(ranker.set_params(interactions=1, warm_start=False).fit(X, Y, qid=QID).pairs_) == 1


def test_a_path_has_the_values_of_C_that_are_given_and_leaves_its_ranker() -> None:
    ranker = AdditiveSVMRanker(interactions=0)
    path = ranker.path(X, Y, [7.0, 0.5], qid=QID)
    assert [(one.C, one.C_) for one in path] == [(0.5, 0.5), (7.0, 7.0)]
    with pytest.raises(NotFittedError):
        ranker.predict(X)
    scores = ranker.fit(X, Y, qid=QID).predict(X)
    ranker.path(10 * X[:, :3], Y, [1.0], qid=QID)
    np.testing.assert_array_equal(ranker.predict(X), scores)


def test_a_warm_start_keeps_pairs() -> None:
    rows, y, qid = all_pairs(0)
    ranker = AdditiveSVMRanker(bins=8, C=4.0, tol=1e-2, warm_start=True).fit(rows, y, qid=qid)
    pairs = ranker.pairs_
    assert len(pairs)
    few = qid < 50
    ranker.fit(rows[few], y[few], qid=qid[few])
    np.testing.assert_array_equal(ranker.pairs_, pairs)


def test_pairs_of_many_columns_are_not_looked_for_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, y, qid = all_pairs(0)
    monkeypatch.setattr("didyma.ranking.additive.MOST_COLUMNS", 5)
    ranker = AdditiveSVMRanker(bins=8, tol=1e-2)
    assert len(ranker.fit(rows, y, qid=qid).pairs_) == 0
    assert len(ranker.set_params(interactions=2).fit(rows, y, qid=qid).pairs_) == 2


def test_monotone_columns_do_not_interact() -> None:
    rows, y, qid = all_pairs(0)
    ranker = AdditiveSVMRanker(bins=8, interactions=99, increasing=[1]).fit(rows, y, qid=qid)
    assert len(ranker.pairs_) == 10
    assert 1 not in ranker.pairs_


def test_few_rows_and_many_are_binned_alike_and_a_model_scores_as_its_estimator() -> None:
    """Missing values, categories known and unknown, infinities, pairs, both precisions."""
    rows = X.copy()
    rows[::7, 1] = np.nan
    rows[:, 4] = np.round(np.abs(X[:, 4]) * 2)
    ranker = AdditiveSVMRanker(bins=16, categorical=[4], interactions=2).fit(rows, Y, qid=QID)
    model = Model.of(ranker)
    assert len(ranker.pairs_) == 2
    new = RNG.normal(size=(300, 5)) * 3
    new[::5, 0], new[1::5, 0], new[::3, 1] = np.inf, -np.inf, np.nan
    new[:, 4] = np.round(np.abs(new[:, 4]) * 2)
    new[:63, 2] = ranker.edges_[2, np.minimum(np.arange(63), 14)]  # values that are edges
    for given in (new, new.astype(np.float32)):
        bins = ranker.bins_.transform(given).bins
        many = np.tile(given, (2 * FEW // len(given), 1))  # which are looked up in a grid
        np.testing.assert_array_equal(ranker.bins_.transform(many).bins[: len(given)], bins)
        scores = step_scores(bins, ranker.tables_)
        assert model.predict(Lists(given)).tobytes() == scores.tobytes()
    finite = np.where(np.isfinite(new), new, 0.0)
    assert model.predict(Lists(finite)).tobytes() == ranker.predict(finite).tobytes()


def test_steps_are_the_nearest_step_functions_but_for_a_constant() -> None:
    binned = some_bins(sloped=False)
    values = RNG.normal(size=binned.bins.shape)
    added = binned @ binned.steps(values)
    expected = np.zeros(len(added))
    for own, column in zip(binned.bins.T, values.T):
        expected += [column[own == b].mean() for b in own]
    assert np.ptp(added - expected) == pytest.approx(0, abs=1e-12)
