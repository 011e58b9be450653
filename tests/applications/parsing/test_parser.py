"""The dependency parser: network, training, prediction, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import didyma
from didyma.applications.parsing.parser import LOSSES, DependencyParser
from didyma.data import conll
from didyma.data.conll import Field, Sentence
from didyma.errors import DataError, ModelFileError
from didyma.structures import ProjectiveTree, Tree

DATA = Path(__file__).parents[3] / "examples" / "data"
SMALL = {"word_size": 8, "tag_size": 4, "character_size": 4, "hidden": 8, "mlp": 8}
FAST = {**SMALL, "dropout": 0.0, "word_dropout": 0.0, "learning_rate": 0.03, "device": "cpu"}


@pytest.fixture(scope="module")
def treebank() -> list[Sentence]:
    return conll.read(DATA / "treebank-train.conllu", trees=True)


@pytest.fixture(scope="module")
def parser(treebank: list[Sentence]) -> DependencyParser:
    parser = DependencyParser(epochs=25, characters=True, batch_size=8, **FAST)
    return parser.fit(treebank[:30])


def sentence(heads: list[int], labels: list[str] | None = None) -> Sentence:
    words = [f"w{i}" for i in range(len(heads))]
    labels = labels or ["root" if head == 0 else "dep" for head in heads]
    return Sentence.from_words(words).replaced({Field.HEAD: heads, Field.DEPREL: labels})


def heads_of(sentences: list[Sentence]) -> list[list[int]]:
    return [[] if s.heads is None else s.heads.tolist() for s in sentences]


@pytest.mark.parametrize(
    ("loss", "projective"),
    [*((loss, False) for loss in LOSSES), ("sparsemap", True), ("crf", True)],
)
def test_a_handful_of_sentences_is_learned_by_heart(loss, projective, treebank):
    trees = [treebank[i] for i in (0, 5, 6, 8)]
    options = {**FAST, "hidden": 16, "layers": 1, "mlp": 16, "epochs": 60}
    parser = DependencyParser(loss, projective=projective, **options).fit(trees)
    assert parser.score(trees) == 1.0
    assert [s.lines for s in parser.predict(trees)] == [s.lines for s in trees]
    losses = [record["loss"] for record in parser.history_.records]
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_reach_all_parameters(loss, treebank):
    seen = []

    def stop(step):
        seen.append({k: p.grad.abs().sum() for k, p in parser._network.named_parameters()})

    parser = DependencyParser(loss, epochs=1, characters=True, callback=stop, **FAST)
    parser.fit(treebank[:8])
    assert all(total > 0 for total in seen[0].values())


def test_padding_does_not_matter(parser, treebank):
    together = parser.arc_scores(treebank[:40])
    for own, tree in zip(together, treebank):
        np.testing.assert_allclose(parser.arc_scores([tree])[0], own, atol=1e-5)
        assert own.shape == (len(tree) + 1, len(tree) + 1)
    assert heads_of(parser.predict(treebank[:40])) == heads_of(
        [parser.predict([tree])[0] for tree in treebank[:40]]
    )


def test_the_best_tree_is_that_of_the_scores(parser, treebank):
    for scores, parsed in zip(parser.arc_scores(treebank), parser.predict(treebank)):
        assert Tree(single_root=True).predict(scores)[1:].tolist() == parsed.heads.tolist()


def test_seeds_repeat_bit_for_bit(treebank):
    def weights(seed: int) -> dict[str, np.ndarray]:
        own = {**FAST, "dropout": 0.3, "word_dropout": 0.5, "random_state": seed}
        return DependencyParser(epochs=2, batch_size=8, **own).fit(treebank[:20]).weights_

    first, again, other = weights(1), weights(1), weights(2)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["arc_head.weight"], other["arc_head.weight"])


def test_a_parser_is_saved_and_loaded(parser, treebank, tmp_path):
    parser.save(tmp_path / "m.safetensors")
    again = DependencyParser.load(tmp_path / "m.safetensors")
    assert [s.lines for s in again.predict(treebank)] == [s.lines for s in parser.predict(treebank)]
    for ours, theirs in zip(again.arc_scores(treebank[:5]), parser.arc_scores(treebank[:5])):
        np.testing.assert_array_equal(ours, theirs)
    kept = {**parser.get_params(), "device": "auto"}
    assert again.get_params() == kept


def test_what_was_never_seen_is_parsed_all_the_same(parser):
    lines = [["Zyzzyva", "ŋ¤", "QQ"], ["1234"], []]
    strange = [Sentence.from_words(words) for words in lines]
    strange[0] = strange[0].replaced({Field.UPOS: ["NEW", "TAGS", "HERE"]})
    parsed = parser.predict(strange)
    assert [len(s) for s in parsed] == [3, 1, 0]
    parsed[0].check_tree()
    assert parsed[1].heads.tolist() == [0]
    assert parsed[2] is strange[2]
    assert parser.predict([]) == []
    assert [len(a.structures) >= 1 for a in parser.alternatives(strange)] == [True] * 3
    assert parser.alternatives(strange)[2].structures.shape == (1, 1)
    assert parser.score([sentence([0], ["unheard-of"])]) == 1.0


def test_relations_of_the_root_are_for_the_root(parser, treebank):
    for parsed in parser.predict(treebank):
        root = np.array(parsed.column(Field.DEPREL)) == "root"
        np.testing.assert_array_equal(root, parsed.heads == 0)


def test_alternatives_are_the_sparsemap_posterior(parser, treebank):
    found = parser.alternatives(treebank[:60], temperature=2.0)
    assert any(posterior.support_size > 1 for posterior in found)
    for tree, posterior, scores in zip(treebank, found, parser.arc_scores(treebank)):
        assert posterior.structures.shape[1] == len(tree) + 1
        assert posterior.probabilities.sum() == pytest.approx(1.0)
        expected = didyma.sparsemap(scores, Tree(single_root=True), temperature=2.0)
        np.testing.assert_allclose(posterior.marginals, expected, atol=1e-7)
        for heads in posterior.structures:
            sentence(heads[1:].tolist()).check_tree()
    cold = parser.alternatives(treebank[:60], temperature=1e-3)
    for posterior, parsed in zip(cold, parser.predict(treebank)):
        assert posterior.structures[0, 1:].tolist() == parsed.heads.tolist()


def test_trees_are_labelled_one_by_one(parser, treebank):
    parsed = parser.predict(treebank[:9])
    labels = parser.label(treebank[:9], [s.heads for s in parsed])
    assert labels == [list(s.column(Field.DEPREL)) for s in parsed]
    assert parser.label([Sentence.from_words([])], [np.zeros(0, np.int64)]) == [[]]


def test_trees_that_cannot_be_predicted_are_left_out(treebank):
    with pytest.warns(UserWarning, match=r"1 of 4 trees have crossing arcs"):
        projective = DependencyParser(projective=True, epochs=1, **FAST).fit(treebank[:4])
    for scores, parsed in zip(projective.arc_scores(treebank), projective.predict(treebank)):
        heads = ProjectiveTree(single_root=True).predict(scores)
        assert heads[1:].tolist() == parsed.heads.tolist()
    two = sentence([0, 0, 2])
    with pytest.warns(UserWarning, match="1 of 2 trees have several roots"):
        DependencyParser(epochs=1, **FAST).fit([two, sentence([2, 0])])
    with pytest.raises(DataError, match="nothing to learn from: of 1 sentences"):
        DependencyParser(epochs=1, **FAST).fit([two])
    several = DependencyParser(single_root=False, epochs=60, **FAST).fit([two])
    assert several.predict([two])[0].heads.tolist() == [0, 0, 2]


def test_the_best_epoch_on_dev_is_kept(treebank):
    parser = DependencyParser(epochs=6, **FAST).fit(treebank[:20], treebank[20:40])
    values = [record["value"] for record in parser.history_.records]
    assert parser.score(treebank[20:40]) == pytest.approx(max(values))
    assert parser.history_.best_epoch == 1 + int(np.argmax(values))


def test_tags_may_be_left_out_or_fine(treebank):
    blind = DependencyParser(tags=None, epochs=1, **FAST).fit(treebank[:8])
    assert blind.tags_ == []
    fine = DependencyParser(tags="xpos", epochs=1, **FAST).fit(treebank[:8])
    assert "VBZ" in fine.tags_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss: expected one of 'sparsemap'"),
        ({"tags": "pos"}, "tags: expected one of 'upos', 'xpos', None"),
        ({"batch_size": 0}, "batch_size: expected a whole number from 1 on"),
        ({"epochs": 0}, "epochs: expected a whole number from 1 on"),
        ({"margin": -1.0, "loss": "svm"}, "margin: expected a number from 0 on"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(DataError, match=message):
        DependencyParser(**parameters).fit([sentence([0])])


@pytest.mark.parametrize(
    ("heads", "message"),
    [([2, 1], "no root"), ([0, 3, 2], "cycle"), ([0, 5], "head up to 2"), ([1], "its own head")],
)
@pytest.mark.parametrize("part", ["train", "dev"])
def test_heads_that_are_no_tree_are_refused_before_training(heads, message, part):
    good, bad = sentence([0]), sentence(heads)
    with pytest.raises(DataError, match=message):
        DependencyParser(**FAST).fit(*([[bad]] if part == "train" else [[good], [bad]]))


def test_nothing_is_refused():
    for nothing in ([], [Sentence.from_words([])]):
        with pytest.raises(DataError, match="nothing to learn from"):
            DependencyParser(**FAST).fit(nothing)
        with pytest.raises(DataError, match="eval_set: expected sentences with words"):
            DependencyParser(**FAST).fit([sentence([0])], nothing)


def test_a_callback_may_look_at_the_parser_as_it_learns(treebank):
    seen = []

    def look(step):
        if step.value is not None:
            seen.append(parser.predict(treebank[:2]))

    parser = DependencyParser(**{**FAST, "epochs": 2, "callback": look})
    parser.fit(treebank[:8])
    assert [[s.lines for s in found] for found in seen[1:]] == [
        [s.lines for s in parser.predict(treebank[:2])]
    ]


def test_weights_of_another_network_are_refused(parser, tmp_path):
    parser.save(tmp_path / "m.safetensors")
    other = DependencyParser.load(tmp_path / "m.safetensors").set_params(hidden=5)
    with pytest.raises(ModelFileError, match="the weights do not fit"):
        other.predict([sentence([0])])
