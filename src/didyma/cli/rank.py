"""`didyma rank`: a TREC run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, read_model
from didyma.cli.output import check_output, say
from didyma.cli.predict import ModelFile
from didyma.cli.scored import is_stdout, scored, written
from didyma.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from didyma.data.lists import Groups, Lists

__all__ = ["rank"]


def rank(
    model: ModelFile,
    data: options.Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The run; .gz compresses it, - is stdout."
        ),
    ],
    tag: Annotated[
        str, typer.Option("--tag", metavar="NAME", help="Name of the run, in its last column.")
    ] = "didyma",
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            min=1,
            metavar="K",
            help="Documents for each query, at most.",
            show_default="all",
        ),
    ] = None,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
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
        check_output(output, model, data, group)

    from didyma.data.trec import run_lines

    def write(parts: Iterator[Lists]) -> tuple[int, int]:
        n_rows = n_documents = n_queries = 0
        with written(output) as file:
            for part in parts:
                documents, scores = _document_ids(part, data, n_rows), part.X[:, 0]
                n_rows += len(part)
                if depth is not None:
                    kept = _best(part.groups, scores, documents, depth)
                    part, documents, scores = part.select(kept), documents[kept], scores[kept]
                file.writelines(run_lines(part.qid, documents, scores, output, tag))
                n_documents += len(part)
                n_queries += len(part.groups)
        return n_documents, n_queries

    columns = InputColumns(label, qid, docid, group)
    found = scored(
        *(read_model(model), data, columns, write), judged=False, again=not is_stdout(output)
    )
    say("{}: {} documents for {} queries".format(output, *found))


def _best(
    groups: Groups, scores: NDArray[Any], documents: NDArray[Any], depth: int
) -> NDArray[Any]:
    """The first rows of each query in its ranking."""
    from didyma.metrics.ranking import order, tie_break

    kept = order(scores, groups, tie_break(groups, documents))
    return kept[_places(groups.sizes) < depth]


def _places(sizes: NDArray[Any]) -> NDArray[Any]:
    """0, 1, 2, … within each group of the given sizes."""
    import numpy as np

    ends = np.cumsum(sizes)
    return np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)


def _document_ids(rows: Lists, path: Path, before: int) -> NDArray[Any]:
    import numpy as np

    from didyma.data.text_columns import distinct, text_array

    given = [""] * len(rows) if rows.docid is None else rows.docid.astype(str).tolist()
    ids = text_array(
        [
            docid or f"{qid}-row{row}"
            for row, (qid, docid) in enumerate(zip(rows.qid.tolist(), given), before + 1)
        ]
    )
    number, first = distinct(rows.qid.astype(str), ids)
    if len(first) < len(ids):
        again = int(np.flatnonzero(first[number] < np.arange(len(ids)))[0])
        raise DataError(
            f"expected each document once a query, found {str(ids[again])!r} again for query "
            f"{rows.qid[again]} in row {before + again + 1}",
            path=path,
            field="docid",
        )
    return ids
