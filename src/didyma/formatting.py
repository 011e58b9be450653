"""Numbers as text, as tables and messages print them."""

from __future__ import annotations

import math


def decimal(value: float | None, *, signed: bool = False) -> str:
    """Four decimals without a leading zero; a dash for what is missing.

    >>> decimal(0.34167), decimal(1), decimal(-0.012, signed=True), decimal(None)
    ('.3417', '1.0000', '-.0120', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:+.4f}" if signed else f"{value:.4f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.99995 else text
