"""Sequences against the enumeration of all of them."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import didyma
from didyma.errors import DataError
from didyma.structures.chain import Chain, DistanceBins

SEQUENCE = Chain()


def score(
    tags: Any,
    scores: np.ndarray,
    transitions: np.ndarray | None = None,
    start: np.ndarray | None = None,
    end: np.ndarray | None = None,
) -> float:
    """Score of one output of one instance, by the definition."""
    total = sum(scores[i, t] for i, t in enumerate(tags))
    if transitions is not None:
        for i, (a, b) in enumerate(pairwise(tags)):
            total += transitions[a, b] if transitions.ndim == 2 else transitions[i, a, b]
    if start is not None:
        total += start[tags[0]]
    if end is not None:
        total += end[tags[-1]]
    return float(total)


def instance(additional: dict[str, np.ndarray], b: int) -> dict[str, np.ndarray]:
    """What instance b of a batch sees of the additional scores."""
    batched = {"transitions": 4, "start": 2, "end": 2}
    seen = {
        name: array[b] if array.ndim == batched[name] else array
        for name, array in additional.items()
    }
    if "transitions" in seen and len(seen["transitions"]) == 1:  # the same between all positions
        seen["transitions"] = seen["transitions"].reshape(seen["transitions"].shape[-2:])
    return seen


def enumerate_all(scores: np.ndarray, n: int, **additional: np.ndarray) -> dict[Any, float]:
    outputs = product(range(scores.shape[1]), repeat=n)
    return {tags: score(tags, scores, **additional) for tags in outputs}


@st.composite
def batches(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """A batch with lengths and any subset of the additional scores, in any of their shapes."""
    size, n, n_tags = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "ties", "forbidden", "huge"]))

    def numbers(*shape: int) -> np.ndarray:
        if kind == "normal":
            return rng.normal(size=shape)
        if kind == "ties":
            return rng.integers(0, 2, size=shape).astype(float)
        if kind == "huge":
            return rng.integers(-3, 4, size=shape) * 1e5
        return np.where(rng.random(shape) < 0.2, -np.inf, rng.integers(-2, 3, size=shape))

    shapes = {
        "transitions": [
            (n_tags, n_tags),
            (size, 1, n_tags, n_tags),
            (size, n - 1, n_tags, n_tags),
            *([(n - 1, n_tags, n_tags)] if size == 1 or size != n - 1 else []),
        ],
        "start": [(n_tags,), (size, n_tags)],
        "end": [(n_tags,), (size, n_tags)],
    }
    additional = {
        name: numbers(*draw(st.sampled_from(choices)))
        for name, choices in shapes.items()
        if draw(st.booleans())
    }
    return numbers(size, n, n_tags), rng.integers(1, n + 1, size), additional


def test_transitions_of_instances_are_told_from_those_of_steps() -> None:
    rng = np.random.default_rng(0)
    scores, own = rng.normal(size=(3, 6, 2)), rng.normal(size=(3, 2, 2))
    alone = [SEQUENCE.marginals(one, transitions=t) for one, t in zip(scores, own)]
    for transitions in (own, own[:, None]):
        together = SEQUENCE.marginals(scores, transitions=transitions)
        np.testing.assert_allclose(together, alone, atol=1e-12)
    scores = scores[:, :4]  # as many steps as instances
    with pytest.raises(DataError, match=r"not clear whose .* give \(3, 1, 2, 2\)"):
        SEQUENCE.predict(scores, transitions=own)
    by_instance = SEQUENCE.log_partition(scores, transitions=own[:, None])
    by_step = SEQUENCE.log_partition(scores, transitions=np.stack([own] * 3))
    for b in range(3):
        one = SEQUENCE.log_partition(scores[b], transitions=own[b])
        assert by_instance[b] == pytest.approx(one)
        assert by_step[b] == pytest.approx(SEQUENCE.log_partition(scores[b], transitions=own))


@settings(deadline=None, max_examples=150)
@given(batches())
def test_predict_and_k_best(batch: Any) -> None:
    scores, lengths, additional = batch
    size, n, _ = scores.shape
    totals = [enumerate_all(scores[b], lengths[b], **instance(additional, b)) for b in range(size)]
    if any(max(total.values()) == -np.inf for total in totals):
        with pytest.raises(DataError, match="every output"):
            SEQUENCE.predict(scores, lengths, **additional)
        with pytest.raises(DataError, match="every output"):
            SEQUENCE.k_best(scores, 2, lengths, **additional)
        return
    best = SEQUENCE.predict(scores, lengths, **additional)
    k = 5
    outputs, values = SEQUENCE.k_best(scores, k, lengths, **additional)
    assert outputs.shape == (size, k, n)
    np.testing.assert_array_equal(outputs[:, 0], best)
    for b in range(size):
        length = lengths[b]
        assert (best[b, length:] == -1).all()
        ranked = sorted((v for v in totals[b].values() if v > -np.inf), reverse=True)
        assert totals[b][tuple(best[b, :length])] == pytest.approx(ranked[0])
        found = [tuple(output[:length]) for output in outputs[b, : len(ranked)]]
        assert len(set(found)) == len(found)
        np.testing.assert_allclose([totals[b][tags] for tags in found], ranked[:k])
        np.testing.assert_allclose(values[b, : len(ranked)], ranked[:k])
        assert (values[b, len(ranked) :] == -np.inf).all()
        assert (outputs[b, len(ranked) :] == -1).all()
        assert (outputs[b, :, length:] == -1).all()


@settings(deadline=None, max_examples=100)
@given(batches())
def test_expectations(batch: Any) -> None:
    scores, lengths, additional = batch
    layout = SEQUENCE.lay_out(scores, lengths, **additional)
    totals = [
        enumerate_all(scores[b], lengths[b], **instance(additional, b)) for b in range(len(layout))
    ]
    if any(max(total.values()) == -np.inf for total in totals):
        with pytest.raises(DataError, match="every output"):
            SEQUENCE.expectations(layout)
        return
    log_partition, marginals, extra_marginals = SEQUENCE.expectations(layout)
    assert extra_marginals.shape == (len(layout), layout.extra.shape[1])
    for b, total in enumerate(totals):
        values = np.array(list(total.values()))
        weights = np.exp(values - values.max())
        expected = values.max() + np.log(weights.sum())
        np.testing.assert_allclose(log_partition[b], expected, atol=1e-9)
        one = SEQUENCE.lay_out(scores[b], lengths[b], **instance(additional, b))
        unary, more = np.zeros(layout.scores.shape[1]), np.zeros(layout.extra.shape[1])
        for tags, weight in zip(total, weights / weights.sum(), strict=True):
            padded = np.full(scores.shape[1], -1)
            padded[: lengths[b]] = tags
            parts, extra_parts = SEQUENCE.encode(padded, one)
            np.add.at(unary, parts[parts >= 0], weight)
            np.add.at(more, extra_parts[extra_parts >= 0], weight)
        np.testing.assert_allclose(marginals[b], unary, atol=1e-9)
        np.testing.assert_allclose(extra_marginals[b], more, atol=1e-9)


@settings(deadline=None, max_examples=100)
@given(batches(), st.data())
def test_encode_names_the_scores_of_an_output(batch: Any, data: st.DataObject) -> None:
    scores, lengths, additional = batch
    size, n, n_tags = scores.shape
    layout = SEQUENCE.lay_out(scores, lengths, **additional)
    tag = st.integers(0, n_tags - 1)
    outputs = np.array(
        data.draw(st.lists(st.lists(tag, min_size=n, max_size=n), min_size=size, max_size=size))
    )
    outputs[np.arange(n) >= lengths[:, None]] = -1
    parts, extra_parts = SEQUENCE.encode(outputs, layout)
    assert parts.dtype == extra_parts.dtype == np.int32
    for b in range(size):
        np.testing.assert_array_equal(SEQUENCE.decode(parts[b : b + 1], layout)[0], outputs[b])
        assert (parts[b] >= 0).sum() == lengths[b]
        used = extra_parts[b, : lengths[b] + 1]
        assert (used >= 0).all()
        assert (extra_parts[b, lengths[b] + 1 :] == -1).all()
        total = layout.scores[b, parts[b, : lengths[b]]].sum() + layout.extra_of(b)[used].sum()
        expected = score(outputs[b, : lengths[b]], scores[b], **instance(additional, b))
        assert total == pytest.approx(expected)


def test_additional_scores_keep_their_place_and_shape() -> None:
    layout = SEQUENCE.lay_out(
        np.zeros((2, 3, 4)), transitions=np.ones((2, 2, 4, 4)), end=np.full(4, 2.0)
    )
    assert set(layout.additional) == {"transitions", "end"}
    assert layout.additional["transitions"].shape == (2, 4, 4)
    assert not layout.additional["transitions"].shared
    end = layout.additional["end"]
    assert end.shared
    assert (layout.extra[:, end.start : end.stop] == 2).all()
    assert (layout.extra.sum(axis=1) == 32 + 8).all()


def test_one_instance_needs_no_batch_axis() -> None:
    rng = np.random.default_rng(0)
    scores, transitions = rng.normal(size=(5, 3)), rng.normal(size=(4, 3, 3))
    batch = {"transitions": transitions[None]}
    np.testing.assert_array_equal(
        SEQUENCE.predict(scores, transitions=transitions),
        SEQUENCE.predict(scores[None], **batch)[0],
    )
    outputs, values = SEQUENCE.k_best(scores, 2, transitions=transitions)
    assert outputs.shape == (2, 5)
    assert values.shape == (2,)
    assert isinstance(SEQUENCE.log_partition(scores, transitions=transitions), float)
    assert SEQUENCE.marginals(scores, transitions=transitions).shape == (5, 3)


@pytest.mark.parametrize("scale", [1e5, 1e300])
def test_marginals_of_huge_scores_still_weigh_ties(scale: float) -> None:
    # The two best outputs, 00 and 11, differ in every score that is not shared.
    scores = np.array([[0.0, 0.0], [0.0, 0.0]]) - scale
    transitions = np.array([[0.0, -scale], [-scale, 0.0]])
    marginals = SEQUENCE.marginals(scores, transitions=transitions)
    np.testing.assert_allclose(marginals, 0.5)
    layout = SEQUENCE.lay_out(scores, transitions=transitions)
    _, _, extra_marginals = SEQUENCE.expectations(layout)
    np.testing.assert_allclose(extra_marginals[0, :4], [0.5, 0, 0, 0.5], atol=1e-12)


def test_paths_that_underflow_one_by_one_are_summed() -> None:
    # Tag 0 is all but certain at first, but only tag 1 can go on cheaply: both routes count.
    scores = np.array([[0.0, -2000.0], [0.0, 0.0]])
    transitions = np.array([[-2000.0, -1900.0], [0.0, 0.0]])
    totals = {tags: score(tags, scores, transitions) for tags in product(range(2), repeat=2)}
    highest = max(totals.values())
    expected = highest + np.log(sum(np.exp(v - highest) for v in totals.values()))
    assert SEQUENCE.log_partition(scores, transitions=transitions) == pytest.approx(expected)
    equal = np.array([[-2000.0, -np.inf], [0.0, -np.inf]])
    marginals = SEQUENCE.marginals(scores, transitions=equal)
    np.testing.assert_allclose(marginals, [[0.5, 0.5], [1.0, 0.0]])


def test_marginals_sum_to_one_on_long_sequences() -> None:
    rng = np.random.default_rng(1)
    scores, transitions = 50 * rng.normal(size=(2, 300, 20)), 50 * rng.normal(size=(20, 20))
    lengths = np.array([300, 211])
    layout = SEQUENCE.lay_out(scores, lengths, transitions=transitions)
    _, marginals, extra_marginals = SEQUENCE.expectations(layout)
    sums = marginals.reshape(scores.shape).sum(axis=2)
    np.testing.assert_allclose(sums, np.arange(300) < lengths[:, None], atol=1e-12)
    np.testing.assert_allclose(extra_marginals[:, :400].sum(axis=1), lengths - 1)


def test_unused_padding_has_no_say() -> None:
    rng = np.random.default_rng(2)
    scores, transitions = rng.normal(size=(1, 6, 3)), rng.normal(size=(1, 5, 3, 3))
    lengths = np.array([4])
    padded, steps = scores.copy(), transitions.copy()
    padded[:, 4:], steps[:, 3:] = 1e6, 1e6
    for method in (SEQUENCE.predict, SEQUENCE.marginals, SEQUENCE.log_partition):
        expected = method(scores[:, :4], transitions=transitions[:, :3])
        found = method(padded, lengths, transitions=steps)
        np.testing.assert_allclose(found if found.ndim == 1 else found[:, :4], expected)


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"scores": np.zeros((2, 3, 0))}, "scores", "one tag"),
        ({"scores": np.zeros(3)}, "scores", "2 axes"),
        ({"scores": np.full((3, 2), np.nan)}, "scores", "nan"),
        ({"lengths": [4, -1]}, "lengths", "0 to 4"),
        ({"transitions": np.zeros((5, 3, 3))}, "transitions", "per step"),
        ({"transitions": np.full((3, 3), np.inf)}, "transitions", "inf"),
        ({"start": np.zeros(4)}, "start", "expected shape"),
        ({"end": np.zeros((3, 3))}, "end", "expected shape"),
        ({"stop": np.zeros(3)}, "stop", "no such scores"),
    ],
)
def test_bad_scores_are_named(given: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        SEQUENCE.lay_out(**{"scores": np.zeros((2, 4, 3)), **given})
    assert caught.value.field == field


@pytest.mark.parametrize(
    "outputs", [[[0, 1], [0, 3]], [[0, -1], [0, 0]], [[0.0, 1.0], [0.0, 0.0]], [[0, 1]]]
)
def test_bad_outputs_are_named(outputs: Any) -> None:
    with pytest.raises(DataError) as caught:
        SEQUENCE.encode(outputs, SEQUENCE.lay_out(np.zeros((2, 2, 3))))
    assert caught.value.field == "outputs"


def test_k_must_be_positive() -> None:
    with pytest.raises(DataError, match="k: "):
        SEQUENCE.k_best(np.zeros((2, 2)), 0)


@pytest.mark.parametrize("n_tags", [1, 2, 5])
def test_distance_bins(n_tags: int) -> None:
    bins = DistanceBins(n_tags)
    names = ["first", "later", "last", "earlier", "<=-2", "-1", "0", "+1", ">=+2"]
    assert len(names) == DistanceBins.n_weights
    for a in range(n_tags):
        assert names[bins.start[a]] == ("first" if a == 0 else "later")
        assert names[bins.end[a]] == ("last" if a == n_tags - 1 else "earlier")
        for b in range(n_tags):
            moved = {-1: "-1", 0: "0", 1: "+1"}.get(b - a, "<=-2" if b < a else ">=+2")
            assert names[bins.transitions[a, b]] == moved


def test_distance_bins_of_a_batch_end_at_each_instance_s_last_tag() -> None:
    bins = DistanceBins([3, 5])
    assert bins.start.shape == (5,)
    assert bins.transitions.shape == (5, 5)
    np.testing.assert_array_equal(bins.end, [[3, 3, 2, 3, 3], [3, 3, 3, 3, 2]])


def test_distance_bins_return_gradients_to_the_weights() -> None:
    torch = pytest.importorskip("torch")
    bins = DistanceBins(3)
    weights = torch.zeros(bins.n_weights, requires_grad=True)
    sum(weights[index].sum() for index in bins.indices().values()).backward()
    assert weights.grad.tolist() == [1, 2, 1, 2, 1, 2, 3, 2, 1]


def test_sums_next_to_the_smallest_float_are_exact() -> None:
    """A step of e^-740, a number of two bits, which the next score makes up for."""
    scores, steps = np.array([[0.0, -np.inf], [0.0, 740.5]]), np.array([[0.0, -740.0], [0.0, 0.0]])
    found = SEQUENCE.marginals(scores, transitions=steps)
    np.testing.assert_allclose(found[1, 1], 1 / (1 + np.exp(-0.5)), rtol=1e-12)


def test_additional_scores_that_look_like_masks_are_shared():
    scores, end = np.array([[[-2e5]], [[2e5]]]), np.array([-3e5])
    np.testing.assert_array_equal(SEQUENCE.predict(scores, end=end), [[0], [0]])
    many = np.zeros((3, 2, 4))
    many[1] = 5e3
    np.testing.assert_array_equal(
        SEQUENCE.predict(many, end=[0.0, -1e9, -1e9, -1e9])[:, -1], [0, 0, 0]
    )
    np.testing.assert_array_equal(
        didyma.sparsemap(many, SEQUENCE, end=[0, -1e9, -1e9, -1e9])[:, 1, 0], 1
    )


def best_by_steps(scores: np.ndarray, transitions: np.ndarray, start: np.ndarray, end: np.ndarray):
    """Best tags and score; of equally good tags the lowest, from the last position on."""
    value = scores[0] + start
    origins = []
    for i in range(1, len(scores)):
        candidates = value[:, None] + transitions[i - 1]
        origins.append(candidates.argmax(axis=0))
        value = candidates.max(axis=0) + scores[i]
    value = value + end
    tags = [int(value.argmax())]
    for origin in reversed(origins):
        tags.append(int(origin[tags[-1]]))
    return tags[::-1], value.max()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("n_tags", [1, 2, 5, 7, 8, 9, 10, 11, 16, 33])
def test_the_kernel_on_sizes_that_no_enumeration_reaches(
    n_tags: int, integers: bool, tied: bool
) -> None:
    rng = np.random.default_rng(n_tags)
    padded = 12

    def numbers(*shape: int) -> np.ndarray:
        values = rng.integers(-1, 2, shape) if integers else rng.normal(size=shape)
        return np.where(rng.random(shape) < 0.1, -np.inf, values.astype(float))

    for n in (1, 2, 5, 12):
        scores, start, end = numbers(padded, n_tags), numbers(n_tags), numbers(n_tags)
        transitions = numbers(1 if tied else padded - 1, n_tags, n_tags)
        extra = np.concatenate([transitions.ravel(), start, end])
        dims = np.array([n_tags, 0 if tied else n_tags**2, transitions.size, len(extra) - n_tags])
        parts, extra_parts = np.full(padded, -1, np.int32), np.full(padded + 1, -1, np.int32)
        count = SEQUENCE.kernel(
            scores.ravel(),
            extra,
            dims,
            np.array([n]),
            np.zeros(padded * n_tags),
            np.zeros(0, np.int64),
            parts,
            extra_parts,
        )
        each = np.broadcast_to(transitions, (padded - 1, n_tags, n_tags))
        tags, value = best_by_steps(scores[:n], each, start, end)
        if value == -np.inf:
            assert count == -1
            continue
        assert count == n
        assert parts[:n].tolist() == [i * n_tags + tag for i, tag in enumerate(tags)]
        assert (parts[n:] == -1).all()
        assert (extra_parts[n + 1 :] == -1).all()
        found = scores.ravel()[parts[:n]].sum() + extra[extra_parts[: n + 1]].sum()
        np.testing.assert_allclose(found, value)
