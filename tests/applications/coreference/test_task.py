"""Coreference: every oracle against enumeration, and the laws of its learners."""

from __future__ import annotations

from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.applications.coreference.task import (
    Clustering,
    CoreferenceTask,
    CorrelationClusteringTask,
    MentionPairs,
)
from didyma.errors import DataError
from didyma.structured.learners import (
    LatentStructuredPerceptron,
    LatentStructuredSVM,
    StructuredSVM,
)
from didyma.structured.task import TaskProblem
from didyma.structures import Forest


def trees_of(n, edges):
    """Cluster labels of a set of edges, or None if it has a cycle."""
    tree = list(range(n))
    for i, j in edges:
        if tree[i] == tree[j]:
            return None
        tree = [tree[i] if label == tree[j] else label for label in tree]
    return tree


@cache
def forests(n):
    pairs = list(combinations(range(n), 2))
    sets = chain.from_iterable(combinations(pairs, k) for k in range(max(n, 1)))
    found = [(edges, trees_of(n, edges)) for edges in sets]
    return [(edges, labels) for edges, labels in found if labels is not None]


def partitions(n):
    """All clusterings of n mentions as labels."""
    if n == 0:
        return [[]]
    return [[*p, k] for p in partitions(n - 1) for k in range(max(p, default=-1) + 2)]


def same(first, second):
    return all(
        (first[i] == first[j]) == (second[i] == second[j])
        for i, j in combinations(range(len(first)), 2)
    )


def output(n, edges, labels):
    return Clustering(np.array(labels), np.array(edges, np.int64).reshape(-1, 2))


def instance(seed, n, d=3):
    rng = np.random.default_rng(seed)
    x = MentionPairs(n, rng.normal(size=(n * (n - 1) // 2, d)))
    return x, rng.integers(0, max(n - 1, 1), n), rng.normal(size=d)


seeds = st.integers(0, 10**6)
sizes = st.integers(0, 5)
penalties = st.sampled_from([0.05, 0.5, 1.0])


@settings(deadline=None, max_examples=60)
@given(seeds, sizes, penalties, st.floats(0.0, 3.0))
def test_inference_and_completion_equal_enumeration(seed, n, r, scale):
    x, y, w = instance(seed, n)
    task = CoreferenceTask(3, r)
    row = {pair: p for p, pair in enumerate(combinations(range(n), 2))}
    scores = x.features @ w

    def score(edges):
        return sum(scores[row[edge]] for edge in edges)

    def loss(edges):
        links = len(y) - len(set(y.tolist()))
        return links - sum(1.0 if y[i] == y[j] else -r for i, j in edges)

    every = forests(n)
    best = max(score(edges) for edges, _ in every)
    augmented = max(score(edges) + scale * loss(edges) for edges, _ in every)
    completed = max(score(edges) for edges, labels in every if same(labels, y))
    found = [task.argmax(w, x), task.loss_augmented(w, x, y, scale), task.complete(w, x, y)]
    values = [float(task.features(x, f) @ w) for f in found]
    values[1] += scale * task.loss(y, found[1])
    np.testing.assert_allclose(values, [best, augmented, completed], atol=1e-9)
    assert same(found[2].labels, y)
    for f in found:
        edges = [tuple(edge) for edge in f.edges.tolist()]
        assert same(trees_of(n, edges), f.labels)
        assert task.loss(y, f) == pytest.approx(max(0.0, loss(edges)))


@settings(deadline=None, max_examples=40)
@given(seeds, sizes, penalties)
def test_the_loss_is_zero_for_right_clusters_only(seed, n, r):
    _, y, _ = instance(seed, n)
    task = CoreferenceTask(3, r)
    for edges, labels in forests(n):
        loss = task.loss(y, output(n, edges, labels))
        assert (loss == 0.0) == same(labels, y)
        assert loss >= 0.0


@settings(deadline=None, max_examples=40)
@given(seeds, sizes)
def test_the_first_completion_is_a_chain(seed, n):
    x, y, _ = instance(seed, n)
    task = CoreferenceTask(3)
    first = task.initial(x, y, np.random.default_rng(0))
    assert same(first.labels, y)
    for i, j in first.edges.tolist():
        assert y[i] == y[j]
        assert not any(y[k] == y[i] for k in range(i + 1, j))
    assert task.loss(y, first) == 0.0


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(0, 6))
def test_correlation_scores_and_losses_are_sums_over_pairs(seed, n):
    x, y, _ = instance(seed, n)
    task = CorrelationClusteringTask(3)
    pairs = list(combinations(range(n), 2))
    for labels in partitions(n) if n < 5 else [y]:
        chosen = [p for p, (i, j) in enumerate(pairs) if labels[i] == labels[j]]
        np.testing.assert_allclose(
            task.features(x, labels), x.features[chosen].sum(axis=0), atol=1e-12
        )
        wrong = [(labels[i] == labels[j]) != (y[i] == y[j]) for i, j in pairs]
        assert task.loss(y, labels) == pytest.approx(np.mean(wrong) if wrong else 0.0)


def agglomerated(scores, n):
    """Greedy mergers, as slow as can be."""
    clusters = [[i] for i in range(n)]
    while len(clusters) > 1:
        gains = {
            (a, b): sum(scores[min(i, j), max(i, j)] for i in clusters[a] for j in clusters[b])
            for a, b in combinations(range(len(clusters)), 2)
        }
        (a, b), gain = max(gains.items(), key=lambda item: item[1])
        if gain <= 0.0:
            break
        clusters[a] += clusters.pop(b)
    return [next(c for c, members in enumerate(clusters) if i in members) for i in range(n)]


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 12), st.floats(0.0, 20.0))
def test_greedy_inference_merges_the_best_clusters_first(seed, n, scale):
    x, y, w = instance(seed, n)
    task = CorrelationClusteringTask(3)
    pairs = list(combinations(range(n), 2))
    square = np.zeros((n, n))
    for p, (i, j) in enumerate(pairs):
        square[i, j] = x.features[p] @ w
    assert same(task.argmax(w, x), agglomerated(square, n))
    for i, j in pairs:
        square[i, j] += scale * (-1.0 if y[i] == y[j] else 1.0) / len(pairs)
    assert same(task.loss_augmented(w, x, y, scale), agglomerated(square, n))


