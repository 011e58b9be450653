"""Why a passage has its score, drawn for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from didyma.report.table import aligned
from didyma.values import shown_value

if TYPE_CHECKING:
    from didyma.ranking.explanation import PassageExplanation

SHOWN = 10  # features
WIDTH = 24  # characters of the longest bar
LONGEST = 500  # characters of a text that is shown


def explained(rank: int, text: str, why: PassageExplanation) -> str:
    """The scores, a bar for what each feature adds, and the passage with what matched."""
    passage = marked(text, [(span.start, span.stop) for span in why.spans])
    return f"{rank}. score {why.score:.3f}\n{reasons(why)}\n  {passage}"


def reasons(why: PassageExplanation) -> str:
    """A bar for what each feature adds to the raw score."""
    shown, others = why.contributions[:SHOWN], why.contributions[SHOWN:]
    rest = sum(part.amount for part in others)
    longest = max(abs(amount) for amount in (*(part.amount for part in shown), rest))
    rows = [
        [
            part.words or part.name,
            shown_value(part.value),
            f"{part.amount:+.3f}",
            _bar(part.amount, longest),
        ]
        for part in shown
    ]
    if others:
        rows.append([f"{len(others)} others", "", f"{rest:+.3f}", _bar(rest, longest)])
    rows.append(["intercept", "", f"{why.intercept:+.3f}", ""])
    rows.append(["raw score", "", f"{why.raw:+.3f}", ""])
    return aligned([[*row[:3], row[3].ljust(WIDTH)] for row in rows], indent="  ")


def marked(text: str, spans: list[tuple[int, int]], mark: tuple[str, str] = ("[", "]")) -> str:
    """A text with marks around some of its parts, which are given in order.

    >>> marked("Jane Austen wrote Emma.", [(12, 17), (18, 22)])
    'Jane Austen [wrote] [Emma].'
    """
    parts, last = [], 0
    for start, stop in spans:
        parts += [text[last:start], mark[0], text[start:stop], mark[1]]
        last = stop
    return "".join([*parts, text[last:]])


def printable(text: str) -> str:
    """A text of the same length on one line, whose characters no terminal obeys.

    >>> printable("a\\n\\x1b[31mred")
    'a ·[31mred'
    """
    return "".join(" " if sign.isspace() else sign if sign.isprintable() else "·" for sign in text)


def shortened(
    text: str, spans: list[tuple[int, int]], longest: int = LONGEST
) -> tuple[str, list[tuple[int, int]]]:
    """The part of a text that begins a little before the first span, and the spans in it.

    >>> shortened("It is late. Jane Austen wrote Emma.", [(24, 29)], 20)
    ('… Austen wrote Emma.', [(9, 14)])
    """
    if len(text) <= longest:
        return text, spans
    first = spans[0][0] if spans else 0
    start = max(0, min(first - longest // 4, len(text) - longest))
    if start:  # at a word, where there are spaces between words
        start = text.find(" ", start, first) + 1 or start
    before = "… " if start else ""
    after = " …" if start + longest < len(text) else ""
    shift = len(before) - start
    shifted = [(a + shift, b + shift) for a, b in spans if b <= start + longest]
    return f"{before}{text[start : start + longest]}{after}", shifted


def _bar(amount: float, longest: float) -> str:
    length = round(WIDTH * abs(amount) / longest) if longest else 0
    return ("█" if amount > 0 else "░") * length
