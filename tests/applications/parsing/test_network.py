"""The network of the parser, and sentences as it reads them."""

from __future__ import annotations

import numpy as np
import torch
from tests.applications.parsing.test_parser import sentence

from didyma.applications.parsing.network import (
    MOST_ARCS,
    ArcFactored,
    ParserLexicon,
    buckets,
    collate,
)
from didyma.data.conll import Field, Sentence

SMALL = {"word_size": 8, "tag_size": 4, "character_size": 4, "hidden": 8, "mlp": 8}


def test_arcs_are_scored_one_by_one_and_all_at_once():
    torch.manual_seed(0)
    network = ArcFactored(9, 4, 0, 3, **SMALL)
    states = torch.randn(2, 5, 16)
    scores = network.arc_scores(states)
    for b, m, h in np.ndindex(2, 5, 5):
        hidden = network.arc_modifier(states[b, m]) + network.arc_head(states[b, h])
        torch.testing.assert_close(scores[b, m, h], network.arc_score(hidden.tanh())[0])


def test_relations_are_those_of_the_given_arcs_and_allowed_there():
    torch.manual_seed(0)
    network = ArcFactored(9, 4, 0, 3, **SMALL)
    network.allowed[0] = torch.tensor([True, False, False])
    states, heads = torch.randn(1, 4, 16), torch.tensor([[-1, 2, 0, 1]])
    scores = network.label_scores(states, heads)[0]
    for m, h in ((1, 2), (3, 1)):
        hidden = network.label_modifier(states[0, m]) + network.label_head(states[0, h])
        torch.testing.assert_close(scores[m - 1], network.label_score(hidden.tanh()))
    assert torch.isfinite(scores[1]).tolist() == [True, False, False]


def test_rare_words_are_forgotten_more_often():
    treebank = [Sentence.from_words(["a", "rare", "word"])]
    lexicon = ParserLexicon.learn(treebank, Field.UPOS, characters=False)
    example = lexicon.encode(treebank[0])
    probability = np.zeros(len(lexicon.words))
    probability[example.words[0]] = 1.0
    forgotten = example.forget(probability, np.random.default_rng(0))
    assert forgotten.words[0] == 1
    np.testing.assert_array_equal(forgotten.words[1:], example.words[1:])


def test_batches_hold_every_sentence_once_and_are_not_too_large():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 120, 500)
    rows = list(buckets(random.permutation(500), lengths, 16))
    assert sorted(np.concatenate(rows).tolist()) == list(range(500))
    for own in rows:
        assert len(own) <= 16
        assert len(own) == 1 or len(own) * (lengths[own].max() + 1) ** 2 <= MOST_ARCS
    widths = [np.ptp(lengths[own]) for own in rows]
    assert np.mean(widths) < 10


def test_a_batch_pads_what_is_shorter():
    lexicon = ParserLexicon.learn([sentence([2, 0]), sentence([0])], None, characters=True)
    trees = [sentence([2, 0]), sentence([0])]
    batch = collate([lexicon.encode(tree, tree.heads) for tree in trees])
    assert batch.heads.tolist() == [[-1, 2, 0], [-1, 0, -1]]
    assert batch.labels.tolist() == [[0, 1], [1, -1]]
    assert batch.words.tolist() == [[2, 2], [2, 0]]  # w0 and w1 are the same word, w0
    assert batch.characters.shape == (2, 2, 2)
