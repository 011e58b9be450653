"""Structures as distributions of torch: against enumeration, and gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import kl_divergence

import didyma
from didyma.nn import StructureDistribution
from didyma.structures import (
    Chain,
    Choice,
    Matching,
    Segmentation,
    Tree,
)
from tests.laws.test_distributions import (
    HARD,
    TRACTABLE,
    on_a_grid,
)
from tests.laws.test_sparsemap import (
    CASES,
    OPTIONAL,
    Window,
    instance_of,
    vertices_of,
)

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


def tensors_of(case, seed):
    scores, additional = instance_of(case, "gaussian", seed)
    arrays = [scores, *additional.values()]
    return [torch.tensor(a, requires_grad=True) for a in arrays], list(additional)


@pytest.mark.parametrize("name", TRACTABLE)
def test_values(name):
    case = CASES[name]
    scores, additional = instance_of(case, "gaussian", 0)
    _, theta = vertices_of(case, scores, additional)
    log_p = theta - logsumexp(theta)
    given = {key: torch.tensor(array) for key, array in additional.items()}
    found = StructureDistribution(case.structure, torch.tensor(scores), **given)
    outputs = torch.tensor(np.stack(case.outputs))
    np.testing.assert_allclose(found.log_prob(outputs), log_p, atol=1e-12)
    assert found.log_partition.item() == pytest.approx(logsumexp(theta))
    assert found.entropy().item() == pytest.approx(-np.exp(log_p) @ log_p)
    assert found.log_prob(found.mode).item() == pytest.approx(log_p.max())
    best, log_probs = found.top_k(len(theta) + 1)
    np.testing.assert_allclose(log_probs[:-1], np.sort(log_p)[::-1], atol=1e-12)
    assert log_probs[-1] == -torch.inf
    torch.testing.assert_close(best[0], found.mode)
    assert found.sample((2, 3)).shape == (2, 3, *case.outputs[0].shape)


@pytest.mark.parametrize("name", sorted({*TRACTABLE} - OPTIONAL - {"segments", "path"}))
def test_an_offset_changes_no_distribution_of_outputs_with_equally_many_parts(name):
    case = CASES[name]
    values = []
    for offset in (0.0, 1e6):
        (scores, additional), (other, more) = on_a_grid(case, 3), on_a_grid(case, 4)
        p, q = (
            StructureDistribution(
                case.structure,
                torch.tensor(own + offset, requires_grad=True),
                **{key: torch.tensor(array) for key, array in further.items()},
            )
            for own, further in ((scores, additional), (other, more))
        )
        entropy, divergence = p.entropy(), kl_divergence(p, q)
        gradients = torch.autograd.grad(entropy + 2 * divergence, (p.scores, q.scores))
        values.append([entropy.detach(), divergence.detach(), p.marginals.detach(), *gradients])
    for plain, shifted in zip(*values):
        np.testing.assert_allclose(shifted, plain, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", TRACTABLE)
def test_gradients(name):
    """Of all values at once: their sum, with weights, so that one check does for all."""
    case = CASES[name]
    inputs, names = tensors_of(case, 1)
    others, _ = tensors_of(case, 2)
    output = torch.tensor(np.asarray(case.outputs[-1]))
    one = {key: torch.randn(a.shape).double() for key, a in zip(["", *names], inputs)}

    def distribution(scores, *additional):
        return StructureDistribution(case.structure, scores, **dict(zip(names, additional)))

    def run(*tensors):
        p, q = distribution(*tensors[: len(inputs)]), distribution(*tensors[len(inputs) :])
        expected = sum((one[key] * t).sum() for key, t in p.additional_marginals.items())
        expected = expected + (one[""] * p.marginals).sum()
        return torch.stack(
            [p.log_partition, p.entropy(), p.log_prob(output), kl_divergence(p, q), expected]
        )

    assert gradcheck(run, (*inputs, *others), fast_mode=True)
    assert gradcheck(
        run, (*inputs, *others), fast_mode=True, check_forward_ad=True, check_backward_ad=False
    )
    assert gradgradcheck(run, (*inputs, *others), fast_mode=True)


@pytest.mark.parametrize("structure", [Chain(), Tree(single_root=True), Segmentation()])
def test_a_batch_is_its_instances(structure):
    shape = {Chain: (5, 3), Tree: (6, 6), Segmentation: (5, 3, 2)}[type(structure)]
    lengths = torch.tensor([5, 1, 3, 4])
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4, *shape, generator=generator, dtype=torch.float64)
    scores[1, -1] = torch.nan  # padding may be anything
    scores.requires_grad_()
    batch = StructureDistribution(structure, scores, lengths)
    other = StructureDistribution(structure, 0.5 * scores.detach(), lengths)
    divergence = kl_divergence(batch, other)
    (batch.entropy().sum() + batch.log_prob(batch.mode).sum() + divergence.sum()).backward()
    gradient, samples = scores.grad, batch.sample((7,))
    log_probs = batch.log_prob(samples)
    assert log_probs.shape == (7, 4)
    assert batch.batch_shape == (4,)
    for b, n in enumerate(lengths.tolist()):
        size = n + 1 if isinstance(structure, Tree) else n
        own = scores.detach()[b, :size, : size if isinstance(structure, Tree) else None]
        own.requires_grad_()
        one = StructureDistribution(structure, own)
        torch.testing.assert_close(batch.log_partition[b], one.log_partition)
        torch.testing.assert_close(log_probs[:, b], one.log_prob(samples[:, b, :size]))
        close = kl_divergence(one, StructureDistribution(structure, 0.5 * own.detach()))
        (one.entropy() + one.log_prob(one.mode) + close).backward()
        kept = tuple(slice(side) for side in own.shape)
        torch.testing.assert_close(gradient[b][kept], own.grad)
        assert gradient[b].count_nonzero() == own.grad.count_nonzero()


def test_one_instance_with_a_length_and_an_empty_batch():
    scores = torch.randn(5, 3, dtype=torch.float64)
    one = StructureDistribution(Chain(), scores, 3)
    short = StructureDistribution(Chain(), scores[:3])
    torch.testing.assert_close(one.entropy(), short.entropy())
    assert one.sample((4,)).shape == (4, 5)
    assert (one.sample((4,))[:, 3:] == -1).all()
    torch.testing.assert_close(one.log_prob(one.mode), short.log_prob(short.mode))
    none = StructureDistribution(Chain(), torch.zeros(0, 5, 3))
    assert none.sample((2,)).shape == (2, 0, 5)
    assert none.log_prob(none.mode).shape == none.entropy().shape == (0,)


def test_samples_follow_the_generator_of_torch():
    chain = StructureDistribution(Chain(), torch.randn(2, 6, 4))
    torch.manual_seed(3)
    first, second = chain.sample((50,)), chain.sample((50,))
    torch.manual_seed(3)
    torch.testing.assert_close(chain.sample((50,)), first)
    assert (first != second).any()


def test_types_come_back():
    scores = torch.randn(3, 4).bfloat16().requires_grad_()
    found = StructureDistribution(Choice(), scores)
    for value in (found.marginals, found.entropy(), found.log_prob(found.mode), found.top_k(2)[1]):
        assert value.dtype == torch.bfloat16
    found.entropy().sum().backward()
    assert scores.grad.dtype == torch.bfloat16
    assert "Choice" in repr(found)


def test_masks():
    scores = torch.tensor([[0.5, -torch.inf, 0.1, -1e30]], dtype=torch.float64, requires_grad=True)
    found = StructureDistribution(Choice(), scores)
    p = torch.softmax(torch.tensor([0.5, 0.1], dtype=torch.float64), 0)
    torch.testing.assert_close(found.entropy()[0], -(p * p.log()).sum())
    found.entropy().sum().backward()
    assert scores.grad[0, [1, 3]].tolist() == [0.0, 0.0]
    assert scores.grad.isfinite().all()
    everywhere = StructureDistribution(Choice(), torch.zeros(1, 4).double())
    assert kl_divergence(everywhere, found).item() == torch.inf
    assert kl_divergence(found, everywhere).isfinite()
    assert found.log_prob([1]).item() == -torch.inf


def test_second_derivatives_with_masks_and_large_scores():
    """Against softmax, whose derivatives are torch's own."""
    scores = torch.tensor([[900.5, -torch.inf, 900.1, -1e30, 901.0]], dtype=torch.float64)
    kept = [0, 2, 4]
    weights = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)

    def by_structure(scores):
        p = StructureDistribution(Choice(), scores)
        return p.entropy().sum() + (weights * p.marginals[0, kept]).sum()

    def by_softmax(scores):
        log_p = torch.log_softmax(scores[0, kept], 0)
        return (log_p.exp() * (weights - log_p)).sum()

    found, expected = [], []
    for function, seconds in ((by_structure, found), (by_softmax, expected)):
        x = scores.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(x), x, create_graph=True)
        seconds += [torch.autograd.grad(gradient[0, i], x, retain_graph=True)[0] for i in kept]
    torch.testing.assert_close(found, expected)


