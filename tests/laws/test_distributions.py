"""Every structure as a distribution p(output) ∝ exp(score), held against all of its outputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import didyma
from didyma.structures import Choice, Forest, Matching, Recurrence, Segmentation, Tree, either
from tests.laws import enumeration
from tests.laws.test_sparsemap import CASES, instance_of, vertices_of

COMPILED = [name for name in CASES if name != "user's own"]
HARD = [n for n in COMPILED if isinstance(CASES[n].structure, (Matching, Forest))]
TRACTABLE = [name for name in COMPILED if name not in HARD]


def names_of(outputs):
    return [np.asarray(output).ravel().tolist() for output in outputs]


@pytest.mark.parametrize("kind", ["gaussian", "integer", "constant"])
@pytest.mark.parametrize("name", COMPILED)
def test_k_best(name, kind):
    case = CASES[name]
    scores, additional = instance_of(case, kind, 1)
    _, theta = vertices_of(case, scores, additional)
    names = names_of(case.outputs)
    expected = np.sort(theta)[::-1]
    for k in (1, 4, len(theta) + 2) if len(theta) < 60 else (1, 7):
        outputs, totals = case.structure.k_best(scores, k, **additional)
        assert len(outputs) == len(totals) == k
        n = min(k, len(theta))
        np.testing.assert_allclose(totals[:n], expected[:n], atol=1e-12)
        assert np.isneginf(totals[n:]).all()
        found = [names.index(one) for one in names_of(outputs[:n])]
        assert len(set(found)) == n
        np.testing.assert_allclose(theta[found], totals[:n], atol=1e-12)
    best, _ = case.structure.k_best(scores, 1, **additional)
    if kind == "gaussian":
        np.testing.assert_array_equal(best[0], case.structure.predict(scores, **additional))


def total(case, output, layout):
    parts, extra_parts = case.structure.encode(output, layout)
    extra = layout.extra[0][extra_parts[extra_parts >= 0]]
    return layout.scores[0][parts[parts >= 0]].sum() + extra.sum()


@pytest.mark.parametrize("name", COMPILED)
def test_k_best_of_what_is_left(name):
    """Forbidden parts, and masks, which are only very low scores here."""
    case = CASES[name]
    for mask in (-np.inf, -1e4, -1e30):
        scores, additional = instance_of(case, "gaussian", 2)
        layout = case.structure.lay_out(scores, **additional)
        kept = [
            case.structure.encode(one, layout)[0] for one in (case.outputs[0], case.outputs[-1])
        ]
        masked = ~np.isin(np.arange(scores.size), np.concatenate(kept, axis=None))
        scores = np.where(masked.reshape(scores.shape), mask, scores)
        layout = case.structure.lay_out(scores, **additional)
        theta = np.array([total(case, output, layout) for output in case.outputs])
        expected = np.sort(theta[theta > -np.inf])[::-1]
        _, totals = case.structure.k_best(scores, 5, **additional)
        n = min(5, len(expected))
        np.testing.assert_allclose(totals[:n], expected[:n], rtol=1e-12, atol=1e-11)
        assert np.isneginf(totals[n:]).all()


@pytest.mark.parametrize("kind", ["gaussian", "sharp", "constant"])
@pytest.mark.parametrize("name", TRACTABLE)
def test_sums(name, kind):
    case = CASES[name]
    structure = case.structure
    scores, additional = instance_of(case, kind, 0)
    M, theta = vertices_of(case, scores, additional)
    log_p = theta - logsumexp(theta)
    p = np.exp(log_p)
    assert structure.log_partition(scores, **additional) == pytest.approx(logsumexp(theta))
    marginals = structure.marginals(scores, **additional)
    np.testing.assert_allclose(marginals.ravel(), M @ p, atol=1e-10)
    entropy = structure.entropy(scores, **additional)
    assert entropy == pytest.approx(-p @ log_p, abs=1e-10)
    other, more = instance_of(case, "gaussian", 9)
    for theirs in (None, more):
        _, rho = vertices_of(case, other, additional if theirs is None else theirs)
        divergence = p @ (log_p - rho + logsumexp(rho))
        found = structure.kl(scores, other, other_additional=theirs, **additional)
        assert found == pytest.approx(divergence, abs=1e-10)
    assert structure.kl(scores, scores, **additional) == pytest.approx(0.0, abs=1e-10)


def on_a_grid(case, seed):
    """An instance whose scores lose no digit to an offset."""
    scores, additional = instance_of(case, "gaussian", seed)
    return np.round(8 * scores) / 8, {key: np.round(8 * own) / 8 for key, own in additional.items()}


@pytest.mark.parametrize("offset", [1e3, -1e3, 1e6, -1e6, 1e9])
@pytest.mark.parametrize("name", TRACTABLE)
def test_an_offset_of_all_scores_costs_no_digit_but_its_own(name, offset):
    """Compared by what outputs score less than the best, which needs no digit of the offset."""
    case = CASES[name]
    structure = case.structure
    scores, additional = on_a_grid(case, 3)
    other, more = on_a_grid(case, 4)
    M, theta = vertices_of(case, scores, additional)
    _, rho = vertices_of(case, other, more)
    n_parts = M.sum(axis=0)
    most = n_parts.max() if offset > 0 else n_parts.min()
    theta, rho = theta + offset * (n_parts - most), rho + offset * (n_parts - most)
    log_p, log_q = theta - logsumexp(theta), rho - logsumexp(rho)
    p = np.exp(log_p)
    rounding = 4e-16 * abs(offset) * scores.size + 1e-12
    scores, other = scores + offset, other + offset
    log_partition = structure.log_partition(scores, **additional)
    assert log_partition - offset * most == pytest.approx(logsumexp(theta), abs=rounding)
    marginals = structure.marginals(scores, **additional)
    np.testing.assert_allclose(marginals.ravel(), M @ p, atol=rounding)
    assert structure.entropy(scores, **additional) == pytest.approx(-p @ log_p, abs=rounding)
    divergence = structure.kl(scores, other, other_additional=more, **additional)
    assert divergence == pytest.approx(p @ (log_p - log_q), abs=2 * rounding)


@pytest.mark.parametrize("name", TRACTABLE)
def test_marginals_are_the_gradient_of_the_log_partition(name):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 4)
    rng = np.random.default_rng(4)
    direction = 1e-5 * rng.standard_normal(scores.shape)
    moved = {key: 1e-5 * rng.standard_normal(value.shape) for key, value in additional.items()}
    ahead, behind = (
        case.structure.log_partition(
            scores + sign * direction,
            **{key: value + sign * moved[key] for key, value in additional.items()},
        )
        for sign in (1, -1)
    )
    layout = case.structure.lay_out(scores, **additional)
    _, marginals, extra = case.structure.sums(layout)
    slope = marginals[0] @ direction.ravel() + sum(
        extra[0, place.start : place.stop] @ moved[key].ravel()
        for key, place in layout.additional.items()
    )
    assert slope == pytest.approx((ahead - behind) / 2, abs=1e-9)


def all_parts(case, scores, additional):
    """How often each part and each additional one is in each output; the outputs' shares."""
    M, theta = vertices_of(case, scores, additional)
    layout = case.structure.lay_out(scores, **additional)
    M = np.vstack([M, np.zeros((layout.extra.shape[1], len(theta)))])
    for s, output in enumerate(case.outputs):
        _, extra_parts = case.structure.encode(output, layout)
        np.add.at(M[:, s], layout.scores.shape[1] + extra_parts[extra_parts >= 0], 1.0)
    return M, np.exp(theta - logsumexp(theta))


