"""Options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "MEASURES",
    "Data",
    "Docid",
    "Group",
    "Html",
    "Jobs",
    "Json",
    "Label",
    "Measures",
    "Qid",
    "Seed",
    "read_Cs",
]

MEASURES = "AP, RR, P@1, nDCG@10"

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Judged results: LETOR, .csv, .tsv, .parquet, .jsonl, .npz or a .lists folder.",
    ),
]

TABLES = "Columns of a table (.csv, .tsv, .parquet, .jsonl)"

Label = Annotated[
    str, typer.Option("--label", metavar="NAME", rich_help_panel=TABLES, help="Relevance.")
]
Qid = Annotated[str, typer.Option("--qid", metavar="NAME", rich_help_panel=TABLES, help="Query.")]
Docid = Annotated[
    str | None,
    typer.Option(
        "--docid",
        metavar="NAME",
        rich_help_panel=TABLES,
        help="Document.",
        show_default="docid, if there is one",
    ),
]
Group = Annotated[
    Path | None,
    typer.Option(
        "--group",
        metavar="FILE",
        help="Number of rows of each query, one a line, for a LETOR file without qid. "
        "DATA.query and DATA.group are found without it.",
    ),
]
Measures = Annotated[
    str,
    typer.Option("--measures", metavar="NAMES", help="Measures by their ir-measures names."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Equal seeds give equal results.")]


def _limit(jobs: int | None) -> int | None:
    if jobs is not None:
        from didyma.execution import threads

        threads(jobs)
    return jobs


# It takes effect where it is read: a command need not look at it.
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, callback=_limit, help="Threads.", show_default="every core"),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a report: one page, without other files."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


def read_Cs(text: str) -> list[float]:
    """The values of --C, in ascending order."""
    try:
        values = sorted({float(value) for value in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(0 < value < math.inf for value in values):
        raise typer.BadParameter(
            f"expected positive numbers with commas between them, found {text!r}", param_hint="--C"
        )
    return values
