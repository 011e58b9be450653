"""`didyma rank`: a TREC run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, is_stdout, read_model, scored, written
from didyma.cli.output import check_output, print_message
from didyma.cli.predict import ModelFile

if TYPE_CHECKING:
    from didyma.data.lists import Lists


@command
def rank(
    *,
    model: ModelFile,
    data: options.Data,
    output: Annotated[
        Path,
        options.file("The run; .gz compresses it, - is stdout.", "--output", "-o"),
    ],
    tag: Annotated[str, options.text("NAME", "Name of the run, in its last column.")] = "didyma",
    depth: Annotated[
        int | None,
        options.number("Documents for each query, at most.", min=1, metavar="K", default="all"),
    ] = None,
    columns: InputColumns,
) -> None:
    """Rank the rows of each query of DATA and write a TREC run.

    Document ids are those of DATA (the comments of a LETOR file, the column
    docid of a table). A row without one is called QID-rowN, N being its number
    in the file, from 1. Rows with equal scores are ranked by descending
    document id, as trec_eval does. Files of any size are ranked in constant
    memory if the rows of each query stand together.

    [bold]Example[/bold]

    didyma rank model.didyma.safetensors test.txt -o run.txt.gz --depth 1000
    """
    if not is_stdout(output):
        check_output(output, model, data, columns.group)

    from didyma.data.trec import run_lines
    from didyma.metrics.ranking import best_rows, document_ids

    def write(parts: Iterator[Lists]) -> tuple[int, int]:
        n_rows = n_documents = n_queries = 0
        with written(output) as file:
            for part in parts:
                documents, scores = document_ids(part, data, n_rows), part.X[:, 0]
                n_rows += len(part)
                if depth is not None:
                    best = best_rows(part.groups, scores, documents, depth)
                    part, documents, scores = part.select(best), documents[best], scores[best]
                file.writelines(run_lines(part.qid, documents, scores, output, tag))
                n_documents += len(part)
                n_queries += len(part.groups)
        return n_documents, n_queries

    counts = scored(
        *(read_model(model), data, columns, write), judged=False, again=not is_stdout(output)
    )
    print_message("{}: {} documents for {} queries".format(output, *counts))
