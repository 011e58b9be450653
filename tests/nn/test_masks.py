"""Losses and their gradients: how a part is forbidden, and what is ignored, must not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from didyma.nn import FenchelYoungLoss, sparsemap
from didyma.structures import Chain, Choice, Forest, Matching, TopK, Tree
from tests.laws.test_masks import GARBAGE, MASKS, PADDED, forbid, padded, with_masks
from tests.laws.test_sparsemap import CASES, instance_of

REGULARIZERS = ["perceptron", "crf", "sparsemap"]


def tractable(structure, regularizer):
    return regularizer != "crf" or not isinstance(structure, (Matching, Forest))


def loss_and_gradients(loss, scores, gold, lengths=None, **additional):
    tensors = {
        name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for name, array in {"scores": scores, **additional}.items()
    }
    value = loss(gold=gold, lengths=lengths, **tensors)
    value.sum().backward()
    return [value.detach().numpy(), *(t.grad.numpy() for t in tensors.values())]


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("margin", [0.0, 1.5])
@pytest.mark.parametrize("name", [name for name in CASES if name != "user's own"])
def test_any_mask_is_infinite(name, margin, regularizer):
    case = CASES[name]
    if not tractable(case.structure, regularizer):
        return
    loss = FenchelYoungLoss(case.structure, regularizer, margin=margin)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores, additional = instance_of(case, "gaussian", seed)
        masked = forbid(case, scores, additional, rng)
        layout = case.structure.lay_out(*with_masks(scores, {}, masked, -np.inf)[:1], **additional)
        for gold in case.outputs:  # the first that is not masked
            parts, extra_parts = case.structure.encode(gold, layout)
            extra = with_masks(scores, additional, masked, -np.inf)[1]
            whole = case.structure.lay_out(scores, **extra).extra[0]
            if (layout.scores[0][parts[parts >= 0]] > -np.inf).all() and (
                whole[extra_parts[extra_parts >= 0]] > -np.inf
            ).all():
                break
        given, more = with_masks(scores, additional, masked, -np.inf)
        expected = loss_and_gradients(loss, given, gold, **more)
        for mask in MASKS:
            given, more = with_masks(scores, additional, masked, mask)
            found = loss_and_gradients(loss, given, gold, **more)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize(("structure", "shape"), PADDED, ids=str)
def test_what_is_ignored_changes_no_bit(structure, shape, regularizer):
    if not tractable(structure, regularizer):
        return
    lengths, used = padded(structure, shape)
    scores = np.random.default_rng(0).standard_normal((5, *shape))
    gold = structure.predict(np.random.default_rng(1).standard_normal((5, *shape)), lengths)
    loss = FenchelYoungLoss(structure, regularizer, margin=0.5, reduction="none")
    expected = loss_and_gradients(loss, np.where(used, scores, 0.0), gold, lengths)
    assert not expected[1][~used].any()
    empty = np.flatnonzero(~used.reshape(5, -1).any(axis=1))
    assert len(empty)
    np.testing.assert_array_equal(expected[0][empty], 0.0)
    for garbage in GARBAGE:
        found = loss_and_gradients(loss, np.where(used, scores, garbage), gold, lengths)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("structure", "shape", "gold"),
    [
        (Choice(), (0,), [-1, -1]),
        (TopK(2), (0,), np.zeros((2, 0), bool)),
        (Chain(), (0, 3), np.zeros((2, 0), int)),
        (Tree(), (1, 1), [[-1], [-1]]),
        (Tree(single_root=True), (1, 1), [[-1], [-1]]),
        (Matching(), (0, 2), np.zeros((2, 0), int)),
        (Forest(), (0, 0), np.zeros((2, 0, 0), bool)),
    ],
    ids=str,
)
def test_a_batch_of_nothing_but_empty_instances(structure, shape, gold):
    scores = torch.zeros(2, *shape, requires_grad=True)
    marginals, solution = sparsemap(scores, structure, return_solution=True)
    marginals.sum().backward()
    assert not marginals.any()
    assert not scores.grad.any()
    assert solution.converged.all()
    assert solution.support_size.tolist() == [1, 1]
    np.testing.assert_array_equal(structure.predict(scores.detach().numpy()), gold)
    for regularizer in REGULARIZERS:
        if tractable(structure, regularizer):
            assert FenchelYoungLoss(structure, regularizer, margin=1.0)(scores, gold) == 0
