"""`didyma predict`: a score for each row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, read_data, read_model
from didyma.cli.output import check_output
from didyma.files import replace_when_done

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
            help="Where the scores are written.",
            show_default="stdout",
        ),
    ] = None,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
) -> None:
    """Score each row of DATA: one number a line, in the order of the rows.

    Higher ranks first within a query. A table needs no labels.

    [bold]Example[/bold]

    didyma predict model.didyma.safetensors test.txt -o scores.txt
    """
    check_output(output, model, data, group)
    ranker = read_model(model)
    rows = read_data(data, InputColumns(label, qid, docid, group), like=ranker, judged=False)
    lines = (f"{score!r}\n" for score in ranker.predict(rows).tolist())
    if output is None:
        sys.stdout.writelines(lines)
        return
    with replace_when_done(output) as file:
        file.writelines(lines)
