"""ESIM: alignments against enumeration, padding, and the classifier around it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from didyma.applications.alignment.esim import (
    ESIM,
    Alignment,
    EntailmentClassifier,
    _Examples,
    nonzero_share,
)
from didyma.applications.alignment.layers import ALIGNMENTS
from didyma.applications.alignment.reader import Pair
from didyma.applications.networks.words import UNKNOWN
from didyma.errors import DataError

torch.set_num_threads(1)  # so small networks only lose by more

SMALL = {"dimension": 6, "hidden": 5, "batch_size": 4, "device": "cpu", "n_jobs": 1}
PAIRS = [
    Pair("The black dog runs", "a dog moves", "entailment"),
    Pair("The black dog runs", "the white dog runs", "contradiction"),
    Pair("a cat sleeps outside", "a happy cat sleeps", "neutral"),
    Pair("a cat sleeps", "cat", "entailment"),
    Pair("", "a cat", "neutral"),
    Pair("no dog runs", "", "contradiction"),
]
LABELS = [str(pair.label) for pair in PAIRS]


def test_sequential_alignment_has_eighteen_parameters_more():
    counts = {
        name: sum(p.numel() for p in ESIM(9, 3, 4, 5, name).parameters()) for name in ALIGNMENTS
    }
    assert counts["sequential"] == counts["softmax"] + 18
    assert counts["matching"] == counts["softmax"]


def test_an_unknown_alignment_is_refused():
    with pytest.raises(DataError, match="expected one of 'softmax', 'sequential', 'matching'"):
        ESIM(9, 3, alignment="perfect")


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_padding_does_not_matter(name):
    torch.manual_seed(0)
    network = ESIM(20, 3, 6, 5, name, n_jobs=1).double().eval()
    for parameter in network.align.parameters():
        parameter.data.normal_()
    premises = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 0, 0, 0], [9, 0, 0, 0, 0]])
    hypotheses = torch.tensor([[10, 11, 0, 0, 0, 0], [12, 13, 14, 15, 16, 17], [18, 0, 0, 0, 0, 0]])
    scores, aligned = network.read(premises, hypotheses)
    for b in range(3):
        p, h = premises[b][premises[b] > 0], hypotheses[b][hypotheses[b] > 0]
        alone, of_one = network.read(p[None], h[None])
        torch.testing.assert_close(scores[b], alone[0])
        torch.testing.assert_close(aligned[0][b, : len(p), : len(h)], of_one[0][0])


def test_esim_by_hand():
    """One word on each side: every alignment is 1, and pooling sees a single state."""
    torch.manual_seed(1)
    network = ESIM(5, 2, 3, 4, "matching", n_jobs=1).eval()
    scores = network(torch.tensor([[2]]), torch.tensor([[3]]))
    one = torch.tensor([1])
    p, h = (network.encoder(network.embedding(torch.tensor([[w]])), one)[0] for w in (2, 3))
    states = []
    for own, other in ((p, h), (h, p)):
        joined = network.projection(torch.cat([own, other, own - other, own * other], 1))
        states.append(network.composition(joined[None], one)[0])
    pooled = torch.cat([states[0], states[0], states[1], states[1]], 1)
    torch.testing.assert_close(scores, network.classifier(pooled))


@pytest.fixture(scope="module")
def classifiers():
    return {
        name: EntailmentClassifier(name, epochs=2, **SMALL).fit(PAIRS * 2, LABELS * 2)
        for name in ALIGNMENTS
    }


def test_it_learns():
    settings = {**SMALL, "epochs": 40, "learning_rate": 0.02, "dropout": 0.0}
    found = EntailmentClassifier("matching", **settings).fit(PAIRS, LABELS, (PAIRS, LABELS))
    assert found.score(PAIRS, LABELS) == 1.0
    assert found.predict(PAIRS).tolist() == LABELS
    assert found.history_.best_value == 1.0


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_any_sentence_has_a_label_and_an_alignment(classifiers, name):
    classifier = classifiers[name]
    unseen = [
        ("", ""),
        ("word", "word"),
        ("zebras quack", "¡!"),
        (["a", "list", "of", "words"], ["another"]),
        *PAIRS,
    ]
    shares = classifier.predict_proba(unseen)
    assert shares.shape == (len(unseen), 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert set(classifier.predict(unseen)) <= set(classifier.classes_)
    for pair, alignment in zip(unseen, classifier.alignments(unseen)):
        (one,) = classifier.alignments([pair])  # alone, without padding
        np.testing.assert_allclose(alignment.to_hypothesis, one.to_hypothesis, atol=1e-5)
        shape = (len(alignment.premise), len(alignment.hypothesis))
        assert alignment.to_hypothesis.shape == alignment.to_premise.shape == shape
    assert classifier.alignments([("", "no words")])[0].premise == ("∅",)
    assert classifier.predict_proba([]).shape == (0, 3)
    assert classifier.alignments([]) == []


@pytest.mark.parametrize(
    ("name", "directions"),
    [
        ("softmax", []),
        ("sequential", ["premise to hypothesis", "hypothesis to premise"]),
        ("matching", ["matching"]),
    ],
)
def test_alignments_are_mixtures_of_the_selected_structures(classifiers, name, directions):
    for alignment in classifiers[name].alignments(PAIRS):
        assert list(alignment.selected) == directions
        for direction, (structures, probabilities) in alignment.selected.items():
            assert probabilities.sum() == pytest.approx(1.0)
            assert (np.diff(probabilities) <= 0).all()
            mean = np.tensordot(probabilities, structures.astype(float), 1)
            of_premise = direction == "hypothesis to premise"
            weights = alignment.to_premise if of_premise else alignment.to_hypothesis
            np.testing.assert_allclose(mean, weights, atol=1e-6)
            if name == "sequential":
                assert (structures.sum(axis=1 if of_premise else 2) == 1).all()
            else:
                assert (structures.sum(axis=(1, 2)) == min(weights.shape)).all()


def test_share_of_nonzero_alignments(classifiers):
    sparse = Alignment(("a",), ("b", "c"), np.array([[1.0, 0.0]]), np.array([[0.5, 1.0]]), {})
    dense = Alignment(("a",), ("b",), np.ones((1, 1)), np.ones((1, 1)), {})
    assert sparse.nonzero_share == 0.75
    assert nonzero_share([sparse, dense]) == 5 / 6
    assert nonzero_share(classifiers["softmax"].alignments(PAIRS)) == 1.0


def test_the_same_seed_gives_the_same_classifier(classifiers):
    again = EntailmentClassifier("matching", epochs=2, **SMALL).fit(PAIRS * 2, LABELS * 2)
    other = EntailmentClassifier("matching", epochs=2, random_state=1, **SMALL).fit(
        PAIRS * 2, LABELS * 2
    )
    for name, array in classifiers["matching"].weights_.items():
        np.testing.assert_array_equal(array, again.weights_[name])
    assert not np.allclose(again.predict_proba(PAIRS), other.predict_proba(PAIRS))


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_a_model_file_keeps_everything(classifiers, name, tmp_path):
    path = tmp_path / "nli.safetensors"
    classifiers[name].save(path)
    before = torch.random.get_rng_state()
    loaded = EntailmentClassifier.load(path)
    np.testing.assert_array_equal(
        loaded.predict_proba(PAIRS), classifiers[name].predict_proba(PAIRS)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert loaded.classes_ == ["contradiction", "entailment", "neutral"]


@pytest.mark.parametrize("tune", [True, False])
def test_given_vectors(tune):
    words = ["dog", "wolf"]
    matrix = np.array([[1, 2, 3], [1, 2, 2.5]])
    classifier = EntailmentClassifier(tune_vectors=tune, epochs=1, **SMALL)
    classifier.fit(PAIRS, LABELS, vectors=(words, matrix))
    assert {"wolf", "dog", "cat"} <= set(classifier.words_)
    rows = [classifier.words_.index(word) + 2 for word in words]
    found = classifier.weights_["embedding.weight"]
    assert found.shape[1] == 3
    assert np.allclose(found[rows], matrix) == (not tune)
    assert not np.allclose(
        *classifier.predict_proba([("a wolf runs", "a dog"), ("a bear runs", "a dog")])
    )


def test_lower_case_is_an_option():
    pairs, labels = [("A b", "c"), ("B", "D")], ["yes", "no"]
    assert EntailmentClassifier().vocabulary(pairs) == {"a", "b", "c", "d"}
    classifier = EntailmentClassifier(lowercase=False, epochs=1, **SMALL).fit(pairs, labels)
    assert classifier.words_ == ["A", "B", "D", "b", "c"]


def test_labels_that_were_not_seen_are_errors(classifiers):
    assert classifiers["softmax"].score(PAIRS, ["maybe"] * len(PAIRS)) == 0.0
    classifier = EntailmentClassifier(epochs=1, **SMALL)
    classifier.fit(PAIRS, LABELS, (PAIRS, ["maybe"] * len(PAIRS)))
    assert classifier.history_.best_value == 0.0


@pytest.mark.parametrize(
    ("pairs", "labels", "problem"),
    [
        (PAIRS, LABELS[:-1], "expected one for each of 6 pairs, found 5"),
        (PAIRS, ["neutral"] * 6, "expected two labels at least, found neutral"),
        ([], [], "expected two labels at least, found none"),
        (["a text", ("a", "b")], ["a", "b"], r"pairs\[0\]: expected a premise and a hypothesis"),
        ([("a", "b"), ("a",)], ["a", "b"], r"pairs\[1\]: expected a premise and a hypothesis"),
    ],
)
def test_what_cannot_be_learned_from(pairs, labels, problem):
    with pytest.raises(DataError, match=problem):
        EntailmentClassifier(**SMALL).fit(pairs, labels)


def test_vectors_that_do_not_fit():
    with pytest.raises(DataError, match="expected a vector for each of 2 words"):
        EntailmentClassifier(**SMALL).fit(PAIRS, LABELS, vectors=(["a", "b"], np.zeros((3, 4))))
    with pytest.raises(DataError, match="expected vectors of some words, found none"):
        EntailmentClassifier(**SMALL).fit(PAIRS, LABELS, vectors=([], np.zeros((0, 4))))


def test_development_pairs_must_be_there():
    with pytest.raises(DataError, match="eval_set: expected a pair at least"):
        EntailmentClassifier(**SMALL).fit(PAIRS, LABELS, ([], []))


def test_nothing_is_predicted_before_training():
    with pytest.raises(NotFittedError):
        EntailmentClassifier().predict(PAIRS)


def test_an_epoch_has_every_pair_once_and_hides_only_rare_words():
    random = np.random.default_rng(0)
    premises = [random.integers(2, 9, size=n).tolist() for n in random.integers(1, 9, size=200)]
    hypotheses = [[9, number] for number in range(10, 210)]
    examples = _Examples(premises, hypotheses, np.arange(200))
    counts = examples.counts(210)
    rare = counts == 1
    assert not rare[:10].any()
    assert rare[10:].all()
    batches = examples.shuffled(8, np.random.default_rng(1), rare)
    assert sorted(torch.cat([batch.labels for batch in batches]).tolist()) == list(range(200))
    hidden = 0
    for batch in batches:
        lengths = (batch.premises > 0).sum(1)
        assert lengths.max() - lengths.min() <= 3
        for row, words, label in zip(batch.premises, batch.hypotheses, batch.labels.tolist()):
            assert row[row > 0].tolist() == premises[label]
            assert words[0] == 9
            assert words[1] in (label + 10, UNKNOWN)
            hidden += int(words[1] == UNKNOWN)
    assert 60 < hidden < 140
