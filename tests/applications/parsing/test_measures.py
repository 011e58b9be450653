"""Attachment scores by the rules of CoNLL 2018."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.applications.parsing.measures import CONTENT, evaluate
from didyma.errors import DataError

GOLD = [
    ([2, 3, 0, 5, 3, 3], ["det", "nsubj", "root", "case", "obl:tmod", "punct"]),
    ([0], ["root"]),
    ([2, 0], ["nsubj:pass", "root"]),
]
FOUND = [
    ([2, 3, 0, 3, 3, 3], ["det", "obj", "root", "case", "obl", "punct"]),
    ([0], ["root"]),
    ([2, 0], ["nsubj", "root"]),
]


def test_all_words_count_and_subtypes_do_not():
    found = evaluate(GOLD, FOUND)
    assert found.uas == pytest.approx(8 / 9)  # "case" has the wrong head
    assert found.las == pytest.approx(7 / 9)  # and "obj" is the wrong relation
    assert found.trees == pytest.approx(2 / 3)


def test_content_words_are_judged_by_f1():
    # Gold content words: nsubj root obl, root, nsubj root; predicted ones: as many.
    assert evaluate(GOLD, FOUND).clas == pytest.approx(2 * 5 / (6 + 6))
    gold = [([2, 0], ["det", "root"])]
    assert evaluate(gold, [([2, 0], ["amod", "root"])]).clas == pytest.approx(2 * 1 / (1 + 2))
    assert not CONTENT & {"punct", "det", "case", "cc", "mark", "aux", "cop", "clf"}


def test_values_of_sentences_are_those_of_each_alone():
    found = evaluate(GOLD, FOUND).per_sentence
    each = [evaluate([gold], [own]) for gold, own in zip(GOLD, FOUND)]
    np.testing.assert_allclose(found["uas"], [one.uas for one in each])
    np.testing.assert_allclose(found["las"], [one.las for one in each])


def test_a_sentence_without_words_is_right():
    found = evaluate([([], []), GOLD[1]], [([], []), FOUND[1]])
    assert (found.uas, found.las, found.clas, found.trees) == (1.0, 1.0, 1.0, 1.0)
    np.testing.assert_array_equal(found.per_sentence["uas"], [1.0, 1.0])


def test_measures_agree_with_counting_one_by_one():
    random = np.random.default_rng(0)
    labels = ["nsubj", "nsubj:pass", "det", "punct", "root", "conj"]

    def tree(n: int) -> tuple[list[int], list[str]]:
        return random.integers(0, n + 1, n).tolist(), random.choice(labels, n).tolist()

    sizes = random.integers(1, 9, 40)
    golds, found = ([tree(n) for n in sizes] for _ in range(2))
    words = right = both = gold_content = own_content = content = 0
    for gold, own in zip(golds, found):
        for h, label, g, wanted in zip(*own, *gold):
            label, wanted = label.split(":")[0], wanted.split(":")[0]
            words += 1
            right += h == g
            both += h == g and label == wanted
            gold_content += wanted not in ("det", "punct")
            own_content += label not in ("det", "punct")
            content += h == g and label == wanted and wanted not in ("det", "punct")
    judged = evaluate(golds, found)
    assert judged.uas == pytest.approx(right / words)
    assert judged.las == pytest.approx(both / words)
    precision, recall = content / own_content, content / gold_content
    assert judged.clas == pytest.approx(2 * precision * recall / (precision + recall))


@pytest.mark.parametrize(
    ("golds", "found"), [([], []), (GOLD, FOUND[:2]), (GOLD[:1], [([1], ["root"])])]
)
def test_trees_that_do_not_fit_are_refused(golds, found):
    with pytest.raises(DataError, match="expected"):
        evaluate(golds, found)
