"""`didyma eval` and `didyma compare`: measures of runs and models, alone and side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, is_model, read_model, scored
from didyma.cli.output import print_json, print_table, print_warning
from didyma.errors import DataError
from didyma.report.table import aligned, comparison
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.metrics import Evaluation
    from didyma.model import Model

EXTENSIONS = (".didyma", ".gz", ".run", ".safetensors", ".txt")


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
    options.read_measures(measures)  # a misspelt name should not cost the time to read the data
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
    import numpy as np

    from didyma.metrics import Evaluation, evaluate, parse_all
    from didyma.metrics.evaluation import warn_if_all_relevant

    named = parse_all(measures)

    def values(parts: Iterator[Lists]) -> Evaluation:
        evaluations, labels = [], []
        for part in parts:
            labels.append(part.y)
            evaluations.append(evaluate(part.X[:, 0], part.y, part.groups, named, docid=part.docid))
        warn_if_all_relevant(named, np.concatenate(labels))
        return Evaluation.joined(evaluations)

    return scored(model, path, columns, values)


def _text(evaluation: Evaluation, per_query: bool) -> str:
    means = {str(measure): decimal(evaluation.mean(measure)) for measure in evaluation.values}
    if not per_query:
        return aligned([*means.items(), ("queries", str(len(evaluation.queries)))])
    rows = [["query", *means]]
    for i, query in enumerate(evaluation.queries.tolist()):
        rows.append([str(query), *(decimal(values[i]) for values in evaluation.values.values())])
    return aligned([*rows, ["all", *means.values()]])


@command
def compare(
    *,
    systems: Annotated[
        list[Path], options.argument("MODEL|RUN", "Two or more runs, or two or more models.")
    ],
    qrels: Annotated[Path | None, options.file("Compare runs, by these TREC judgements.")] = None,
    data: Annotated[Path | None, options.file("Compare models, on these judged results.")] = None,
    measures: Annotated[
        str, options.text("NAMES", "Measures; the first is the one that is tested.")
    ] = options.MEASURES,
    baseline: Annotated[
        str | None,
        options.text(
            "NAME",
            "The system that others are compared with: a file, or its name in the table.",
            default="the first",
        ),
    ] = None,
    test: options.Test = "wilcoxon",
    holm: Annotated[
        bool, options.flag("--holm", "Correct p-values for the number of systems.")
    ] = False,
    latex: Annotated[
        bool, options.flag("--latex", "Print a LaTeX tabular (booktabs) instead.")
    ] = False,
    columns: InputColumns,
    as_json: options.Json = False,
) -> None:
    """Compare runs, or models, with a baseline: means, wins / losses / ties,
    p-values.

    [bold]Examples[/bold]

    didyma compare --qrels qrels.txt map.run roc.run bm25.run --baseline bm25

    didyma compare --data test.txt map.safetensors roc.safetensors --latex

    didyma compare --data test.jsonl live.safetensors new.safetensors --holm

    Rerankers of texts are compared on texts; didyma rerank compare tells more of
    two of them, and leaves out the queries that they were trained on.
    """
    if (qrels is None) == (data is None):
        raise typer.BadParameter("give one of them", param_hint="--qrels / --data")
    if len(systems) < 2:
        raise typer.BadParameter("give two or more to compare", param_hint="MODEL|RUN")
    options.at_most_one(latex=latex, json=as_json)

    tested, *_ = options.read_measures(measures)
    names = names_of(systems)
    chosen = None if baseline is None else names.get(Path(baseline), baseline)
    if chosen not in (None, *names.values()):
        expected = ", ".join(names.values())
        raise DataError(f"expected one of {expected}, found {chosen!r}", field="baseline")
    if qrels is not None:
        evaluations = _evaluate_runs(systems, qrels, measures)
    else:
        assert data is not None
        evaluations = _evaluate_models(systems, data, measures, columns)
    table = comparison(
        dict(zip(names.values(), evaluations)),
        measure=str(tested),
        baseline=chosen,
        test=test,
        correct=holm,
    )
    if as_json:
        print_json(table.to_dict())
    elif latex:
        typer.echo(table.latex())
    else:
        print_table(table)


def names_of(systems: list[Path], taken: Sequence[str] = ()) -> dict[Path, str]:
    """What a table calls each file: its name without extensions, or its path if that is taken."""
    for path, times in Counter(systems).items():
        if times > 1:
            raise DataError(f"given {times} times", path=path)
    short = {path: _short(path) for path in systems}
    shared = Counter([*short.values(), *taken])
    return {path: name if shared[name] == 1 else str(path) for path, name in short.items()}


def _short(path: Path) -> str:
    while path.suffix.lower() in EXTENSIONS:
        path = path.with_suffix("")
    return path.name


def _evaluate_runs(systems: list[Path], qrels: Path, measures: str) -> Iterator[Evaluation]:
    from didyma.data.trec import read_qrels, read_run
    from didyma.metrics import RunEvaluator

    judged = read_qrels(qrels)
    queries = [str(qid) for qid in dict.fromkeys(judged.qid.tolist())]
    evaluator, runs = RunEvaluator(judged, measures), [read_run(path) for path in systems]
    for path, run in zip(systems, runs):
        answered = set(map(str, run.qid.tolist()))
        if lacking := [query for query in queries if query not in answered]:
            shown = ", ".join(lacking[:5]) + (", …" if len(lacking) > 5 else "")
            print_warning(f"{path}: lacks {len(lacking)} judged queries, which count 0: {shown}")
    return map(evaluator, runs)


def _evaluate_models(
    systems: list[Path], data: Path, measures: str, columns: InputColumns
) -> Iterator[Evaluation]:
    from didyma.model import Model

    if Model.read(systems[0]).name in ("Cascade", "Reranker", "TextReranker"):
        return _evaluate_rerankers(systems, data, measures)
    models = [read_model(path) for path in systems]  # before work is done for any of them
    return (evaluate_model(model, data, columns, measures) for model in models)


def _evaluate_rerankers(systems: list[Path], data: Path, measures: str) -> Iterator[Evaluation]:
    """Values of rerankers of texts, without those of their options that only `rerank` takes."""
    from didyma.data.texts import reader as texts
    from didyma.report.model_comparison import unseen
    from didyma.text.reranker import load_reranker

    models = [load_reranker(path) for path in systems]
    for path, model in zip(systems, models):
        lists = texts.read(data, schema=model.schema_)
        if seen := int((~unseen(lists, model)).sum()):
            print_warning(f"{path}: {seen} of {len(lists.groups)} queries were in its training")
        yield model.evaluate(lists, measures)
