"""The passage network against its definition, and the ranker around it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from didyma import model
from didyma.applications.networks.words import Numbering
from didyma.applications.passages.ranker import (
    PassageEmbedding,
    PassageNetwork,
    PassageRanker,
    ScoredPassage,
)
from didyma.applications.passages.text_pairs import Texts
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.ranking.latent import LatentPerceptronRanker
from didyma.ranking.svm import SVMRanker
from didyma.text.reranker import Reranker

SMALL = {"dimension": 6, "filters": 8, "hidden": 8, "epochs": 8, "learning_rate": 0.02}
NOUNS = ["river", "castle", "engine", "poet", "planet", "bridge", "island", "metal", "garden"]


def ask(rng, n_candidates=4):
    """The answer is the candidate that names what the question names."""
    nouns = rng.permutation(NOUNS)[:n_candidates]
    labels = np.arange(n_candidates) == rng.integers(n_candidates)
    sentences = [f"They have seen the {noun} ." for noun in nouns]
    return f"who saw a {nouns[labels.argmax()]} ?", sentences, labels


def lists_of(*asked):
    return Lists.of_texts(*zip(*asked))


@pytest.fixture(scope="module")
def questions():
    rng = np.random.default_rng(0)
    return lists_of(*(ask(rng) for _ in range(40)))


@pytest.fixture(scope="module")
def train(questions):
    return questions.select_lists(range(30))


@pytest.fixture(scope="module")
def dev(questions):
    return questions.select_lists(range(30, 40))


@pytest.fixture(scope="module")
def few(questions):
    return questions.select_lists(range(8))


@pytest.fixture(scope="module")
def ranker(train, dev):
    return PassageRanker("ap", **SMALL).fit(train, dev)


def texts(rng, lengths, n_words=9):
    """Random texts, padded."""
    words, overlaps = (torch.zeros(len(lengths), max(1, *lengths), dtype=torch.long),) * 2
    words, overlaps = words.clone(), overlaps.clone()
    for row, n in enumerate(lengths):
        words[row, :n] = torch.from_numpy(rng.integers(1, n_words, n))
        overlaps[row, :n] = torch.from_numpy(rng.integers(1, 4, n))
    return Texts(words, overlaps)


def slow_encoding(network, convolution, words, overlaps):
    """One text, window by window."""
    vectors = torch.cat([network.words(words), network.overlaps(overlaps)], 1)
    width = convolution.kernel_size[0]
    nothing = torch.zeros(width, vectors.shape[1])
    padded = torch.cat([nothing, vectors, nothing])
    windows = [
        torch.einsum("fdw,wd->f", convolution.weight, padded[start : start + width])
        for start in range(len(padded) - width + 1)
    ]
    return (torch.stack(windows).amax(0) + convolution.bias).relu()


@pytest.mark.parametrize("similarity", [False, True])
def test_the_network_is_what_its_definition_says(similarity):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    network = PassageNetwork(9, 4, filters=6, width=3, hidden=5, similarity=similarity).eval()
    lengths = [0, 1, 7, 2, 90, *rng.integers(1, 9, 80)]
    questions, passages = texts(rng, lengths[::-1]), texts(rng, lengths)
    with torch.no_grad():
        scores, embedded = network(questions, passages), network.embed(questions, passages)
        for row in range(len(lengths)):
            sides = [
                slow_encoding(network, convolution, *(t[row][side.words[row] > 0] for t in side))
                for convolution, side in (
                    (network.question, questions),
                    (network.passage, passages),
                )
            ]
            joint = torch.cat(sides)
            np.testing.assert_allclose(embedded[row], joint, atol=1e-5)
            if similarity:
                product = sides[0] @ network.similarity.weight[0] @ sides[1]
                joint = torch.cat([joint, product[None]])
            score = network.output(torch.tanh(network.hidden(joint)))
            np.testing.assert_allclose(scores[row], score[0], atol=1e-5)


@pytest.mark.parametrize("loss", ["cross-entropy", "ap"])
def test_it_learns_to_look_for_shared_words(train, dev, loss):
    sentences = [f"They have seen the {noun} ." for noun in ("boson", "quark")]
    unseen = lists_of(("who saw a quark ?", sentences, [0, 1]))
    ranker = PassageRanker(loss, **SMALL).fit(train, dev)
    assert ranker.score(dev) > 0.9
    assert ranker.score(unseen) == 1.0


def test_the_latent_hinge_and_the_similarity(train, dev):
    settings = {"feature_map": "positional", "latent": True, "similarity": True}
    ranker = PassageRanker("ap", **SMALL, **settings).fit(train)
    assert ranker.score(dev) > 0.9


def test_the_best_epoch_on_held_out_lists_is_kept(ranker, dev):
    history = ranker.history_
    values = [record["value"] for record in history.records]
    assert history.best_value == max(values) == values[history.best_epoch - 1]
    assert ranker.score(dev) == history.best_value


def test_questions_of_one_kind_count_for_cross_entropy_only():
    rng = np.random.default_rng(0)
    mixed, one_kind = [ask(rng) for _ in range(5)], ("who saw it ?", ["Nobody .", "None ."], [0, 0])
    settings = {**SMALL, "epochs": 1}
    for loss, differs in (("ap", False), ("cross-entropy", True)):
        without = PassageRanker(loss, **settings).fit(lists_of(*mixed))
        with_them = PassageRanker(loss, **settings).fit(lists_of(*mixed, *[one_kind] * 3))
        assert (with_them.words_ != without.words_) == differs


def test_a_seed_says_it_all(questions, few):
    first, same, other = (
        PassageRanker(random_state=seed, **{**SMALL, "epochs": 2}).fit(few).predict(questions)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


def test_training_goes_on_from_a_checkpoint(questions, few, dev, tmp_path):
    settings = {**SMALL, "checkpoint": tmp_path / "checkpoint"}
    whole = PassageRanker(**{**SMALL, "epochs": 3}).fit(few, dev)
    PassageRanker(**{**settings, "epochs": 1}).fit(few, dev)
    rest = PassageRanker(**{**settings, "epochs": 3}).fit(few, dev)
    np.testing.assert_array_equal(whole.predict(questions), rest.predict(questions))


def test_scores_do_not_depend_on_company(ranker, questions):
    together = ranker.predict(questions)
    each = (questions.select_lists([q]) for q in range(len(questions.groups)))
    alone = np.concatenate([ranker.predict(question) for question in each])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert together.dtype == np.float64


def test_odd_texts(ranker):
    odd = lists_of(
        ("who saw a poet ?", [""]),
        ("", ["They have seen the poet .", ""]),
        ("ζῷον ☃", ["§ 7 ©", "naïve words that nobody knew before " * 40]),
        ("who ?", []),
    )
    scores = ranker.predict(odd)
    assert scores.shape == (5,)
    assert np.isfinite(scores).all()
    assert ranker.embed(odd).shape == (5, 16)
    assert ranker.rank("who saw a poet ?", []) == []
    (only,) = ranker.rank("who saw a poet ?", [""])
    assert only == ScoredPassage(0, "", pytest.approx(scores[0], rel=1e-4))


def test_rank_is_sorting_by_score(ranker, questions):
    question = questions.select_lists([0])
    scores = ranker.predict(question)
    ranked = ranker.rank(question.queries[0], question.texts)
    assert [r.place for r in ranked] == np.argsort(-scores, kind="stable").tolist()
    assert [r.passage for r in ranked] == [question.texts[r.place] for r in ranked]
    assert [r.score for r in ranked] == sorted(scores, reverse=True)
    equal = ranker.rank("who ?", ["same .", "same .", "same ."])
    assert [r.place for r in equal] == [0, 1, 2]


def test_scores_stand_where_their_rows_do(ranker, questions):
    order = np.random.default_rng(3).permutation(len(questions))
    mixed_up = Lists(
        [questions.items[row] for row in order],
        qid=questions.qid[order],
        queries=[questions.queries[q] for q in dict.fromkeys(questions.qid[order].tolist())],
    )
    expected = ranker.predict(questions)[order]
    np.testing.assert_allclose(ranker.predict(mixed_up), expected, atol=1e-5)


def test_embeddings_are_features_of_other_rankers(ranker, questions):
    X = ranker.embed(questions)
    y, sizes = questions.y, questions.groups.sizes
    assert X.shape == (160, 16)
    assert (X >= 0).all()
    latent = LatentPerceptronRanker(epochs=20).fit(X[:120], y[:120], group=sizes[:30])
    assert latent.score(X[120:], y[120:], group=sizes[30:]) > 0.9


def test_embeddings_are_a_featuriser(ranker, train, dev):
    embedding = PassageEmbedding(ranker)
    assert (len(embedding.names), embedding.names[8]) == (16, "passage_0")
    arrays, record = embedding.state()
    again = PassageEmbedding.from_state(arrays, json.loads(json.dumps(record)))
    np.testing.assert_array_equal(again.transform(dev), ranker.embed(dev))
    reranker = Reranker(embedding, SVMRanker()).fit(train)
    assert reranker.evaluate(dev, "AP").mean("AP") > 0.9
    other = model.Model.of(reranker.ranker)
    with pytest.raises(ValueError, match="expected a PassageRanker, found SVMRanker"):
        PassageEmbedding.from_state(other.tensors, {"ranker": other.record})


def test_a_model_file_gives_the_same_ranker(ranker, questions, tmp_path):
    path = tmp_path / "passage.safetensors"
    ranker.save(path)
    loaded = PassageRanker.load(path)
    assert loaded.get_params() == ranker.get_params()
    np.testing.assert_array_equal(loaded.predict(questions), ranker.predict(questions))
    np.testing.assert_array_equal(loaded.embed(questions), ranker.embed(questions))


def test_word_vectors_may_be_given(few):
    rng = np.random.default_rng(0)
    words, vectors = [*NOUNS, "quark", "1815", "1920"], rng.normal(size=(12, 3))
    fixed = PassageRanker(**{**SMALL, "epochs": 2, "tune_vectors": False}).fit(
        few, vectors=(words, vectors)
    )
    kept = fixed.weights_["words.weight"]
    vocabulary = Numbering(fixed.words_)
    assert kept.shape == (len(vocabulary), 3)
    np.testing.assert_allclose(kept[vocabulary.ids(words[:11])[:10]], vectors[:10], rtol=1e-6)
    assert "0000" in vocabulary
    np.testing.assert_allclose(kept[vocabulary.ids(["0000"])[0]], vectors[10], rtol=1e-6)
    tuned = PassageRanker(**{**SMALL, "epochs": 2}).fit(few, vectors=(words, vectors))
    assert not np.allclose(tuned.weights_["words.weight"], kept)


GOOD = lists_of(("who ?", ["a", "b"], [1, 0]))
ONE_KIND = lists_of(("who ?", ["a", "b"], [0, 0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Lists.of_texts([], [], []),), "lists: expected a question at least"),
        (([("who ?", ["a", "b"], [1, 0])],), "lists: expected Lists, as Lists.of_texts"),
        ((Lists.of_texts(["who ?"], [["a", "b"]]),), "lists: expected judged passages"),
        ((Lists.of_texts(["who ?"], [["a", 7]], [[1, 0]]),), "query 0, passage 1: expected a text"),
        ((Lists(["a", "b"], np.array([1.0, 0])),), "queries: expected the text of each query"),
        ((ONE_KIND,), "lists: there is nothing to learn from"),
        ((lists_of(("who ?", ["a"], [1])), ONE_KIND), "lists: there is nothing"),
        ((GOOD, ONE_KIND), "eval_set: no question has answers and other passages"),
        ((GOOD, None, (["a", "b"], [[1.0, 2.0]])), "vectors: expected a vector for each of 2"),
    ],
)
def test_wrong_input(arguments, message):
    with pytest.raises(DataError, match=message):
        PassageRanker(**SMALL).fit(*arguments)


def test_wrong_settings(few):
    for settings, field in (
        ({"loss": "accuracy"}, "loss"),
        ({"loss": "ap", "feature_map": "cubic"}, "feature_map"),
        ({"device": "abacus"}, "device"),
        ({"epochs": 0}, "epochs"),
    ):
        with pytest.raises(DataError) as caught:
            PassageRanker(**{**SMALL, **settings}).fit(few)
        assert caught.value.field == field
