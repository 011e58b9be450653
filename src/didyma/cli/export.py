"""`didyma export`: a model for another engine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, read_data
from didyma.cli.output import check_output, say

__all__ = ["export"]


class Format(StrEnum):
    """Whose model files are written."""

    onnx = "onnx"
    elasticsearch = "elasticsearch"
    solr = "solr"
    vespa = "vespa"
    json = "json"
    lightgbm = "lightgbm"
    xgboost = "xgboost"


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A linear or additive ranker, or a reranker.")
    ],
    to: Annotated[
        Format, typer.Option("--to", help="Who reads the file; OpenSearch as Elasticsearch.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is written.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Rows to compare scores of, in place of rows made from what the model knows.",
        ),
    ] = None,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
) -> None:
    """Write a model for another engine: ONNX, a search engine, JavaScript, trees.

    First the same rows are scored by the model and by its exported form. If the
    scores differ by more than rounding, nothing is written.

    Only models fitted with --bins can be written as trees (lightgbm, xgboost).
    Linear models whose scaler clips, as that of a reranker does, can be written
    for onnx, vespa and json only.

    [bold]Examples[/bold]

    didyma export model.didyma.safetensors --to onnx -o model.onnx

    didyma export model.didyma.safetensors --to elasticsearch -o model.json --data dev.txt
    """
    check_output(output, model, data, group)

    from didyma.errors import placed
    from didyma.exports.export import export as write
    from didyma.exports.export import ranker_of
    from didyma.model import Model

    given, rows = Model.read(model), None
    if data is not None:
        ranker, _ = ranker_of(given)
        rows = read_data(data, InputColumns(label, qid, docid, group), like=ranker, judged=False)
    with placed(model):
        exported = write(given, output, to.value, rows)
    for note in exported.notes:
        say(note)
    say(f"{output}: a model for {to.value}; {exported.parity}")