def cumulant(M, share, *directions):
    """Of each part with sums over an output's parts: one or two of these, by the definition."""
    centred = [direction @ M - direction @ M @ share for direction in directions]
    return (M - (M @ share)[:, None]) @ (share * np.prod(centred, axis=0))


@pytest.mark.parametrize("kind", ["gaussian", "sharp", "constant"])
@pytest.mark.parametrize("name", TRACTABLE)
def test_covariances_and_third_cumulants(name, kind):
    case = CASES[name]
    scores, additional = instance_of(case, kind, 5)
    layout = case.structure.lay_out(np.stack([scores, scores]), **additional)
    M, share = all_parts(case, scores, additional)
    p, r = np.random.default_rng(6).standard_normal((2, 2, len(M)))
    halves = [part for d in (p, r) for part in np.split(d, [layout.scores.shape[1]], axis=1)]
    found = np.hstack(case.structure.covariances(layout, *halves[:2]))
    third = np.hstack(case.structure.third_cumulants(layout, *halves))
    for b in range(2):
        np.testing.assert_allclose(found[b], cumulant(M, share, p[b]), atol=1e-10)
        np.testing.assert_allclose(third[b], cumulant(M, share, p[b], r[b]), atol=1e-10)


@pytest.mark.parametrize("name", TRACTABLE)
@pytest.mark.parametrize("mask", [-np.inf, -1e30])
def test_cumulants_of_what_is_left(name, mask):
    """Large scores that cancel, and masks; what is impossible may move by anything."""
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 2)
    one = case.structure.lay_out(scores, **additional)
    kept = [case.structure.encode(o, one)[0] for o in (case.outputs[0], case.outputs[-1])]
    masked = ~np.isin(np.arange(scores.size), np.concatenate(kept, axis=None))
    masked = masked.reshape(scores.shape)
    scores = np.where(masked, mask, scores + 1000.0)
    M, share = all_parts(case, np.where(masked, -1e6, scores), additional)
    layout = case.structure.relevant(case.structure.lay_out(scores, **additional))
    p, r = np.random.default_rng(7).standard_normal((2, 1, len(M)))
    expected = cumulant(M, share, p[0]), cumulant(M, share, p[0], r[0])
    p[0, np.flatnonzero(masked)] = 1e6
    halves = [part for d in (p, r) for part in np.split(d, [scores.size], axis=1)]
    found = case.structure.covariances(layout, *halves[:2])
    third = case.structure.third_cumulants(layout, *halves)
    np.testing.assert_allclose(np.hstack(found)[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(np.hstack(third)[0], expected[1], atol=1e-10)


@pytest.mark.parametrize("height", [5.0, 10.0, 20.0, 40.0, 1000.0])
@pytest.mark.parametrize("single_root", [False, True])
def test_cumulants_of_arcs_that_an_inverse_would_lose(single_root, height):
    structure = Tree(single_root=single_root)
    scores = np.zeros((5, 5))
    for word, other in ((1, 4), (2, 3)):  # each other's only head but once in e^height
        scores[word, other] = scores[other, word] = height
    layout = structure.lay_out(scores)
    p, r = np.random.default_rng(0).standard_normal((2, 1, 25))
    outputs = list(enumeration.trees(4, single_root=single_root))
    M = np.zeros((25, len(outputs)))
    for s, heads in enumerate(outputs):
        M[5 * np.arange(1, 5) + heads[1:], s] = 1.0
    share = np.exp(scores.ravel() @ M - logsumexp(scores.ravel() @ M))
    nothing = np.zeros((1, 0))
    found, _ = structure.covariances(layout, p, nothing)
    third, _ = structure.third_cumulants(layout, p, nothing, r, nothing)
    np.testing.assert_allclose(found[0], cumulant(M, share, p[0]), atol=1e-10)
    np.testing.assert_allclose(third[0], cumulant(M, share, p[0], r[0]), atol=1e-10)


@pytest.mark.parametrize("name", TRACTABLE)
def test_samples(name):
    """As often as they are probable, within five standard deviations."""
    case = CASES[name]
    n = 3000
    scores, additional = instance_of(case, "gaussian", 3)
    _, theta = vertices_of(case, scores, additional)
    p = np.exp(theta - logsumexp(theta))
    names = {tuple(one): s for s, one in enumerate(names_of(case.outputs))}
    samples = case.structure.sample(scores, n, random_state=0, **additional)
    counts = np.zeros(len(p))
    for one in names_of(samples):
        counts[names[tuple(one)]] += 1
    assert np.all(np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1)
    again = case.structure.sample(scores, n, random_state=0, **additional)
    np.testing.assert_array_equal(samples, again)
    assert (samples != case.structure.sample(scores, n, random_state=1, **additional)).any()
    pair = case.structure.sample(np.stack([scores, scores]), n, random_state=0, **additional)
    np.testing.assert_array_equal(pair[0], samples)
    assert (pair[1] != samples).any()


@pytest.mark.parametrize("single_root", [False, True])
def test_trees_whose_walks_would_never_end(single_root):
    """Two words that want each other's company: a walk would leave them once in e^30 steps."""
    structure = Tree(single_root=single_root)
    scores = np.full((4, 4), -1.0)
    scores[1, 2] = scores[2, 1] = 30.0
    scores[3, 1] = -0.5
    samples = structure.sample(scores, 400, random_state=0)
    frequencies = np.mean(samples[:, :, None] == np.arange(4), axis=0)
    marginals = structure.marginals(scores)
    deviation = np.sqrt(marginals * (1 - marginals) / 400)
    assert np.all(np.abs(frequencies - marginals)[1:] <= 5 * deviation[1:] + 1e-9)


@pytest.mark.parametrize("name", HARD)
def test_what_is_hard_is_refused_with_a_reason(name):
    case = CASES[name]
    scores, _ = instance_of(case, "gaussian", 0)
    for method, arguments in [
        ("marginals", ()),
        ("log_partition", ()),
        ("entropy", ()),
        ("kl", (scores,)),
    ]:
        with pytest.raises(NotImplementedError, match="#P-hard; use SparseMAP"):
            getattr(case.structure, method)(scores, *arguments)


@pytest.mark.parametrize("name", COMPILED)
def test_bad_arguments_are_named(name):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 0)
    with pytest.raises(didyma.DataError, match="k: expected a whole number from 1 up"):
        case.structure.k_best(scores, 0, **additional)
    with pytest.raises(didyma.DataError, match="n: expected a whole number from 0 up"):
        case.structure.sample(scores, -1, 0, **additional)


def test_impossible_instances_are_named():
    scores = np.array([[0.0, 1.0], [-np.inf, -np.inf]])
    for method, arguments in [("k_best", (1,)), ("sample", (1, 0)), ("entropy", ())]:
        with pytest.raises(didyma.DataError, match="instance 1: every output contains"):
            getattr(Choice(), method)(scores, *arguments)


def test_a_divergence_from_what_is_impossible_is_infinite():
    assert Choice().kl([0.0, 0.0], [0.0, -np.inf]) == np.inf
    assert Choice().kl([0.0, -np.inf], [0.0, 0.0]) == pytest.approx(np.log(2))
    with pytest.raises(didyma.DataError, match="other: expected the shape of the scores"):
        Choice().kl([0.0, 0.0], [0.0, 0.0, 0.0])


# recurrences


class Written(Recurrence):
    """Whatever a function returns."""

    def __init__(self, function):
        self.function = function

    def recurrence(self, scores):
        return self.function(scores)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda s: s[0] + s[1] + s[0], r"the part at index \[0\] can occur twice"),
        (lambda s: either(s[0], s[1]) + either(0, s[1]), r"index \[1\] can occur twice"),
        (lambda s: s[0] + 1.5, r"0 or -inf, found 1.5: other numbers belong"),
        (lambda s: either(s[0], "x"), "0 or -inf, found 'x'"),
        (lambda s: -np.inf, r"Written: scores of shape \(3,\) have no output"),
        (lambda s: s, "found array"),
        (lambda s: either(0, 0), "twice"),
    ],
)
def test_a_bad_recurrence_is_named(function, message):
    with pytest.raises(didyma.DataError, match=message):
        Written(function).predict(np.zeros(3))


