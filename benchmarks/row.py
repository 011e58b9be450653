"""One figure of a benchmark, the target it has to meet, and whether it does."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """A figure; without a target it informs only, and NaN stands for a peer that is absent."""

    name: str
    value: float
    unit: str
    target: str = ""
    ok: bool | None = None

    @classmethod
    def at_most(cls, name: str, value: float, unit: str, limit: float) -> Row:
        return cls(name, value, unit, f"≤ {limit:g}", value <= limit)

    @classmethod
    def at_least(cls, name: str, value: float, unit: str, limit: float) -> Row:
        return cls(name, value, unit, f"≥ {limit:g}", value >= limit)

    @classmethod
    def absent(cls, name: str) -> Row:
        return cls(name, math.nan, "")

    @property
    def figure(self) -> str:
        """The value as a reader wants it."""
        if math.isnan(self.value):
            return "absent"
        if self.unit in ("MAP", "nDCG@10"):
            return f"{self.value:.4f}"
        return f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"

    @property
    def verdict(self) -> str:
        return {True: "met", False: "missed", None: ""}[self.ok]
