"""Measures of dependency parsing, by the rules of the CoNLL 2018 shared task.

A tree is a pair: the head of each word (0 for the root), and the relation to it. With w words:

    UAS     share of words with the right head
    LAS     share of words with the right head and relation
    CLAS    F1 of content words (neither function words nor punctuation) with both right
    trees   share of sentences with every head right

All words count, punctuation too. Relations are compared up to a colon: ``acl:relcl`` is ``acl``.
Words are given, so what the shared task says of tokens that do not match has no place here.

Zeman et al., CoNLL 2018 shared task: multilingual parsing from raw text to Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma import DataError
from didyma.data.conll import Field, Sentence

LabelledTree: TypeAlias = tuple[ArrayLike, Sequence[str]]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Relations of content words in Universal Dependencies; all others are of function words, or punct.
CONTENT = frozenset(
    (
        *("nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl"),
        *("dislocated", "advcl", "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod"),
        *("conj", "fixed", "flat", "compound", "list", "parataxis", "orphan", "goeswith"),
        *("reparandum", "root", "dep"),
    )
)


@dataclass(frozen=True, eq=False)
class Attachment:
    """Counts per sentence, and the measures that they make.

    ``per_sentence`` has the values that significance tests compare.
    """

    words: Integers
    heads: Integers  # words whose head is right
    arcs: Integers  # words whose head and relation are right
    content: Integers  # content words of the gold tree, plus those of the predicted one
    content_arcs: Integers

    @property
    def uas(self) -> float:
        """Unlabelled attachment score."""
        return _share(self.heads.sum(), self.words.sum())

    @property
    def las(self) -> float:
        """Labelled attachment score."""
        return _share(self.arcs.sum(), self.words.sum())

    @property
    def clas(self) -> float:
        """Content-word labelled attachment score."""
        return _share(2 * self.content_arcs.sum(), self.content.sum())

    @property
    def trees(self) -> float:
        """Share of whole trees that are right."""
        return float(np.mean(self.heads == self.words))

    @property
    def per_sentence(self) -> dict[str, Floats]:
        """UAS and LAS of each sentence."""
        words = np.maximum(self.words, 1)
        return {
            name: np.where(self.words > 0, right / words, 1.0)
            for name, right in (("uas", self.heads), ("las", self.arcs))
        }


def evaluate(golds: Sequence[LabelledTree], predictions: Sequence[LabelledTree]) -> Attachment:
    """Compare predicted trees with gold ones.

    >>> gold = ([2, 0, 2], ["nsubj", "root", "obl:tmod"])
    >>> found = evaluate([gold], [([2, 0, 1], ["nsubj", "root", "obl"])])
    >>> round(found.uas, 2), round(found.las, 2), round(found.clas, 2), found.trees
    (0.67, 0.67, 0.67, 0.0)
    """
    if len(golds) != len(predictions) or not golds:
        raise DataError(
            f"expected as many predictions as sentences, and at least one, found "
            f"{len(predictions)} for {len(golds)}"
        )
    rows = [_count(i, *pair) for i, pair in enumerate(zip(golds, predictions))]
    return Attachment(*np.array(rows, np.int64).T)


def labelled_tree(sentence: Sentence) -> LabelledTree:
    """The heads of a sentence, and the relations to them."""
    return ([] if sentence.heads is None else sentence.heads), sentence.column(Field.DEPREL)


def _count(sentence: int, gold: LabelledTree, predicted: LabelledTree) -> tuple[int, ...]:
    gold_heads, heads = np.asarray(gold[0]), np.asarray(predicted[0])
    if not gold_heads.shape == heads.shape == (len(gold[1]),) == (len(predicted[1]),):
        raise DataError(
            f"sentence {sentence + 1}: expected a head and a relation for each of "
            f"{len(gold_heads)} words, found {len(heads)} heads and {len(predicted[1])} relations"
        )
    gold_labels, labels = (
        np.array([label.partition(":")[0] for label in tree[1]], dtype=str)
        for tree in (gold, predicted)
    )
    right = gold_heads == heads
    arc = right & (gold_labels == labels)
    gold_content, content = (np.isin(x, list(CONTENT)) for x in (gold_labels, labels))
    return (
        len(heads),
        int(right.sum()),
        int(arc.sum()),
        int(gold_content.sum() + content.sum()),
        int((arc & gold_content).sum()),
    )


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 1.0
