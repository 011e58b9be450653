"""Why a passage has its score, drawn for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from didyma.cli.output import aligned

if TYPE_CHECKING:
    from didyma.rerank.explanation import PassageExplanation

__all__ = ["explained", "marked"]

SHOWN = 10  # features
WIDTH = 24  # characters of the longest bar


def explained(rank: int, text: str, why: PassageExplanation) -> str:
    """The scores, a bar for what each feature adds, and the passage with what matched."""
    shown, others = why.contributions[:SHOWN], why.contributions[SHOWN:]
    rest = sum(part.amount for part in others)
    longest = max(abs(amount) for amount in (*(part.amount for part in shown), rest))
    rows = [
        [
            part.name,
            "" if part.value is None else f"{part.value:.3g}",
            f"{part.amount:+.3f}",
            _bar(part.amount, longest),
        ]
        for part in shown
    ]
    if others:
        rows.append([f"{len(others)} others", "", f"{rest:+.3f}", _bar(rest, longest)])
    rows.append(["intercept", "", f"{why.intercept:+.3f}", ""])
    rows.append(["raw score", "", f"{why.raw:+.3f}", ""])
    table = aligned([[*row[:3], row[3].ljust(WIDTH)] for row in rows], indent="  ")
    passage = marked(text, [(span.start, span.stop) for span in why.spans])
    return f"{rank}. score {why.score:.3f}\n{table}\n  {passage}"


def marked(text: str, spans: list[tuple[int, int]]) -> str:
    """A text with brackets around some of its parts, which are given in order.

    >>> marked("Jane Austen wrote Emma.", [(12, 17), (18, 22)])
    'Jane Austen [wrote] [Emma].'
    """
    parts, last = [], 0
    for start, stop in spans:
        parts += [text[last:start], "[", text[start:stop], "]"]
        last = stop
    return "".join([*parts, text[last:]])


def _bar(amount: float, longest: float) -> str:
    length = round(WIDTH * abs(amount) / longest) if longest else 0
    return ("█" if amount > 0 else "░") * length
