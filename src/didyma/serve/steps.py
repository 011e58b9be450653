"""Steps after ranking, as requests ask for them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.errors import DataError
from didyma.ranking.ranked import Ranked
from didyma.text.steps import Boost, Diversity, Recency, Step

MOST = 16  # steps of a request


class DiversityBody(Struct, tag="diversity", tag_field="step"):
    """Documents that resemble better ones come later."""

    weight: float
    by: str | None = None


class RecencyBody(Struct, tag="recency", tag_field="step"):
    """Documents lose by their age."""

    field: str
    half_life: str
    weight: float = 0.5


class BoostBody(Struct, tag="boost", tag_field="step"):
    """Documents whose field has a value gain, or lose."""

    field: str
    value: str | float | bool
    amount: float


Then: TypeAlias = Annotated[
    list[DiversityBody | RecencyBody | BoostBody],
    msgspec.Meta(
        max_length=MOST,
        description="Steps after ranking, diversity last; unless given, those of the server.",
    ),
]


def steps_of(then: list[DiversityBody | RecencyBody | BoostBody] | None) -> list[Step] | None:
    """Steps that a request asks for; None if it asks for those of the server."""
    return None if then is None else [_step(n, body) for n, body in enumerate(then)]


def _step(n: int, body: DiversityBody | RecencyBody | BoostBody) -> Step:
    try:
        if isinstance(body, DiversityBody):
            return Diversity(body.weight, body.by)
        if isinstance(body, RecencyBody):
            return Recency(body.field, body.half_life, body.weight)
        return Boost(body.field, body.value, body.amount)
    except DataError as error:
        raise DataError(error.problem, field=f"then {n}, {error.field}") from None


def effects_of(one: Ranked) -> list[dict[str, Any]] | UnsetType:
    """What steps did to a document, for JSON."""
    return [effect._asdict() for effect in one.steps] or UNSET
