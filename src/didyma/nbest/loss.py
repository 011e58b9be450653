"""Losses of outputs by their references: Hamming and edit distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError, check_choice
from didyma.nbest.formats.outputs import inputs_of, outputs_of

TINY = 1e-12  # what is smaller, relative to the values, is rounding

TokenLoss: TypeAlias = "Callable[[Sequence[str], Sequence[str]], float]"


def hamming(reference: Sequence[str], output: Sequence[str]) -> float:
    """Number of places at which two outputs of one length differ.

    >>> hamming(["NN", "VBZ"], ["NN", "NNS"])
    1.0
    """
    return float(sum(map(str.__ne__, reference, output)))


def edit(reference: Sequence[str], output: Sequence[str]) -> float:
    """Least number of insertions, deletions and substitutions, over the longer length.

    >>> edit("time flies like an arrow".split(), "time flies an arrow".split())
    0.2
    """
    return _edits(reference, output) / max(len(reference), len(output), 1)


# Losses of a tokenised output, given the reference.
LOSSES: dict[str, TokenLoss] = {"hamming": hamming, "edit": edit}


def loss_measure(lists: Lists, measure: str = "auto") -> str:
    """Where losses come from: "given" if lists have them, else a name in `LOSSES`.

    "auto" is "hamming" if every output has as many tokens as its reference, otherwise "edit".
    """
    check_choice(measure, ("auto", *LOSSES), "loss")
    outputs = outputs_of(lists)
    if lists.losses is not None:
        return "given"
    if measure == "edit":
        return measure
    lengths = np.array([len(output.text.split()) for output in outputs], np.int64)
    expected = np.array([len(reference) for reference in _references(lists)], np.int64)
    wrong = lengths != expected[lists.groups.codes]
    if not wrong.any():
        return "hamming"
    if measure == "auto":
        return "edit"
    name = lists.qid[wrong.argmax()]
    raise DataError(
        "the Hamming loss needs candidates with as many tokens as the reference",
        field=f"list {str(name)!r}",
    )


def losses(lists: Lists, measure: str = "auto") -> NDArray[np.float64]:
    """The loss of each output: its own or, where there are none, by its reference.

    ``measure`` says how the latter is counted; see `loss_measure`.

    >>> from didyma.nbest.formats import of_outputs
    >>> losses(of_outputs(["x"], [["a b", "b"]], references=["a b"])).tolist()
    [0.0, 0.5]
    """
    chosen = loss_measure(lists, measure)
    if lists.losses is not None:
        return lists.losses
    loss, references = LOSSES[chosen], _references(lists)
    tokens = (output.text.split() for output in outputs_of(lists))
    values = [loss(references[q], words) for q, words in zip(lists.groups.codes.tolist(), tokens)]
    return np.array(values, dtype=np.float64)


def least_losses(lists: Lists) -> NDArray[np.float64]:
    """The least loss of each list, infinite where it is empty."""
    assert lists.losses is not None
    return lists.groups.least(lists.losses)


def label_best(lists: Lists) -> Lists:
    """The same lists with labels: 1 for the candidates of least loss of their list, else 0."""
    assert lists.losses is not None
    best: NDArray[np.bool_] = lists.losses == least_losses(lists)[lists.groups.codes]
    return replace(lists, labels=best.astype(np.float64))


def _references(lists: Lists) -> list[list[str]]:
    """Tokens of the reference of each list, which all lists with outputs must have."""
    references = []
    for input, name, size in zip(inputs_of(lists), lists.groups.names, lists.groups.sizes):
        if size and input.reference is None:
            raise DataError(
                "expected losses or a reference, found none", field=f"list {str(name)!r}"
            )
        references.append((input.reference or "").split())
    return references


def _edits(a: Sequence[str], b: Sequence[str]) -> int:
    """The edit distance, a column of the usual table at a time (Myers 1999).

    Bit i of ``up`` and ``down`` says whether entry i + 1 of the column exceeds entry i by one, or
    falls below it by one; ``right`` and ``left`` say the same from one column to the next.
    """
    if not a or not b:
        return len(a) + len(b)
    places: dict[str, int] = {}
    for place, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << place
    every, last = (1 << len(a)) - 1, 1 << len(a) - 1
    up, down, distance = every, 0, len(a)
    for token in b:
        match = places.get(token, 0)
        diagonal = ((match & up) + up ^ up) | match | down
        right = down | every & ~(diagonal | up)
        left = up & diagonal
        distance += bool(right & last) - bool(left & last)
        right = right << 1 | 1
        up = (left << 1 | ~(diagonal | right)) & every
        down = right & diagonal
    return distance


def deviation(data: Lists, values: NDArray[np.float64]) -> float:
    """The root mean square of values less the mean of their list; 1 if that is 0."""
    groups = data.groups
    means = np.add.reduceat(values, groups.starts[:-1]) / groups.sizes
    compared = groups.sizes[groups.codes] > 1
    centred = (values - means[groups.codes])[compared]
    root = float(np.sqrt(np.mean(centred**2))) if len(centred) else 0.0
    return root if root > TINY * float(np.abs(values).max()) else 1.0
