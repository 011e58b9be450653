"""`didyma predict` and `didyma rank`: a score for each row, and a TREC run by scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, is_stdout, read_model, scored, written
from didyma.cli.output import check_output, print_message

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

    again = not is_stdout(output)
    scored(ranker, data, columns, write, judged=False, by_query=False, again=again)


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

    again = not is_stdout(output)
    counts = scored(read_model(model), data, columns, write, judged=False, again=again)
    print_message("{}: {} documents for {} queries".format(output, *counts))