def test_hessians_of_an_entropy():
    """In every order of modes but one, which torch would answer with zeros."""
    transitions = torch.randn(2, 2, dtype=torch.float64)
    scores = torch.randn(3, 2, dtype=torch.float64)

    def entropy(scores):
        return StructureDistribution(Chain(), scores, transitions=transitions).entropy()

    jacrev, jacfwd = torch.func.jacrev, torch.func.jacfwd
    expected = torch.autograd.functional.hessian(entropy, scores)
    for one, other in ((jacrev, jacrev), (jacfwd, jacrev), (jacrev, jacfwd)):
        torch.testing.assert_close(one(other(entropy))(scores), expected)
    hessians = torch.func.vmap(torch.func.hessian(entropy))(torch.stack([scores, scores]))
    torch.testing.assert_close(hessians, torch.stack([expected, expected]))
    with pytest.raises(NotImplementedError, match="use reverse mode for one of them"):
        jacfwd(jacfwd(entropy))(scores)


def test_third_derivatives_of_entropies_are_refused():
    scores = torch.randn(4, dtype=torch.float64, requires_grad=True)
    entropy = StructureDistribution(Choice(), scores).entropy()
    (gradient,) = torch.autograd.grad(entropy, scores, create_graph=True)
    (second,) = torch.autograd.grad(gradient[0], scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="second ones, and no higher ones"):
        second.sum().backward()


