"""What must not matter: how a part is forbidden, what stands where nothing is read, who else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import didyma
from didyma.polytope.local import local_sparsemap
from didyma.polytope.sparsemap import ConditionalGradient, ToleranceWarning
from didyma.structures import (
    Chain,
    Choice,
    Constituency,
    FactorGraph,
    Forest,
    HigherOrderChain,
    Matching,
    MonotoneAlignment,
    ProjectiveTree,
    Segmentation,
    TopK,
    Tree,
)
from tests.laws.test_sparsemap import CASES, OPTIONAL, Spaced, instance_of, vertices_of

MASKS = [-1e4, -1e9, -1e30, float(np.finfo(np.float32).min), float(np.finfo(np.float64).min)]


def forbid(case, scores, additional, rng, share=0.6):
    """Where scores may be masked such that two outputs remain: (scores, additional)."""
    layout = case.structure.lay_out(scores, **additional)
    allowed, allowed_extra = (np.zeros(size, bool) for size in (scores.size, layout.extra.shape[1]))
    for kept in rng.choice(len(case.outputs), 2):
        parts, extra_parts = case.structure.encode(case.outputs[kept], layout)
        allowed[parts[parts >= 0]] = True
        allowed_extra[extra_parts[extra_parts >= 0]] = True
    masked = ~allowed & (rng.random(scores.size) < share)
    masked_extra = ~allowed_extra & (rng.random(allowed_extra.shape) < share)
    return masked.reshape(scores.shape), {
        name: masked_extra[place.start : place.stop].reshape(place.shape)
        for name, place in layout.additional.items()
    }


def with_masks(scores, additional, masked, mask):
    return np.where(masked[0], mask, scores), {
        name: np.where(masked[1][name], mask, values) for name, values in additional.items()
    }


def outcome(case, scores, additional, **settings):
    u, solution = didyma.sparsemap(
        scores, case.structure, return_solution=True, **additional, **settings
    )
    weight = np.random.default_rng(3).standard_normal(u.shape)
    gradient, gradients = solution.vjp(weight)
    assert solution.converged.all()
    assert solution.gap.max() <= 1e-9
    return [u, gradient, *gradients.values(), *solution.additional.values()]


@pytest.mark.parametrize("name", CASES)
def test_any_mask_is_infinite(name):
    case = CASES[name]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scores, additional = instance_of(case, "gaussian", seed)
        masked = forbid(case, scores, additional, rng)
        expected = outcome(case, *with_masks(scores, additional, masked, -np.inf))
        assert not expected[0][masked[0]].any()
        for mask in MASKS:
            found = outcome(case, *with_masks(scores, additional, masked, mask))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in CASES if n != "user's own"])
def test_any_mask_is_infinite_for_argmax_and_sums(name):
    case = CASES[name]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scores, additional = instance_of(case, "sharp", seed)
        masked = forbid(case, scores, additional, rng, 0.9)

        def everything(mask, scores=scores, additional=additional, masked=masked):
            given, more = with_masks(scores, additional, masked, mask)
            best = case.structure.predict(given, **more)
            if isinstance(case.structure, (Matching, Forest)):
                return [best]
            total = case.structure.log_partition(given, **more)
            return [best, total, case.structure.marginals(given, **more)]

        expected = everything(-np.inf)
        for mask in MASKS:
            for one, other in zip(everything(mask), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("structure", [Matching(), Tree(), Tree(single_root=True)], ids=repr)
@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_large_instances(structure, mask):
    """Most entries are masked, of 40 × 40: prices and gains add up many of them."""
    rng = np.random.default_rng(5)
    n = 40
    scores = rng.standard_normal((4, n + 1, n + 1))
    masked = rng.random(scores.shape) < 0.9
    for b in range(4):
        order = rng.permutation(n) + 1
        masked[b, order, [0, *order[:-1]]] = False  # a chain from the root, and a matching
        masked[b, 0, order[-1]] = False
    expected = didyma.sparsemap(np.where(masked, -np.inf, scores), structure)
    found, solution = didyma.sparsemap(
        np.where(masked, mask, scores), structure, return_solution=True
    )
    assert solution.gap.max() <= 1e-9
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_what_could_be_in_the_solution_is_not_forbidden(name):
    """At a high temperature, or with high scores, numbers like masks count."""
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 1)
    masked = forbid(case, scores, additional, np.random.default_rng(1))
    given, more = with_masks(scores, additional, masked, -1e4)
    expected = didyma.sparsemap(
        given / 1e5, case.structure, **{key: value / 1e5 for key, value in more.items()}
    )
    found = didyma.sparsemap(given, case.structure, temperature=1e5, **more)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    if name not in OPTIONAL | {"logic"}:  # these can do without
        assert found[masked[0]].any() or not masked[0].any()


@pytest.mark.parametrize(
    ("first", "second"),
    [((-900.0, 0.0), (-2000.0, 0.0)), ((-799.0, 0.0), (-4000.5, 3.0))],
)
def test_a_score_like_a_mask_that_the_best_output_contains(first, second):
    """All tags 0, or one low score and then nothing but high ones, which is better."""
    scores = np.full((5, 2), [first[0], second[1]])
    scores[0, 1] = second[0]
    stay = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    assert scores[:, 1].sum() > scores[:, 0].sum() + 5
    for found in (
        Chain().predict(scores, transitions=stay),
        didyma.sparsemap(scores, Chain(), transitions=stay)[:, 1],
        Chain().marginals(scores, transitions=stay)[:, 1].round(2),
    ):
        np.testing.assert_array_equal(found, 1.0)


@pytest.mark.parametrize("structure", [Choice(), Matching(), Tree(), TopK(2)], ids=repr)
def test_masks_that_cannot_be_avoided_are_scores(structure):
    shape = (4,) if structure.ndim == 1 else (4, 4)
    scores = np.random.default_rng(0).integers(-3, 4, shape).astype(float)
    lowered = scores - 2.0**40  # every output contains as many of them
    np.testing.assert_array_equal(structure.predict(lowered), structure.predict(scores))
    expected = didyma.sparsemap(scores, structure)
    np.testing.assert_allclose(didyma.sparsemap(lowered, structure), expected, atol=1e-2)


@pytest.mark.parametrize("step", ["pairwise", "away"])
@pytest.mark.parametrize("name", ["sequence", "single root", "square matching", "user's own"])
def test_conditional_gradients_do_not_mind_masks(name, step):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 2)
    masked = forbid(case, scores, additional, np.random.default_rng(2))
    expected = didyma.sparsemap(
        *with_masks(scores, {}, masked, -np.inf)[:1],
        case.structure,
        **with_masks(scores, additional, masked, -np.inf)[1],
    )
    given, more = with_masks(scores, additional, masked, -1e30)
    solver = ConditionalGradient(step)
    found = didyma.sparsemap(given, case.structure, solver=solver, tol=1e-12, **more)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["sequence", "single root", "square matching", "user's own"])
def test_a_warm_start_may_contain_what_is_masked_now(name, mask):
    case = CASES[name]
    scores, additional = instance_of(case, "flat", 4)
    _, start = didyma.sparsemap(scores, case.structure, return_solution=True, **additional)
    assert start.support_size[0] > 1
    masked = forbid(case, scores, additional, np.random.default_rng(4), 1.0)
    assert start.marginals[0][masked[0]].any()
    expected = outcome(case, *with_masks(scores, additional, masked, -np.inf))
    found = outcome(case, *with_masks(scores, additional, masked, mask), warm_start=start)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


# what is ignored


def padded(structure, shape):
    """Lengths of a batch of five, and which entries of its scores are read."""
    n = shape[0]
    if structure.ndim == 1 or isinstance(structure, (Chain, HigherOrderChain)):
        lengths = np.array([n, 3, n - 1, 0, 2])
        used = np.arange(n) < lengths[:, None]
        return lengths, used if structure.ndim == 1 else used[:, :, None] & np.ones(shape[1], bool)
    if isinstance(structure, (Matching, MonotoneAlignment)):
        lengths = np.array([[5, 4], [4, 4], [3, 0], [5, 2], [1, 1]])
        inside = (np.arange(size) < lengths[:, i, None] for i, size in enumerate(shape))
        rows, columns = inside
        used = rows[:, :, None] & columns[:, None]
        if structure == MonotoneAlignment("frames"):  # not beyond those that can be reached
            ahead = np.arange(n)[:, None] - np.arange(shape[1])
            used &= (ahead >= 0) & (ahead <= np.diff(-lengths, axis=1)[:, :, None])
        return lengths, used
    index = np.arange(n)
    if isinstance(structure, Segmentation):
        lengths = np.array([n, 3, n - 1, 0, 2])
        used = index[:, None] + np.arange(shape[1]) < lengths[:, None, None]
        return lengths, used[..., None] & np.ones(shape[2], bool)
    if isinstance(structure, Constituency):
        lengths = np.array([n, 3, n - 1, 0, 2])
        used = (index[:, None] <= index) & (index < lengths[:, None, None])
        return lengths, used[..., None] & np.ones(shape[2], bool)
    if isinstance(structure, Forest):
        lengths = np.array([n, 3, n - 1, 0, 2])
        return lengths, (index[:, None] < index) & (index < lengths[:, None, None])
    lengths = np.array([n - 1, 3, n - 2, 0, 1])
    inside = index <= lengths[:, None]
    used = inside[:, :, None] & inside[:, None] & ~np.eye(n, dtype=bool)
    used[:, 0] = False
    return lengths, used


PADDED = [
    (Choice(), (6,)),
    (TopK(2), (6,)),
    (TopK(4, exactly=False), (6,)),
    (Chain(), (6, 3)),
    (Tree(), (6, 6)),
    (Tree(single_root=True), (6, 6)),
    (ProjectiveTree(), (6, 6)),
    (ProjectiveTree(single_root=True), (6, 6)),
    (Matching(), (5, 4)),
    (Forest(), (6, 6)),
    (HigherOrderChain(2), (6, 3)),
    (Segmentation(), (6, 3, 2)),
    (Constituency(), (5, 5, 2)),
    (MonotoneAlignment("pairs"), (5, 4)),
    (MonotoneAlignment("warp"), (5, 4)),
    (MonotoneAlignment("frames"), (5, 4)),
    (Spaced(), (6,)),
]
GARBAGE = [np.nan, np.inf, 1e300, -1e30, 7.0, -np.inf]


def all_results(structure, scores, lengths, **additional):
    u, solution = didyma.sparsemap(
        scores, structure, lengths=lengths, return_solution=True, **additional
    )
    gradient, gradients = solution.vjp(np.random.default_rng(1).standard_normal(u.shape))
    results = [u, solution.gap, solution.n_iter, solution.weights, gradient, *gradients.values()]
    results += [structure.predict(scores, lengths, **additional)]
    results += structure.k_best(scores, 3, lengths, **additional)
    if not isinstance(structure, (Matching, Forest)):
        results += [
            structure.log_partition(scores, lengths, **additional),
            structure.marginals(scores, lengths, **additional),
            structure.entropy(scores, lengths, **additional),
            structure.sample(scores, 3, 0, lengths, **additional),
        ]
    return results


@pytest.mark.parametrize(("structure", "shape"), PADDED, ids=str)
def test_what_is_ignored_changes_no_bit(structure, shape):
    lengths, used = padded(structure, shape)
    rng = np.random.default_rng(0)
    scores = np.where(used, rng.standard_normal((5, *shape)), 0.0)
    expected = all_results(structure, scores, lengths)
    assert not expected[0][~used].any()
    for garbage in GARBAGE:
        found = all_results(structure, np.where(used, scores, garbage), lengths)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("each", [False, True])
def test_steps_beyond_a_length_are_ignored(each):
    rng = np.random.default_rng(0)
    lengths = np.array([4, 3, 1, 0, 2])
    scores = rng.standard_normal((5, 7, 3))
    transitions = rng.standard_normal((5, 6, 3, 3) if each else (6, 3, 3))
    used = np.arange(6) < lengths[:, None] - 1 if each else np.arange(6) < 3
    used = used[..., None, None]
    expected = all_results(Chain(), scores, lengths, transitions=np.where(used, transitions, 0))
    for garbage in GARBAGE:
        given = np.where(used, transitions, garbage)
        found = all_results(Chain(), scores, lengths, transitions=given)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


# others


def crop(structure, shape, length):
    if isinstance(structure, (Matching, MonotoneAlignment)):
        return tuple(slice(size) for size in length)
    if structure.ndim == 1 or isinstance(structure, (Chain, HigherOrderChain, Segmentation)):
        return (slice(length),)
    return (slice(length + ("Tree" in type(structure).__name__)),) * 2


@pytest.mark.parametrize(("structure", "shape"), PADDED, ids=str)
def test_neighbours_and_threads_change_no_bit(structure, shape):
    lengths, _ = padded(structure, shape)
    scores = np.random.default_rng(2).standard_normal((5, *shape))
    results = [
        didyma.sparsemap(scores, structure, lengths=lengths, return_solution=True, n_jobs=n_jobs)
        for n_jobs in (1, 2, 3)
    ]
    (u, together), *others = results
    for other, solution in others:
        np.testing.assert_array_equal(other, u)
        np.testing.assert_array_equal(solution.weights, together.weights)
        np.testing.assert_array_equal(solution.gap, together.gap)
    for b, length in enumerate(lengths):
        own = crop(structure, shape, length)
        alone, solution = didyma.sparsemap(scores[b][own], structure, return_solution=True)
        np.testing.assert_array_equal(u[b][own], alone)
        np.testing.assert_array_equal(together[b].probabilities, solution[0].probabilities)
        assert together.gap[b] == solution.gap[0]
        if not isinstance(structure, (Matching, Forest)):
            np.testing.assert_array_equal(
                structure.marginals(scores, lengths)[b][own], structure.marginals(scores[b][own])
            )
            assert structure.log_partition(scores, lengths)[b] == structure.log_partition(
                scores[b][own]
            )


def test_a_neighbour_with_a_large_support_changes_no_bit():
    """It makes a solver ask for more room, which its neighbours must not notice."""
    for seed in (0, 3):
        scores = 0.02 * np.random.default_rng(seed).standard_normal((2, 9, 9))
        together, solution = didyma.sparsemap(scores, Tree(), return_solution=True, n_jobs=1)
        assert solution.support_size.min() > 40
        for u, one in zip(together, scores, strict=True):
            alone, _ = didyma.sparsemap(one, Tree(), return_solution=True)
            np.testing.assert_array_equal(u, alone)


# rounding


@pytest.mark.parametrize(
    ("structure", "shape"), [(Tree(), (9, 9)), (TopK(4), (20,)), (Chain(), (12, 4))], ids=str
)
def test_a_gap_that_rounding_could_make_is_none(structure, shape):
    """The digits that 1e9 leaves decide; no warning tells of a solver in search of more."""
    scores = 1e9 + np.random.default_rng(0).standard_normal((4, *shape))
    _, solution = didyma.sparsemap(scores, structure, return_solution=True)
    assert solution.converged.all()
    assert solution.gap.max() < 1e-4


@pytest.mark.parametrize(
    ("structure", "shape"), [(Matching(), (7, 7)), (TopK(4), (20,)), (Chain(), (12, 4))], ids=str
)
def test_tiny_scores_can_be_solved_to_the_last_digit(structure, shape):
    scores = 1e-12 * np.random.default_rng(0).standard_normal((4, *shape))
    _, solution = didyma.sparsemap(scores, structure, tol=0.0, return_solution=True)
    assert solution.converged.all()
    assert solution.gap.max() < 1e-13


# temperatures


@pytest.mark.parametrize("temperature", [1e-12, 1e-3, 3.0, 1e12])
@pytest.mark.parametrize("name", CASES)
def test_the_gap_is_that_of_the_scores_as_given(name, temperature):
    """Found by a look at every output, in the units of the scores; also of a solver cut short."""
    case = CASES[name]
    scale = min(temperature, 1.0)
    scores, additional = instance_of(case, "gaussian", 6)
    scores, additional = scale * scores, {key: scale * value for key, value in additional.items()}
    scaled = {key: value / temperature for key, value in additional.items()}
    M, theta = vertices_of(case, scores, additional)
    names = [np.asarray(output).ravel().tolist() for output in case.outputs]
    rounding = 1e-14 * max(np.abs(theta).max(), temperature)

    def solve(scores, additional, temperature, limit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ToleranceWarning)
            return didyma.sparsemap(
                scores,
                case.structure,
                temperature=temperature,
                max_iter=limit,
                return_solution=True,
                **additional,
            )

    u, solution = solve(scores, additional, temperature, None)
    slack = theta - temperature * M.T @ u.ravel()
    chosen = [names.index(row.ravel().tolist()) for row in solution[0].structures]
    gap = slack.max() - slack[chosen] @ solution[0].probabilities
    assert solution.converged[0]
    assert solution.gap[0] <= 1e-9 * temperature
    assert solution.gap[0] == pytest.approx(gap, abs=rounding)
    for limit in (2, 3):
        _, early = solve(scores, additional, temperature, limit)
        _, same = solve(scores / temperature, scaled, 1.0, limit)
        assert early.gap[0] == pytest.approx(temperature * same.gap[0], rel=1e-9, abs=rounding)


def test_a_temperature_that_scores_cannot_be_divided_by():
    with pytest.raises(didyma.DataError, match=r"temperature: scores over .*1e-308 exceed 1e\+300"):
        didyma.sparsemap([1.0, 0.0], Choice(), temperature=1e-308)
    np.testing.assert_array_equal(didyma.sparsemap([1.0, 0.0], Choice(), temperature=1e-12), [1, 0])


# local


@pytest.mark.parametrize("mask", MASKS)
def test_local_masks(mask):
    graph = FactorGraph(4, 3, [(0, 1), (1, 2), (2, 3), (3, 0)])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores, pairwise = rng.standard_normal((4, 3)), rng.standard_normal((4, 3, 3))
        masked, masked_pairs = rng.random((4, 3)) < 0.3, rng.random((4, 3, 3)) < 0.3
        masked[:, 0] = masked_pairs[:, 0, 0] = False
        weight = rng.standard_normal((4, 3))

        def solve(mask, scores=scores, pairwise=pairwise, masked=(masked, masked_pairs)):
            return local_sparsemap(
                np.where(masked[0], mask, scores),
                graph,
                pairwise=np.where(masked[1], mask, pairwise),
            )

        expected, found = solve(-np.inf), solve(mask)
        assert found.converged
        np.testing.assert_allclose(found.marginals, expected.marginals, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.objective, expected.objective, rtol=0, atol=1e-9)
        (own, named), (others, others_named) = found.vjp(weight), expected.vjp(weight)
        np.testing.assert_allclose(own, others, rtol=0, atol=1e-9)
        np.testing.assert_allclose(named["pairwise"], others_named["pairwise"], rtol=0, atol=1e-9)
