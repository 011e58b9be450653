"""SPO+, its smooth forms and the regret, against their definitions over all outputs."""

import pytest
import torch
from torch.autograd import gradcheck

from didyma import DataError
from didyma.nn import SPOPlusLoss, regret
from didyma.structures import Chain, Choice
from tests.nn.decision_cases import CASES, best, draw

NAMES = list(CASES)


@pytest.mark.parametrize("name", NAMES)
def test_regret_is_what_the_decision_loses(name):
    structure, outputs = CASES[name]
    true, predicted = draw(outputs), draw(outputs, seed=1)
    values, _ = best(outputs, true)
    _, decision = best(outputs, predicted)
    expected = values - (true * decision).flatten(1).sum(1)
    torch.testing.assert_close(regret(structure, predicted, true), expected)
    total = regret(structure, predicted, true, normalized=True)
    torch.testing.assert_close(total, expected.sum() / values.abs().sum())
    torch.testing.assert_close(regret(structure, predicted[0], true[0]), expected[0])
    assert regret(structure, 2 * true, true).max() < 1e-12
    assert expected.max() > 0


@pytest.mark.parametrize("name", NAMES)
def test_spo_plus_is_its_definition_and_bounds_the_regret(name):
    structure, outputs = CASES[name]
    true, predicted = draw(outputs), draw(outputs, seed=1).requires_grad_()
    best_value, decision = best(outputs, true)
    scores = 2 * predicted.detach() - true
    highest, maximiser = best(outputs, scores)
    expected = highest - (2 * predicted.detach() * decision).flatten(1).sum(1) + best_value
    loss = SPOPlusLoss(structure, reduction="none")(predicted, true)
    torch.testing.assert_close(loss.detach(), expected)
    assert (loss >= regret(structure, predicted.detach(), true) - 1e-12).all()
    loss.sum().backward()
    torch.testing.assert_close(predicted.grad, 2 * (maximiser - decision))
    known = SPOPlusLoss(structure, reduction="none")(predicted, true, decision=decision)
    torch.testing.assert_close(known, loss)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regularizer", ["sparsemap", "crf"])
def test_smooth_forms_have_their_gradient_and_become_spo_plus(name, regularizer):
    structure, outputs = CASES[name]
    if regularizer == "crf" and name in ("own", "matching"):
        pytest.skip("sums over these outputs are not known")
    true, predicted = draw(outputs), draw(outputs, seed=1).requires_grad_()
    loss = SPOPlusLoss(structure, regularizer)
    assert gradcheck(lambda scores: loss(scores, true), predicted)
    plain = SPOPlusLoss(structure)(predicted, true)
    cold = SPOPlusLoss(structure, regularizer, temperature=1e-4)(predicted, true)
    torch.testing.assert_close(cold, plain, atol=2e-3, rtol=0)
    if regularizer == "sparsemap" and name != "own":  # outputs of one norm: between the two
        size = outputs[0].sum()
        assert plain - 1e-9 <= loss(predicted, true) <= plain + size / 2


def test_forbidden_parts_and_additional_scores():
    true = torch.tensor([[1.0, 2.0, -torch.inf]])
    predicted = torch.tensor([[1.0, 0.0, 5.0]], requires_grad=True)
    SPOPlusLoss(Choice())(predicted, true).backward()
    assert predicted.grad.tolist() == [[2.0, -2.0, 0.0]]
    transitions = torch.tensor([[1.0, -2.0], [0.0, 1.0]])
    tags = draw(torch.zeros(1, 3, 2).numpy(), seed=4)
    assert regret(Chain(), tags, tags, transitions=transitions).max() < 1e-12
    other = draw(torch.zeros(1, 3, 2).numpy(), seed=5)
    lost = regret(Chain(), other, tags, transitions=transitions)
    value = {
        key: [
            sum(
                tags[b, i, t] + (transitions[path[i - 1], t] if i else 0)
                for i, t in enumerate(path)
            )
            for b, path in enumerate(Chain().predict(s.numpy(), transitions=transitions.numpy()))
        ]
        for key, s in (("best", tags), ("made", other))
    }
    expected = [float(a - b) for a, b in zip(value["best"], value["made"])]
    assert lost.tolist() == pytest.approx(expected)
    bound = SPOPlusLoss(Chain(), reduction="none")(other, tags, transitions=transitions)
    assert (bound >= lost - 1e-9).all()
    with pytest.raises(DataError, match=r"predicted: expected the shape of the true scores"):
        regret(Choice(), torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(DataError, match="true: expected the shape of the predicted scores"):
        SPOPlusLoss(Choice())(torch.zeros(2, 3), torch.zeros(2, 4))
