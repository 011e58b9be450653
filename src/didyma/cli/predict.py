"""`didyma predict`: a score for each row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, read_model
from didyma.cli.output import check_output
from didyma.cli.scored import is_stdout, scored, written

if TYPE_CHECKING:
    from didyma.data.lists import Lists

__all__ = ["ModelFile", "predict"]

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma fit has saved.")
]


def predict(
    model: ModelFile,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the scores are written; - is stdout.",
            show_default="stdout",
        ),
    ] = None,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
) -> None:
    """Score each row of DATA: one number a line, in the order of the rows.

    Higher ranks first within a query. A table needs no labels. Files of any
    size are scored in constant memory.

    [bold]Example[/bold]

    didyma predict model.didyma.safetensors test.txt -o scores.txt
    """
    if not is_stdout(output):
        check_output(output, model, data, group)
    ranker = read_model(model)

    def write(parts: Iterator[Lists]) -> None:
        with written(output) as file:
            for part in parts:
                file.writelines(f"{score!r}\n" for score in part.X[:, 0].tolist())

    scored(
        *(ranker, data, InputColumns(label, qid, docid, group), write),
        judged=False,
        by_query=False,
        again=not is_stdout(output),
    )
