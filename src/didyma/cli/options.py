"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from didyma.errors import DataError
from didyma.values import GREATEST_SEED

if TYPE_CHECKING:
    from didyma.metrics.measures import Measure

__all__ = [
    "MEASURES",
    "Data",
    "Html",
    "Jobs",
    "Json",
    "Language",
    "Measures",
    "Output",
    "PairedTest",
    "Seed",
    "Test",
    "argument",
    "at_most_one",
    "file",
    "flag",
    "language_of",
    "number",
    "read_Cs",
    "read_measure",
    "read_measures",
    "refused",
    "text",
]

MEASURES = "AP, RR, P@1, nDCG@10"


def argument(metavar: str, help: str, *, default: str | bool = True) -> Any:
    """What a command is given without a flag."""
    return typer.Argument(metavar=metavar, help=help, show_default=default)


def text(
    metavar: str, help: str, *flags: str, default: str | None = None, panel: str | None = None
) -> Any:
    """An option whose value the metavar describes; ``default`` says what its absence means."""
    return typer.Option(
        *flags,
        metavar=metavar,
        help=help,
        show_default=True if default is None else default,
        rich_help_panel=panel,
    )


def file(help: str, *flags: str, default: str | None = None, panel: str | None = None) -> Any:
    """An option whose value is a file."""
    return text("FILE", help, *flags, default=default, panel=panel)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help, rich_help_panel=panel)


def number(
    help: str,
    *flags: str,
    min: float | None = None,
    max: float | None = None,
    metavar: str | None = None,
    default: str | None = None,
    panel: str | None = None,
) -> Any:
    """An option whose value is a number within bounds."""
    return typer.Option(
        *flags,
        help=help,
        min=min,
        max=max,
        metavar=metavar,
        show_default=True if default is None else default,
        rich_help_panel=panel,
    )


def _limit(jobs: int | None) -> int | None:
    if jobs is not None:
        from didyma.execution import threads

        threads(jobs)
    return jobs


RANKINGS = "JSON lines (.jsonl), a table (.tsv), or else a TREC run."
DATA = "Judged results: LETOR, .csv, .tsv, .parquet, .jsonl, .npz or a .lists folder."

Data = Annotated[Path, argument("DATA", DATA)]
Output = Annotated[Path, file("Where the model is saved.", "--output", "-o")]
Measures = Annotated[str, text("NAMES", "Measures by their ir-measures names.")]
Seed = Annotated[int, number("Equal seeds give equal results.", min=0, max=GREATEST_SEED)]
# It takes effect where it is read: a command need not look at it.
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, callback=_limit, help="Threads.", show_default="every core"),
]
PairedTest = Literal["wilcoxon", "t-test", "randomisation"]
Test = Annotated[PairedTest, typer.Option(help="Two-tailed paired test.")]
Html = Annotated[Path | None, file("Write a report: one page, without other files.")]
Json = Annotated[bool, flag("--json", "Print one JSON document instead.")]
Language = Annotated[str, text("NAME", "Language of stop words and stems, auto, or none.")]


@contextmanager
def refused(flag: str) -> Iterator[None]:
    """What is wrong with values in this block is wrong with an option."""
    try:
        yield
    except DataError as error:
        is_named = error.field is not None and flag == f"--{error.field.replace('_', '-')}"
        problem = error.problem if is_named else str(error)
        raise typer.BadParameter(problem, param_hint=flag) from None


def read_measures(names: str) -> tuple[Measure, ...]:
    """What --measures names, before the data are read."""
    from didyma.metrics import parse_all

    with refused("--measures"):
        return parse_all(names)


def read_measure(name: str) -> str:
    """The full name of what --measure names."""
    from didyma.metrics import parse

    with refused("--measure"):
        return str(parse(name))


def language_of(language: str) -> str | None:
    """The language that an option names."""
    return None if language == "none" else language


def at_most_one(**given: Any) -> None:
    """Refuse options of which more than one was given; others are None or False."""
    names = [name for name, value in given.items() if value is not None and value is not False]
    if len(names) > 1:
        flags = " / ".join(name if name.isupper() else f"--{name}" for name in given)
        raise typer.BadParameter("give one of them", param_hint=flags)


def read_Cs(text: str, dev: Path | Sequence[Path] | None, name: str = "C") -> list[float]:
    """The values of --C, in ascending order; to choose among several, there must be a --dev."""
    try:
        values = sorted({float(value) for value in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(0 < value < math.inf for value in values):
        raise typer.BadParameter(
            f"expected positive numbers with commas between them, found {text!r}",
            param_hint=f"--{name}",
        )
    if len(values) > 1 and not dev:
        raise typer.BadParameter(
            f"several values of {name} need --dev, to choose by", param_hint=f"--{name}"
        )
    return values
