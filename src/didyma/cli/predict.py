"""`didyma predict`: a score for each row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, is_stdout, read_model, scored, written
from didyma.cli.output import check_output

if TYPE_CHECKING:
    from didyma.data.lists import Lists

ModelFile = Annotated[Path, options.argument("MODEL", "A model that didyma fit has saved.")]


@command
def predict(
    *,
    model: ModelFile,
    data: options.Data,
    output: Annotated[
        Path | None,
        options.file(
            "Where the scores are written; - is stdout.", "--output", "-o", default="stdout"
        ),
    ] = None,
    columns: InputColumns,
) -> None:
    """Score each row of DATA: one number a line, in the order of the rows.

    Higher ranks first within a query. A table needs no labels. Files of any
    size are scored in constant memory.

    [bold]Example[/bold]

    didyma predict model.didyma.safetensors test.txt -o scores.txt
    """
    if not is_stdout(output):
        check_output(output, model, data, columns.group)
    ranker = read_model(model)

    def write(parts: Iterator[Lists]) -> None:
        with written(output) as file:
            for part in parts:
                file.writelines(f"{score!r}\n" for score in part.X[:, 0].tolist())

    scored(
        *(ranker, data, columns, write),
        judged=False,
        by_query=False,
        again=not is_stdout(output),
    )
