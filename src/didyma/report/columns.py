"""Plain text in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Rows of cells as columns, the first flush left and the others flush right.

    >>> print(aligned([["", "AP"], ["baseline", ".31"]]))
               AP
    baseline  .31
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        indent + "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]).rstrip()
        for first, *rest in rows
    )


def listed(values: Mapping[str, object], *, indent: str = "") -> str:
    """Names and values, one pair a line.

    >>> print(listed({"queries": 12, "saved to": "model"}))
    queries   12
    saved to  model
    """
    width = max(map(len, values))
    return "\n".join(f"{indent}{name:<{width}}  {value}" for name, value in values.items())
