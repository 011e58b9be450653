"""`didyma rerank eval` and `didyma rerank compare`: rerankers on judged queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import inputs, options, rerankers
from didyma.cli.evaluate import names_of
from didyma.cli.groups import command
from didyma.cli.output import check_report, print_json, print_table, print_warning, waiting
from didyma.cli.rerankers import Embedding, Model, Trust
from didyma.errors import placed

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.report.model_comparison import ModelComparison

NOT_BETTER = 3  # exit code
MEASURES = "AP, RR, nDCG@10"


@command
def evaluate(
    *,
    model: Model,
    files: inputs.JudgedTextFiles,
    measures: options.Measures = MEASURES,
    every: Annotated[
        bool, options.flag("--all", "Count queries whose passages are all of one kind, too.")
    ] = False,
    per_query: Annotated[
        bool, options.flag("--per-query", "Show the values of each query too.")
    ] = False,
    html: options.Html = None,
    embedding: Embedding,
    trust: Trust = None,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Compare a reranker with the first stage, or with BM25, on judged queries.

    Queries whose passages are all relevant, or all irrelevant, have the same
    value in any order. They are left out, unless --all is given. The significance
    test is for the first measure. A warning says if the queries are far from
    those of training.

    [bold]Example[/bold]

    didyma rerank eval reranker.didyma.safetensors test.tsv --measures "AP, nDCG@10" --json
    """
    from didyma.report.model_comparison import RerankerComparison

    options.read_measures(measures)  # a misspelt name should not cost the time to read the data
    files.check()
    check_report(html, model, *files.paths)
    reranker = rerankers.load(model, embedding, trust)
    lists = files.read(reranker.language, reranker.schema_, embedding.encoder)
    with waiting("ranking"), placed(files.path):
        scores = reranker.predict(lists)
        compared = RerankerComparison.of(reranker, lists, scores, measures, every=every)
    drift = rerankers.warn_of_drift(reranker, lists)
    if html is not None:
        lead = f"{compared.table.n_queries} judged queries of {files.path.name}."
        compared.write(reranker, lists, html, lead)
    if as_json:
        document = {**compared.table.to_dict(), "left_out": compared.left_out}
        if per_query:
            document["queries"] = compared.by_query(lists)
        print_json({**document, "drift": None if drift is None else drift.to_dict()})
        return
    if per_query:
        typer.echo(compared.query_table(lists) + "\n")
    print_table(compared.table)
    if compared.left_out:
        typer.echo(f"left out: {compared.left_out} queries whose passages are all of one kind")


@command
def compare(
    *,
    old: Annotated[Path, options.argument("OLD", "The model that is there.")],
    new: Annotated[Path, options.argument("NEW", "The model that would replace it.")],
    files: inputs.JudgedTextFiles,
    measures: options.Measures = MEASURES,
    html: options.Html = None,
    if_better: Annotated[
        bool, options.flag("--if-better", "Exit with code 3 unless the new one is better.")
    ] = False,
    embedding: Embedding,
    trust: Trust = None,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Compare two rerankers on judged queries that neither was trained on.

    Means with 95 % intervals (paired bootstrap), Wilcoxon tests with Holm's
    correction, groups of queries, and with --json or --html each query with the
    documents that moved. The new one is better if the interval of the first
    measure's gain is above 0. Queries of training are left out.

    [bold]Examples[/bold]

    didyma rerank compare live.safetensors new.safetensors test.jsonl --html compared.html

    didyma rerank compare live.safetensors new.safetensors test.jsonl --if-better && deploy
    """
    options.read_measures(measures)
    files.check()
    check_report(html, old, new, *files.paths)
    before, after = (rerankers.load(path, embedding, trust) for path in (old, new))
    lists = files.read(after.language, after.schema_, embedding.encoder)
    names = list(names_of([old, new]).values())
    with placed(files.path):
        comparison = compared(before, after, lists, measures, (names[0], names[1]))
    if html is not None:
        comparison.write(html)
    if as_json:
        print_json(comparison.to_dict())
    else:
        typer.echo(comparison.text())
    if if_better and not comparison.better:
        raise typer.Exit(NOT_BETTER)


def compared(
    old: Any, new: Any, lists: Lists, measures: str, names: tuple[str, str]
) -> ModelComparison:
    """The comparison, with a warning where a file does not tell what it was trained on."""
    from didyma.report.model_comparison import ModelComparison

    for name, model in zip(names, (old, new)):
        if model.trained_on_ is None:
            print_warning(f"{name} does not tell its training queries: it may have seen these")
    with waiting("ranking"):
        return ModelComparison.of(old, new, lists, measures, names)
