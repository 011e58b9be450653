"""`didyma eval`: measures of a run or of a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, is_model, read_model, scored
from didyma.cli.output import print_json
from didyma.report.table import aligned
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.metrics import Evaluation
    from didyma.model import Model


@command
def evaluate(
    *,
    system: Annotated[Path, options.argument("MODEL|RUN", "A saved model, or a TREC run.")],
    truth: Annotated[
        Path, options.argument("DATA|QRELS", "Data for a model, TREC judgements for a run.")
    ],
    measures: options.Measures = options.MEASURES,
    per_query: Annotated[
        bool, options.flag("--per-query", "Show the values of each query too.")
    ] = False,
    columns: InputColumns,
    as_json: options.Json = False,
) -> None:
    """Evaluate a run by judgements, or a model by judged results.

    A query without a relevant document counts 0, as does one that a run lacks.
    Rows with equal scores are ranked by descending document id, as trec_eval
    does.

    [bold]Examples[/bold]

    didyma eval model.didyma.safetensors test.txt --measures "AP, nDCG@10"

    didyma eval run.txt qrels.txt --per-query --json
    """
    from didyma.metrics import parse_all

    parse_all(measures)  # a misspelt name should not cost the time to read the data
    if is_model(system):
        evaluation = evaluate_model(read_model(system), truth, columns, measures)
    else:
        from didyma.data.trec import read_qrels, read_run
        from didyma.metrics import evaluate_run

        evaluation = evaluate_run(read_run(system), read_qrels(truth), measures)
    if as_json:
        document = evaluation.to_dict()
        if not per_query:
            del document["queries"]
        print_json({"n_queries": len(evaluation.queries), **document})
    else:
        typer.echo(_text(evaluation, per_query))


def evaluate_model(model: Model, path: Path, columns: InputColumns, measures: str) -> Evaluation:
    """Values of a model for each query of a file, of which a block is read at a time."""
    from didyma.metrics import Evaluation, evaluate

    def values(parts: Iterator[Lists]) -> Evaluation:
        return Evaluation.joined(
            [
                evaluate(part.X[:, 0], part.y, part.groups, measures, docid=part.docid)
                for part in parts
            ]
        )

    return scored(model, path, columns, values)


def _text(evaluation: Evaluation, per_query: bool) -> str:
    means = {str(measure): decimal(evaluation.mean(measure)) for measure in evaluation.values}
    if not per_query:
        return aligned([*means.items(), ("queries", str(len(evaluation.queries)))])
    rows = [["query", *means]]
    for i, query in enumerate(evaluation.queries.tolist()):
        rows.append([str(query), *(decimal(values[i]) for values in evaluation.values.values())])
    return aligned([*rows, ["all", *means.values()]])
