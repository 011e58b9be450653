"""Options for steps after ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from didyma.cli import options

if TYPE_CHECKING:
    from didyma.text.steps import Step


@dataclass(frozen=True)
class AfterRanking:
    """Steps after ranking; none unless asked for."""

    PANEL: ClassVar[str] = "After ranking"

    diversity: Annotated[
        float | None,
        options.number(
            "Put documents later that resemble better ones, with this weight of similarity against "
            "relevance.",
            min=0,
            max=1,
            metavar="WEIGHT",
        ),
    ] = None
    diversity_by: Annotated[
        str | None,
        options.text(
            "NAME",
            "What makes documents similar: words, or a field with vectors or equal values.",
            default="the field vector if all documents have one, else words",
        ),
    ] = None
    recency: Annotated[
        str | None,
        options.text(
            "FIELD=AGE",
            "Lower documents by their age: at AGE (12h, 30d, 2w, 1y) by a quarter, later by half "
            "at most; FIELD=AGE:WEIGHT by another weight than 0.5.",
        ),
    ] = None
    boost: Annotated[
        list[str] | None,
        options.text(
            "FIELD=VALUE:AMOUNT",
            "Raise documents whose FIELD is VALUE by AMOUNT: 0.2 is a fifth; may be given again.",
        ),
    ] = None

    @property
    def steps(self) -> list[Step]:
        """The steps in their order: recency, boosts, diversity."""
        from didyma.text.steps import Boost, Diversity, Recency

        steps: list[Step] = []
        if self.recency is not None:
            field, age, weight = _parts(self.recency, "--recency", "FIELD=AGE:WEIGHT", "0.5")
            with options.refused("--recency"):
                steps.append(Recency(field, age, weight))
        for boost in self.boost or ():
            field, value, amount = _parts(boost, "--boost", "FIELD=VALUE:AMOUNT")
            with options.refused("--boost"):
                steps.append(Boost(field, value, amount))
        if self.diversity:
            steps.append(Diversity(self.diversity, self.diversity_by))
        elif self.diversity_by is not None:
            raise typer.BadParameter("needs --diversity", param_hint="--diversity-by")
        return steps


def _parts(text: str, flag: str, form: str, default: str | None = None) -> tuple[str, str, float]:
    """A field, what it is compared with, and a number."""
    field, _, rest = text.partition("=")
    value, _, number = rest.rpartition(":")
    if default is not None and ":" not in rest:
        value, number = rest, default
    try:
        if field and value:
            return field, value, float(number)
    except ValueError:
        pass
    raise typer.BadParameter(f"expected {form}, found {text!r:.80}", param_hint=flag)