@pytest.mark.parametrize(
    ("function", "outputs"),
    [
        (lambda s: 0, [[]]),
        (lambda s: s[1], [[1]]),
        (lambda s: either(0, s[1]), [[], [1]]),
        (lambda s: either(either(), s[1] + -np.inf, s[0]), [[0]]),
        (lambda s: sum(s), [[0, 1, 2]]),
        (lambda s: 0 + either(x + y for x in s[:2] for y in s[2:]), [[0, 2], [1, 2]]),
        (lambda s: either(s[0] + s[1], s[2] + 0) + 0, [[0, 1], [2]]),
    ],
)
def test_small_recurrences(function, outputs):
    structure = Written(function)
    scores = np.array([0.5, -1.0, 2.0])
    theta = np.array([scores[one].sum() for one in outputs])
    found, totals = structure.k_best(scores, 5)
    np.testing.assert_allclose(totals[: len(theta)], np.sort(theta)[::-1])
    assert np.isneginf(totals[len(theta) :]).all()
    assert {tuple(np.flatnonzero(one)) for one in found[: len(theta)]} == set(map(tuple, outputs))
    assert structure.log_partition(scores) == pytest.approx(logsumexp(theta))
    u = didyma.sparsemap(scores, structure)
    assert sum(u) == pytest.approx(u.sum())
    assert structure.sample(scores, 4, 0).shape == (4, 3)


def test_segments_are_lists():
    assert Segmentation.segments([2, 3, 0, 0, 1, 1, -1, -1]) == [(0, 2, 1), (2, 3, 0), (3, 6, 0)]
    assert Segmentation.segments([-1, -1]) == []