@pytest.mark.parametrize("name", HARD)
def test_what_is_hard_is_refused_with_a_reason(name):
    scores, _ = instance_of(CASES[name], "gaussian", 0)
    with pytest.raises(NotImplementedError, match="#P-hard; use SparseMAP"):
        StructureDistribution(CASES[name].structure, torch.tensor(scores))


def test_bad_input():
    with pytest.raises(didyma.DataError, match="an argmax alone gives no sums"):
        StructureDistribution(Window(), torch.zeros(6))
    with pytest.raises(didyma.DataError, match="floating-point"):
        StructureDistribution(Choice(), torch.zeros(6, dtype=torch.int64))
    chain = StructureDistribution(Chain(), torch.zeros(2, 3, 4))
    with pytest.raises(didyma.DataError, match=r"value: expected outputs of shape \(2, 3\)"):
        chain.log_prob(torch.zeros(3, 3, dtype=torch.int64))
    with pytest.raises(didyma.DataError, match="expected a tag from 0 to 3"):
        chain.log_prob(torch.full((2, 3), 4))
    with pytest.raises(didyma.DataError, match="over the same outputs"):
        kl_divergence(chain, StructureDistribution(Chain(), torch.zeros(2, 3, 5)))
    with pytest.raises(NotImplementedError, match="permanents"):
        StructureDistribution(Matching(), torch.zeros(3, 3))