def test_greedy_inference_may_miss_the_best_clustering():
    x = MentionPairs(4, np.array([[2.0], [-9.0], [-9.0], [1.5], [1.5], [1.5]]))
    task, w = CorrelationClusteringTask(1), np.ones(1)
    best = max(partitions(4), key=lambda labels: float(task.features(x, labels) @ w))
    found = float(task.features(x, task.argmax(w, x)) @ w)
    assert found < float(task.features(x, best) @ w)


def test_a_large_document_agrees_with_the_forest_structure():
    rng = np.random.default_rng(0)
    n = 200
    x = MentionPairs(n, (rng.random((n * (n - 1) // 2, 20)) < 0.2).astype(np.uint8))
    w = rng.normal(size=20) - 0.5
    square = np.zeros((n, n))
    square[np.triu_indices(n, 1)] = x.features @ w
    expected = np.argwhere(Forest().predict(square))
    found = CoreferenceTask(20).argmax(w, x)
    assert sorted(map(tuple, found.edges.tolist())) == sorted(map(tuple, expected.tolist()))
    assert trees_of(n, found.edges.tolist()) is not None


def corpus(seed, n_documents=6, signal=1.5, d=4):
    """Documents whose clusters the features tell, nearly."""
    rng = np.random.default_rng(seed)
    examples, labels = [], []
    for _ in range(n_documents):
        n = int(rng.integers(2, 12))
        y = rng.integers(0, 4, n)
        i, j = np.triu_indices(n, 1)
        X = rng.normal(size=(len(i), d))
        X[:, 0] += signal * (y[i] == y[j])
        X[:, -1] = 1.0
        examples.append(MentionPairs(n, X))
        labels.append(y)
    return examples, labels


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("r", [0.1, 1.0])
def test_rounds_never_raise_the_objective(seed, r):
    examples, labels = corpus(seed)
    task, C = CoreferenceTask(4, r), 3.0
    model = LatentStructuredSVM(task, C=C, tol=1e-6).fit(examples, labels)
    trace = model.objective_trace_
    assert np.all(np.diff(trace) <= 1e-9 * np.abs(trace[:-1]))
    w, value = model.coef_, 0.5 * float(model.coef_ @ model.coef_)
    for x, y in zip(examples, labels):
        worst = task.loss_augmented(w, x, y)
        violation = task.loss(y, worst) + w @ task.features(x, worst)
        violation -= w @ task.features(x, task.complete(w, x, y))
        value += C / len(examples) * float(violation)
    assert trace[-1] == pytest.approx(value)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (CoreferenceTask(4), {}),
        (CoreferenceTask(4), {"loss_scale": 2.5}),
        (CoreferenceTask(4), {"augmented": False}),
        (CoreferenceTask(4), {"online": True}),
        (CorrelationClusteringTask(4), {}),
        (CorrelationClusteringTask(4), {"loss_scale": 2.5}),
        (CorrelationClusteringTask(4), {"augmented": False}),
    ],
)
def test_the_problem_of_a_pair_task_is_that_of_any_task(task, options):
    examples, labels = corpus(3)
    rng = np.random.default_rng(0)
    weights = rng.random(len(examples))
    ours = task.problem(examples, labels, weights, **options)
    plain = TaskProblem(task, examples, labels, weights, **options)
    if task.latent:
        np.testing.assert_allclose(ours.begin(rng), plain.begin(rng))
    w = rng.normal(size=4)
    for _ in range(3):
        np.testing.assert_allclose(ours.risks(w), plain.risks(w), atol=1e-12)
        for found, expected in [
            (ours.cut_all(w), plain.cut_all(w)),
            (ours.cut(w, 2), plain.cut(w, 2)),
        ]:
            np.testing.assert_allclose(found.direction, expected.direction, atol=1e-12)
            assert found.loss == pytest.approx(expected.loss)
        if task.latent:
            np.testing.assert_allclose(ours.complete(w), plain.complete(w))
        w = rng.normal(size=4)


def test_learners_find_what_the_features_tell():
    examples, labels = corpus(0, n_documents=30, signal=4.0)
    unseen, gold = corpus(1, n_documents=30, signal=4.0)
    latent = LatentStructuredSVM(CoreferenceTask(4, 0.5), C=10.0).fit(examples, labels)
    online = LatentStructuredPerceptron(CoreferenceTask(4, 0.5)).fit(examples, labels)
    correlation = StructuredSVM(CorrelationClusteringTask(4), C=100.0, max_iter=50)
    correlation.fit(examples, labels)

    def wrong(predicted):
        task = CorrelationClusteringTask(4)
        return np.mean([task.loss(y, getattr(p, "labels", p)) for p, y in zip(predicted, gold)])

    alone = wrong([np.arange(x.n_mentions) for x in unseen])
    for model in (latent, online, correlation):
        assert wrong(model.predict(unseen)) < 0.5 * alone


def test_misshapen_input_is_refused():
    with pytest.raises(DataError, match="expected 3 rows, one per pair of 3 mentions"):
        MentionPairs(3, np.zeros((2, 4)))
    with pytest.raises(DataError, match="r: expected a penalty above 0"):
        CoreferenceTask(4, r=0.0)
    x = MentionPairs(3, np.zeros((3, 4)))
    weights = np.ones(1)
    with pytest.raises(DataError, match="document 0: expected 3 cluster labels"):
        CoreferenceTask(4).problem([x], [np.zeros(2)], weights)
    with pytest.raises(DataError, match="document 0: expected 5 features per pair, found 4"):
        CoreferenceTask(5).problem([x], [np.zeros(3)], weights)


def test_labels_may_be_of_any_type():
    x, _, w = instance(0, 4)
    task = CoreferenceTask(3)
    named, numbered = ["b", "a", "b", "c"], [0, 1, 0, 2]
    for ask in (task.loss_augmented, task.complete):
        assert ask(w, x, named).edges.tolist() == ask(w, x, numbered).edges.tolist()
