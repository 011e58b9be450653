"""`didyma export`: a model for another engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, read_data
from didyma.cli.output import check_output, print_message

Format = Literal[
    "onnx",
    "elasticsearch",
    "elasticsearch-native",
    "solr",
    "vespa",
    "json",
    "lightgbm",
    "xgboost",
]


@command
def export(
    *,
    model: Annotated[
        Path, options.argument("MODEL", "A linear or additive ranker, or a reranker.")
    ],
    to: Annotated[
        Format,
        typer.Option(
            help="Who reads the file: elasticsearch is the plug-in, of OpenSearch too; "
            "elasticsearch-native needs none, but an Enterprise licence."
        ),
    ],
    output: Annotated[Path, options.file("Where the model is written.", "--output", "-o")],
    data: Annotated[
        Path | None,
        options.file("Rows to compare scores of, in place of rows made from what the model knows."),
    ] = None,
    columns: InputColumns,
) -> None:
    """Write a model for another engine: ONNX, a search engine, JavaScript, trees.

    First the same rows are scored by the model and by its exported form. If the
    scores differ by more than rounding, nothing is written.

    Only models fitted with --bins can be written as trees (elasticsearch-native,
    lightgbm, xgboost).
    Linear models whose scaler clips, as that of a reranker does, can be written
    for onnx, vespa and json only.

    [bold]Examples[/bold]

    didyma export model.didyma.safetensors --to onnx -o model.onnx

    didyma export model.didyma.safetensors --to elasticsearch -o model.json --data dev.txt
    """
    check_output(output, model, data, columns.group)

    from didyma.errors import placed
    from didyma.exports.export import export as write
    from didyma.exports.export import ranker_of
    from didyma.model import Model

    loaded, rows = Model.read(model), None
    if data is not None:
        ranker, _ = ranker_of(loaded)
        rows = read_data(data, columns, like=ranker, judged=False)
    with placed(model):
        exported = write(loaded, output, to, rows)
    for note in exported.notes:
        print_message(note)
    print_message(f"{output}: a model for {to}; {exported.parity}")
