"""What SparseMAP must be for every structure: certified by enumeration, differentiable, warm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import didyma
from didyma.polytope.sparsemap import ConditionalGradient, ToleranceWarning
from didyma.structures import (
    Chain,
    Choice,
    Constituency,
    FactorGraph,
    Forest,
    HigherOrderChain,
    Knapsack,
    Matching,
    MonotoneAlignment,
    ProjectiveTree,
    Recurrence,
    Segmentation,
    ShortestPath,
    TopK,
    Tree,
    either,
)
from didyma.structures.logic import AtMostOne
from didyma.testing import check_structure
from tests.laws import enumeration


@dataclass
class Case:
    structure: Any
    shape: tuple[int, ...]
    outputs: list[Any]
    additional: dict[str, tuple[int, ...]] = field(default_factory=dict)


class Window(didyma.Structure):
    """A run of three neighbours: a structure with nothing but an argmax."""

    def argmax(self, scores):
        start = np.argmax(np.convolve(scores, np.ones(3), mode="valid"))
        return np.arange(start, start + 3)

    def encode(self, output, layout):
        (indices,) = np.nonzero(output)
        return np.array([[*indices, *[-1] * (6 - len(indices))]]), np.zeros((1, 0), np.int32)


class Spaced(Recurrence):
    """Options of which no two are neighbours; ``early`` scores as many as the first four have."""

    lengths_along = ((0,),)

    def additional(self, shape):
        return {"bonus": (1,)}

    def recurrence(self, scores, bonus):
        before, best = 0, 0
        for i, score in enumerate(scores):
            before, best = best, either(best, score + before + (bonus[0] if i < 4 else 0))
        return best


DAG = [(0, 1), (0, 2), (1, 2), (5, 2), (1, 4), (2, 4), (2, 3), (4, 3)]
CHAIN = {"transitions": (3, 3), "start": (3,), "end": (3,)}
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
CASES = {
    "choice": Case(Choice(), (5,), [np.array(i) for i in range(5)]),
    "exactly three": Case(TopK(3), (6,), list(enumeration.subsets(6, 3, True))),
    "budget": Case(TopK(2, exactly=False), (5,), list(enumeration.subsets(5, 2, False))),
    "sequence": Case(Chain(), (4, 3), list(enumeration.sequences(4, 3)), CHAIN),
    "untied sequence": Case(
        Chain(), (4, 3), list(enumeration.sequences(4, 3)), {"transitions": (3, 3, 3)}
    ),
    "sequence of one": Case(Chain(), (1, 3), list(enumeration.sequences(1, 3)), CHAIN),
    "tree": Case(Tree(), (5, 5), list(enumeration.trees(4))),
    "single root": Case(
        Tree(single_root=True), (5, 5), list(enumeration.trees(4, single_root=True))
    ),
    "projective": Case(ProjectiveTree(), (5, 5), list(enumeration.trees(4, projective=True))),
    "projective single root": Case(
        ProjectiveTree(single_root=True),
        (5, 5),
        list(enumeration.trees(4, single_root=True, projective=True)),
    ),
    "square matching": Case(Matching(), (4, 4), list(enumeration.matchings(4, 4))),
    "wide matching": Case(Matching(), (3, 5), list(enumeration.matchings(3, 5))),
    "tall matching": Case(Matching(), (4, 2), list(enumeration.matchings(4, 2))),
    "forest": Case(Forest(), (4, 4), list(enumeration.forests(4))),
    "loop": Case(
        FactorGraph(4, 3, edges=SQUARE),
        (4, 3),
        list(enumeration.assignments(4, 3)),
        {"pairwise": (4, 3, 3)},
    ),
    "logic": Case(
        FactorGraph(5, 2, edges=[(0, 4)], logic=[AtMostOne([0, 1, 2])]),
        (5, 2),
        list(enumeration.assignments(5, 2, lambda chosen: sum(chosen[:3]) <= 1)),
        {"pairwise": (1, 2, 2)},
    ),
    "second order": Case(
        HigherOrderChain(2),
        (4, 3),
        list(enumeration.sequences(4, 3)),
        {"transitions": (3, 3, 3)},
    ),
    "segments": Case(
        Segmentation(),
        (4, 3, 2),
        list(enumeration.segmentations(4, 3, 2)),
        {"transitions": (2, 2)},
    ),
    "aligned pairs": Case(
        MonotoneAlignment("pairs"),
        (3, 4),
        list(enumeration.ordered_pairs(3, 4)),
        {"row_gaps": (3,), "column_gaps": (4,)},
    ),
    "warping": Case(
        MonotoneAlignment("warp"),
        (3, 4),
        list(enumeration.warpings(3, 4, [(0, 1), (1, 0), (1, 1)])),
    ),
    "frames": Case(
        MonotoneAlignment("frames"), (5, 3), list(enumeration.warpings(5, 3, [(1, 0), (1, 1)]))
    ),
    "constituents": Case(Constituency(), (3, 3, 2), list(enumeration.binary_trees(3, 2))),
    "path": Case(ShortestPath(DAG, 0, 3), (8,), list(enumeration.paths(DAG, 0, 3))),
    "knapsack": Case(
        Knapsack([3, 2, 0, 2, 9], 5), (5,), list(enumeration.fitting([3, 2, 0, 2, 9], 5))
    ),
    "recurrence": Case(Spaced(), (5,), list(enumeration.spaced(5)), {"bonus": (1,)}),
    "user's own": Case(
        Window(), (6,), list(np.array([np.isin(range(6), range(i, i + 3)) for i in range(4)]))
    ),
}
# where an output may do without a part that another has
OPTIONAL = {"forest", "budget", "aligned pairs", "warping", "knapsack", "recurrence"}
KINDS = ["gaussian", "flat", "sharp", "integer", "constant", "weak unaries"]


def scores_of(kind, shape, rng):
    if kind == "integer":
        return rng.integers(-2, 3, shape).astype(float)
    if kind == "constant":
        return np.ones(shape)
    return {"flat": 0.1, "sharp": 5.0, "weak unaries": 0.05}.get(kind, 1.0) * rng.standard_normal(
        shape
    )


def instance_of(case, kind, seed, batch=None):
    rng = np.random.default_rng(seed)
    lead = () if batch is None else (batch,)
    scores = scores_of(kind, (*lead, *case.shape), rng)
    other = "gaussian" if kind == "weak unaries" else kind
    return scores, {name: scores_of(other, s, rng) for name, s in case.additional.items()}


def vertices_of(case, scores, additional):
    """Dense columns of all outputs, and the scores of all outputs."""
    layout = case.structure.lay_out(scores, **additional)
    M = np.zeros((layout.scores.shape[1], len(case.outputs)))
    theta = np.zeros(len(case.outputs))
    for s, output in enumerate(case.outputs):
        parts, extra_parts = case.structure.encode(output, layout)
        M[parts[parts >= 0], s] = 1.0
        theta[s] = layout.extra[0][extra_parts[extra_parts >= 0]].sum()
    return M, theta + np.where(M.any(axis=1), layout.scores[0], 0.0) @ M


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_no_output_could_improve_the_solution(name, kind):
    case = CASES[name]
    for seed in range(5):
        scores, additional = instance_of(case, kind, seed)
        marginals, solution = didyma.sparsemap(
            scores, case.structure, return_solution=True, **additional
        )
        (found,) = solution
        assert found.converged
        assert found.gap <= 1e-9
        assert found.probabilities.min() > 0.0
        assert found.probabilities.sum() == pytest.approx(1.0)
        assert np.all(np.diff(found.probabilities) <= 0.0)
        M, theta = vertices_of(case, scores, additional)
        u = marginals.ravel()
        slack = theta - M.T @ u
        names = [np.asarray(output).ravel().tolist() for output in case.outputs]
        chosen = [names.index(row.ravel().tolist()) for row in found.structures]
        np.testing.assert_allclose(M[:, chosen] @ found.probabilities, u, atol=1e-12)
        assert slack.max() - slack[chosen] @ found.probabilities <= 1e-9


@pytest.mark.parametrize("name", CASES)
def test_the_laws_that_users_test_their_own_by(name):
    case = CASES[name]

    def draw(rng):
        more = {key: rng.standard_normal(shape) for key, shape in case.additional.items()}
        return rng.standard_normal(case.shape), more

    check_structure(case.structure, draw, outputs=lambda *_, **__: case.outputs, n_draws=5)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_finite_differences(name):
    case = CASES[name]
    for seed in range(3):
        scores, additional = instance_of(case, "gaussian", seed)
        u, solution = didyma.sparsemap(scores, case.structure, return_solution=True, **additional)
        if solution.weights.min() < 1e-3:
            continue  # next to a change of support the derivative is one-sided
        rng = np.random.default_rng(seed + 100)
        direction = rng.standard_normal(scores.shape)
        directions = {key: rng.standard_normal(v.shape) for key, v in additional.items()}
        step = 1e-5

        ahead, behind = (
            didyma.sparsemap(
                scores + change * direction,
                case.structure,
                **{key: value + change * directions[key] for key, value in additional.items()},
            )
            for change in (step, -step)
        )
        slope = (ahead - behind) / (2 * step)
        jvp = solution.jvp(direction, **directions)[0]
        np.testing.assert_allclose(jvp, slope, atol=1e-6)
        weight = rng.standard_normal(u.shape)
        d_scores, d_additional = solution.vjp(weight)
        transposed = np.vdot(d_scores, direction) + sum(
            np.vdot(d_additional[key], directions[key]) for key in additional
        )
        assert transposed == pytest.approx(np.vdot(weight, slope), abs=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name != "user's own"])
def test_a_batch_is_its_instances(name):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 0, batch=9)
    together, solution = didyma.sparsemap(
        scores, case.structure, return_solution=True, n_jobs=2, **additional
    )
    for b, one in enumerate(scores):
        np.testing.assert_array_equal(
            together[b], didyma.sparsemap(one, case.structure, n_jobs=1, **additional)
        )
    per_instance = {key: np.stack([value] * 9) for key, value in additional.items()}
    again, untied = didyma.sparsemap(scores, case.structure, return_solution=True, **per_instance)
    np.testing.assert_array_equal(together, again)
    weight = np.random.default_rng(1).standard_normal(scores.shape)
    tied_gradients = solution.vjp(weight)[1]
    for key, gradient in untied.vjp(weight)[1].items():
        total = gradient.sum(axis=0) if gradient.ndim > tied_gradients[key].ndim else gradient
        np.testing.assert_allclose(total, tied_gradients[key], atol=1e-12)


class OwnChain(didyma.Structure):
    """Sequences of three tags by plain enumeration, with a matrix of additional scores."""

    ndim = 2

    def additional(self, shape):
        return {"transitions": (shape[1], shape[1])}

    def argmax(self, scores, transitions):
        n, n_tags = scores.shape
        tags = np.array(list(enumeration.sequences(n, n_tags)))
        steps = tags[:, :-1] * n_tags + tags[:, 1:]
        best = np.argmax(
            scores[range(n), tags].sum(axis=1) + transitions.ravel()[steps].sum(axis=1)
        )
        used = scores.size + np.unique(steps[best])
        return np.concatenate([range(0, scores.size, n_tags) + tags[best], used])


ADDITIONAL = {name: case for name, case in CASES.items() if case.additional}
ADDITIONAL["user's own, pairs"] = Case(OwnChain(), (2, 3), [], {"transitions": (3, 3)})


@pytest.mark.parametrize("name", ADDITIONAL)
def test_a_batch_may_be_as_long_as_its_additional_scores(name):
    case = ADDITIONAL[name]
    for batch in {1, *(size for shape in case.additional.values() for size in shape)}:
        scores, additional = instance_of(case, "gaussian", 0, batch=batch)
        if name == "untied sequence" and batch == 3:  # three matrices, of instances or of steps
            with pytest.raises(didyma.DataError, match="not clear whose matrices these are"):
                didyma.sparsemap(scores, case.structure, **additional)
            continue
        together = didyma.sparsemap(scores, case.structure, n_jobs=1, **additional)
        alone = [didyma.sparsemap(one, case.structure, n_jobs=1, **additional) for one in scores]
        np.testing.assert_array_equal(together, alone)


def test_additional_scores_per_instance_of_a_structure_of_ones_own():
    scores, additional = instance_of(ADDITIONAL["user's own, pairs"], "gaussian", 0, batch=3)
    each = np.stack([k * additional["transitions"] for k in range(3)])
    together = didyma.sparsemap(scores, OwnChain(), transitions=each)
    alone = [didyma.sparsemap(one, OwnChain(), transitions=own) for one, own in zip(scores, each)]
    np.testing.assert_array_equal(together, alone)


def test_additional_scores_are_declared():
    with pytest.raises(didyma.DataError, match=r"pairs: Window has no such .* declares none"):
        didyma.sparsemap(np.zeros(6), Window(), pairs=np.zeros(5))
    for wrong in (np.zeros(4), np.zeros((1, 3)), np.zeros((2, 4, 3))):
        with pytest.raises(
            didyma.DataError, match=r"transitions: expected shape \(3, 3\), or \(2,"
        ):
            didyma.sparsemap(np.zeros((2, 2, 3)), OwnChain(), transitions=wrong)


PADDED = pytest.mark.parametrize(
    ("structure", "crop"),
    [
        (Choice(), lambda n: (n,)),
        (TopK(2, exactly=False), lambda n: (n,)),
        (Chain(), lambda n: (n, 3)),
        (Tree(), lambda n: (n + 1, n + 1)),
        (ProjectiveTree(single_root=True), lambda n: (n + 1, n + 1)),
        (Matching(), lambda n: (n, n)),
        (Forest(), lambda n: (n, n)),
        (HigherOrderChain(2), lambda n: (n, 3)),
        (Segmentation(), lambda n: (n, 3, 2)),
        (Constituency(), lambda n: (n, n, 2)),
        (Spaced(), lambda n: (n,)),
    ],
    ids=lambda value: str(value) if isinstance(value, didyma.Structure) else "",
)


@PADDED
def test_padding_changes_nothing(structure, crop):
    rng = np.random.default_rng(0)
    lengths = np.array([5, 1, 3, 2, 5, 4])
    scores = rng.standard_normal((len(lengths), *crop(5)))
    additional = {"end": rng.standard_normal(3)} if isinstance(structure, Chain) else {}
    marginals, solution = didyma.sparsemap(
        scores, structure, lengths=lengths, return_solution=True, n_jobs=1, **additional
    )
    assert solution.converged.all()
    gradient, _ = solution.vjp(scores)
    for b, n in enumerate(lengths):
        own = tuple(slice(size) for size in crop(n))
        alone, one = didyma.sparsemap(scores[b][own], structure, return_solution=True, **additional)
        np.testing.assert_allclose(marginals[b][own], alone, atol=1e-12)
        assert marginals[b].sum() == pytest.approx(alone.sum())
        np.testing.assert_allclose(gradient[b][own], one.vjp(scores[b][own])[0][0], atol=1e-9)
        assert solution[b].support_size == one[0].support_size


@PADDED
def test_nothing_depends_on_how_arrays_lie_in_memory(structure, crop):
    rng = np.random.default_rng(1)
    lengths = np.array([5, 1, 3, 2, 5, 4])
    if isinstance(structure, Matching):
        lengths = np.stack([lengths, rng.permutation(lengths)], axis=1)
    scores = rng.standard_normal((len(lengths), *crop(5)))
    scores[rng.random(scores.shape) < 0.1] = -1e30  # a mask
    expected, solution = didyma.sparsemap(scores, structure, lengths=lengths, return_solution=True)
    gradient, _ = solution.vjp(scores)
    best = structure.predict(scores, lengths)
    for spread in (np.asfortranarray, lambda array: np.repeat(array, 2, axis=-1)[..., ::2]):
        u, again = didyma.sparsemap(
            spread(scores), structure, lengths=spread(lengths), return_solution=True
        )
        np.testing.assert_array_equal(u, expected)
        np.testing.assert_array_equal(again.vjp(spread(scores))[0], gradient)
        np.testing.assert_array_equal(structure.predict(spread(scores), spread(lengths)), best)


@pytest.mark.parametrize("name", CASES)
def test_a_warm_start_finds_the_same_point_sooner(name):
    case = CASES[name]
    scores, additional = instance_of(case, "flat", 0)
    cold, solution = didyma.sparsemap(scores, case.structure, return_solution=True, **additional)
    again, warm = didyma.sparsemap(
        scores, case.structure, return_solution=True, warm_start=solution, **additional
    )
    np.testing.assert_allclose(again, cold, atol=1e-12)
    assert warm.n_iter[0] == 1
    elsewhere, _ = instance_of(case, "gaussian", 7)
    np.testing.assert_allclose(
        didyma.sparsemap(elsewhere, case.structure, warm_start=[solution[0]], **additional),
        didyma.sparsemap(elsewhere, case.structure, warm_start=[None], **additional),
        atol=1e-8,
    )


@pytest.mark.parametrize("step", ["pairwise", "away", "vanilla"])
@pytest.mark.parametrize("name", CASES)
def test_conditional_gradients_agree(name, step):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 3)
    tol = 1e-3 if step == "vanilla" else 1e-8
    u, solution = didyma.sparsemap(
        scores,
        case.structure,
        solver=ConditionalGradient(step),
        tol=tol,
        return_solution=True,
        **additional,
    )
    exact = didyma.sparsemap(scores, case.structure, **additional)
    assert solution.converged.all()
    assert np.sum((u - exact) ** 2) <= solution.gap[0] + 1e-12


def test_temperature_goes_from_argmax_to_the_middle():
    scores, additional = instance_of(CASES["sequence"], "gaussian", 0)
    structure = Chain()
    cold = didyma.sparsemap(scores, structure, temperature=1e-6, **additional)
    best = np.zeros(scores.size)
    best[structure.argmax(scores, **additional)] = 1.0
    np.testing.assert_allclose(cold.ravel(), best)
    scaled = didyma.sparsemap(
        scores / 3.0, structure, **{key: value / 3.0 for key, value in additional.items()}
    )
    warm, solution = didyma.sparsemap(
        scores, structure, temperature=3.0, return_solution=True, **additional
    )
    np.testing.assert_allclose(warm, scaled, atol=1e-12)
    step = 1e-5 * np.random.default_rng(0).standard_normal(scores.shape)
    slope = didyma.sparsemap(scores + step, structure, temperature=3.0, **additional) - warm
    np.testing.assert_allclose(solution.jvp(step)[0], slope, atol=1e-9)


def test_a_limit_is_reported():
    scores = np.random.default_rng(0).standard_normal((3, 12, 12))
    with pytest.warns(ToleranceWarning, match=r"3 of 3 instances .* raise max_iter=4"):
        _, solution = didyma.sparsemap(scores, Matching(), max_iter=4, return_solution=True)
    assert not solution.converged.any()
    assert solution.gap.min() > 1e-9
    assert solution.n_iter.tolist() == [4, 4, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        didyma.sparsemap(scores, Matching())


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("user's own", "loop", "logic")])
def test_forbidden_parts_get_nothing(name):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 5)
    layout = case.structure.lay_out(scores, **additional)
    kept = case.outputs[0]
    parts, _ = case.structure.encode(kept, layout)
    forbidden = np.ones(scores.size, bool)
    forbidden[parts[parts >= 0]] = False
    only = np.where(forbidden.reshape(scores.shape), -np.inf, scores)
    u = didyma.sparsemap(only, case.structure, **additional)
    assert u.ravel()[forbidden].max(initial=0.0) == 0.0
    if name not in OPTIONAL:  # in these a part may be left out
        np.testing.assert_array_equal(u.ravel()[~forbidden], 1.0)
        with pytest.raises(didyma.DataError, match="instance 0: every output contains"):
            didyma.sparsemap(np.full(scores.shape, -np.inf), case.structure, **additional)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scale", [1e8, 1e150, 1e299])
def test_huge_scores_give_the_argmax(name, scale):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 2)
    scores = scores * scale
    additional = {key: value * scale for key, value in additional.items()}
    u = didyma.sparsemap(scores, case.structure, **additional)
    np.testing.assert_array_equal(u, np.round(u))
    M, theta = vertices_of(case, scores, additional)
    np.testing.assert_array_equal(u.ravel(), M[:, np.argmax(theta)])


def test_single_precision_comes_back_as_it_came():
    scores = np.random.default_rng(0).standard_normal((2, 6, 6))
    single = didyma.sparsemap(scores.astype(np.float32), Matching())
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, didyma.sparsemap(scores, Matching()), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": np.full((2, 3), np.nan)}, r"scores: .* found nan at index \[0, 0\]"),
        ({"scores": np.full((2, 3), np.inf)}, r"scores: .* found inf"),
        ({"scores": np.zeros((1, 2, 3))}, "scores: expected 1 axes"),
        ({"scores": np.zeros((2, 3)), "lengths": [1, 4]}, "lengths: expected 0 to 3"),
        ({"scores": np.zeros((2, 3)), "lengths": [1.0, 2.0]}, "lengths: expected 2 integers"),
        ({"scores": np.zeros(3), "transitions": np.zeros(3)}, "transitions: Choice has no such"),
        ({"scores": np.zeros(3), "temperature": 0.0}, "temperature: expected a positive"),
        ({"scores": np.zeros(3), "max_iter": 0}, "max_iter: expected a whole number from 1 on"),
        ({"scores": np.zeros(3), "tol": -1.0}, "tol: expected a number from 0 on"),
        (
            {"scores": np.zeros((2, 3)), "warm_start": [None]},
            "warm_start: expected one distribution per",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(didyma.DataError, match=message):
        didyma.sparsemap(structure=Choice(), **arguments)


def test_a_bad_argmax_is_named():
    class Fixed(didyma.Structure):
        def __init__(self, answer):
            self.answer = answer

        def argmax(self, scores):
            return self.answer

    for answer, message in [
        ([0, 0], "different part indices"),
        ([7], "from 0 to 3"),
        ([0.5], "integer part indices"),
        (3, "one axis"),
    ]:
        with pytest.raises(didyma.DataError, match=rf"Fixed.argmax must return .*{message}"):
            didyma.sparsemap(np.zeros(4), Fixed(answer))


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_argmax_that_fails_is_heard(error):
    """Also at its third call, deep in the solver; and the next solve knows nothing of it."""

    class Failing(Window):
        calls = 0

        def argmax(self, scores):
            self.calls += 1
            if self.calls == 3:
                raise error
            return super().argmax(scores)

    structure = Failing()
    scores = np.linspace(0.0, 0.1, 6)
    with pytest.raises(error):
        didyma.sparsemap(scores, structure)
    assert structure.calls == 3
    np.testing.assert_array_equal(
        didyma.sparsemap(scores, structure), didyma.sparsemap(scores, Window())
    )


def test_an_argmax_may_keep_or_change_the_scores_it_was_given():
    class Greedy(Window):
        def __init__(self):
            self.seen = []

        def argmax(self, scores):
            found = super().argmax(scores)
            self.seen.append((scores, scores.copy()))
            return found

    class Careless(Window):
        def argmax(self, scores):
            found = super().argmax(scores)
            scores[:] = np.nan
            return found

    scores, greedy = np.linspace(0.0, 0.1, 6), Greedy()
    expected = didyma.sparsemap(scores, Window())
    np.testing.assert_array_equal(didyma.sparsemap(scores, greedy), expected)
    np.testing.assert_array_equal(didyma.sparsemap(scores, Careless()), expected)
    for seen, before in greedy.seen:
        np.testing.assert_array_equal(seen, before)


def test_what_is_no_structure_is_named():
    with pytest.raises(didyma.DataError, match=r"found the class Tree: make one, as in Tree\("):
        didyma.sparsemap(np.zeros((3, 3)), Tree)
    with pytest.raises(didyma.DataError, match=r"structure: expected a .* found 'tree'"):
        didyma.sparsemap(np.zeros((3, 3)), "tree")


class Pair(didyma.Structure):
    """Two neighbours, with scores of their own for pairs."""

    def additional(self, shape):
        return {"pairs": (shape[0] - 1,)}

    def argmax(self, scores, pairs=None):
        both = scores[:-1] + scores[1:] + (0.0 if pairs is None else pairs)
        start = int(np.argmax(both))
        return np.array([start, start + 1, *([] if pairs is None else [len(scores) + start])])


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ((Tree(), {}), (ProjectiveTree(), {}), r"it is of Tree\(.*, not of ProjectiveTree"),
        ((Tree(), {}), (Tree(single_root=True), {}), r"not of Tree\(single_root=True\)"),
        ((Tree(), {"lengths": [4, 3]}), (Tree(), {"lengths": [4, 4]}), "instance 1 had lengths"),
        ((Matching(), {}), (Matching(), {"lengths": [[5, 5], [2, 5]]}), r"now it has \(2, 5\)"),
        (
            (Chain(), {}),
            (Chain(), {"transitions": np.zeros((4, 5, 5))}),
            "35 additional scores, now it has .* 110",
        ),
        ((Forest(), {}), (Forest(), {"scores": np.zeros((2, 4, 4))}), "pad instances to the same"),
    ],
)
def test_a_warm_start_is_of_the_same_instances(before, now, message):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((2, 5, 5))
    structure, settings = before
    _, solution = didyma.sparsemap(scores, structure, return_solution=True, **settings)
    structure, settings = now
    settings = {"scores": scores, **settings}
    for start in (solution, list(solution), [None, solution[1]]):
        with pytest.raises(didyma.DataError, match=f"warm_start: .*{message}"):
            didyma.sparsemap(structure=structure, warm_start=start, **settings)


def test_a_warm_start_of_another_object_of_the_same_class():
    scores, pairs = np.array([1.0, 0.8, 0.7, 0.9]), np.array([0.1, 0.0, 0.1])
    _, solution = didyma.sparsemap(scores, Pair(), return_solution=True, pairs=pairs)
    again = didyma.sparsemap(scores, Pair(), warm_start=solution, pairs=pairs)
    np.testing.assert_allclose(again, solution.marginals[0], atol=1e-12)
    without = didyma.sparsemap(scores, Pair(), warm_start=solution)
    np.testing.assert_allclose(without, didyma.sparsemap(scores, Pair()), atol=1e-9)


def test_derivatives_of_wrong_shapes_are_refused():
    scores = np.random.default_rng(0).standard_normal((2, 4, 3))
    _, solution = didyma.sparsemap(
        scores, Chain(), return_solution=True, transitions=np.zeros((3, 3)), end=np.zeros((2, 3))
    )
    for wrong in (np.zeros((2, 3, 4)), np.zeros((4, 3)), np.zeros((1, 4, 3)), 1.0):
        for method in (solution.vjp, solution.jvp):
            with pytest.raises(didyma.DataError, match=r"expected the scores' shape \(2, 4, 3\)"):
                method(wrong)
    for method, name, wrong in [
        (solution.vjp, "transitions", np.zeros((3, 3))),  # expectations are per instance
        (solution.jvp, "transitions", np.zeros((2, 3, 3))),
        (solution.jvp, "end", np.zeros(3)),
    ]:
        with pytest.raises(didyma.DataError, match=f"{name}: expected shape"):
            method(scores, **{name: wrong})
    with pytest.raises(didyma.DataError, match="start: no additional scores of this name"):
        solution.jvp(scores, start=np.zeros(3))
    with pytest.raises(didyma.DataError, match="flat arrays of 2 instances"):
        solution.apply_jacobian(np.zeros((3, 12)), np.zeros((3, 15)))


def test_a_warning_names_the_line_that_asked():
    scores = np.random.default_rng(0).standard_normal((12, 12))
    with pytest.warns(ToleranceWarning) as caught:
        didyma.sparsemap(scores, Matching(), max_iter=2)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("n", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("scale", [1e-6, 0.05, 1.0, 30.0, 1e9])
def test_a_choice_is_sparsemax(n, scale):
    """The threshold that makes the sum 1, by bisection; and what conditional gradients find."""
    rng = np.random.default_rng(n)
    scores = np.concatenate([scale * rng.standard_normal((3, n)), np.zeros((1, n))])
    scores[0] = np.round(scores[0], 1)  # ties
    u, solution = didyma.sparsemap(scores, Choice(), return_solution=True)
    assert solution.gap.max() <= 1e-14
    assert solution.n_iter.tolist() == [1] * 4
    for b, row in enumerate(scores - scores.max(axis=1, keepdims=True)):
        low, high = -1.0, 0.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
        np.testing.assert_allclose(u[b], np.maximum(row - low, 0.0), rtol=0, atol=1e-12)
        found = solution[b]
        np.testing.assert_array_equal(u[b][found.structures], found.probabilities)
        assert found.support_size == (u[b] > 0).sum()
    weight = rng.standard_normal(scores.shape)
    gradient, _ = solution.vjp(weight)
    for b in range(4):
        s = (u[b] > 0).astype(float)
        expected = (np.diag(s) - np.outer(s, s) / s.sum()) @ weight[b]
        np.testing.assert_allclose(gradient[b], expected, rtol=0, atol=1e-12)
