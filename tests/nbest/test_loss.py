"""Losses of outputs against slow definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.nbest.loss import edit, hamming, label_best, least_losses, loss_measure, losses
from tests.cases import Case, Guess, stack


def slow_edits(a: list[str], b: list[str]) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(
        slow_edits(a[1:], b) + 1,
        slow_edits(a, b[1:]) + 1,
        slow_edits(a[1:], b[1:]) + (a[0] != b[0]),
    )


tokens = st.lists(st.sampled_from("abc"), max_size=6)


@given(tokens, tokens)
def test_edit_is_the_shortest_way(a: list[str], b: list[str]) -> None:
    assert edit(a, b) == slow_edits(a, b) / max(len(a), len(b), 1)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("ab"))))
def test_hamming_counts_differences(pairs: list[tuple[str, str]]) -> None:
    assert hamming([a for a, _ in pairs], [b for _, b in pairs]) == sum(a != b for a, b in pairs)


def test_losses_are_given_or_by_reference() -> None:
    given_ones = stack([Case("1", None, "a b", [Guess("x", loss=0.5), Guess("y", loss=0.0)])])
    assert loss_measure(given_ones) == "given"
    assert losses(given_ones).tolist() == [0.5, 0.0]
    equal = Case("2", None, "a b", [Guess("a c"), Guess("c d")])
    shorter = Case("3", None, "a b", [Guess("b")])
    empty = Case("4", None, None, [])
    assert loss_measure(stack([equal, empty])) == "hamming"
    assert losses(stack([equal, empty])).tolist() == [1.0, 2.0]
    assert loss_measure(stack([equal, shorter])) == "edit"
    assert losses(stack([equal, shorter])).tolist() == [0.5, 1.0, 0.5]
    assert losses(stack([equal]), "edit").tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("found", "measure", "problem"),
    [
        ([Case("1", None, None, [Guess("a")])], "auto", "list '1': expected losses or a ref"),
        ([Case("1", None, "a b", [Guess("a")])], "hamming", "list '1': the Hamming loss"),
        ([], "bleu", "loss: expected one of 'auto', 'hamming', 'edit', found 'bleu'"),
    ],
)
def test_losses_that_are_missing(found: list[Case], measure: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        losses(stack(found), measure)


def test_the_best_are_all_of_least_loss() -> None:
    some = Case("1", None, None, [Guess("x", loss=0.5), Guess("y", loss=0.5), Guess("z", loss=2.0)])
    none = Case("2", None, None, [])
    lists = stack([some, none])
    assert least_losses(lists).tolist() == [0.5, np.inf]
    assert label_best(lists).y.tolist() == [1.0, 1.0, 0.0]
