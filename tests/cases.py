"""N-best lists case by case, as tests write them down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from didyma.data.lists import Lists
from didyma.nbest.formats import Input, Output, inputs_of, of_outputs, outputs_of

__all__ = ["Case", "Guess", "cases", "stack"]


class Guess(NamedTuple):
    """An output with all that is known about it."""

    text: str
    score: float | None = None
    loss: float | None = None
    features: Mapping[str, float] | None = None
    vector: Any = None
    other: Mapping[str, Any] = {}


class Case(NamedTuple):
    """An input with its outputs."""

    id: str
    input: str | None
    reference: str | None
    guesses: Sequence[Guess]
    vector: Any = None
    reference_vector: Any = None
    other: Mapping[str, Any] = {}


def stack(given: Iterable[Case]) -> Lists:
    """Cases as lists; all guesses have a score (a loss), or none."""
    found = list(given)
    every = [guess for case in found for guess in case.guesses]

    def column(name: str) -> Any:
        if all(getattr(guess, name) is None for guess in every):
            return None
        return [[getattr(guess, name) for guess in case.guesses] for case in found]

    return of_outputs(
        [Input(c.input, c.reference, c.vector, c.reference_vector, c.other) for c in found],
        [[Output(g.text, g.features, g.vector, g.other) for g in case.guesses] for case in found],
        scores=column("score"),
        losses=column("loss"),
        ids=[case.id for case in found],
    )


def cases(lists: Lists) -> list[Case]:
    """The inverse of `stack`."""
    found, outputs = [], outputs_of(lists)
    for number, (name, own) in enumerate(zip(lists.groups.names.tolist(), inputs_of(lists))):
        guesses = [
            Guess(
                outputs[row].text,
                None if lists.scores is None else float(lists.scores[row]),
                None if lists.losses is None else float(lists.losses[row]),
                *(outputs[row].features, outputs[row].vector, outputs[row].other),
            )
            for row in lists.groups.rows_of(number)
        ]
        known = (own.vector, own.reference_vector, own.other)
        found.append(Case(name, own.text, own.reference, guesses, *known))
    return found
