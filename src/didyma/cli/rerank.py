"""`didyma rerank fit/rank/eval/explain`: passages, best first, learned from judged texts."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import checkpointing, options, reranking, texts
from didyma.cli.interruption import end_if_interrupted
from didyma.cli.output import check_output, listed, print_json, print_table, say, waiting
from didyma.errors import DataError, placed
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.text.calibration import Threshold
    from didyma.text.text_reranker import TextReranker

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="""Rank passages for queries, learned from texts and judgements.

    [bold]Train, evaluate, apply:[/bold]

    didyma rerank fit train.tsv -o reranker.didyma.safetensors

    didyma rerank eval reranker.didyma.safetensors test.tsv

    didyma rerank rank reranker.didyma.safetensors test.tsv -o ranked.jsonl

    [bold]One query, passages from a file or a pipe, one a line:[/bold]

    didyma rerank rank reranker.didyma.safetensors --query "who wrote Emma?" passages.txt

    didyma rerank explain reranker.didyma.safetensors --query "who wrote Emma?" passages.txt

    Data are JSON lines, tables, lines of question, sentence and label, or
    folders as of BEIR, MS MARCO and TREC QA; all files may be compressed (.gz).""",
)

PRECISION = 0.9


class TextFeatureSet(StrEnum):
    """Features that a reranker may use."""

    auto = "auto"
    small = "small"
    extended = "extended"


Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma rerank fit has saved.")
]
Query = Annotated[
    str | None,
    typer.Option("--query", metavar="TEXT", help="One query, whose passages DATA has, one a line."),
]
TopK = Annotated[
    int | None,
    typer.Option("--top-k", min=1, metavar="K", help="Passages for each query, at most."),
]


@app.command()
def fit(
    context: typer.Context,
    data: texts.TrainTexts = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("reranker.didyma.safetensors"),
    features: Annotated[
        TextFeatureSet, typer.Option("--features", help="Set of features; auto cross-validates.")
    ] = TextFeatureSet.auto,
    vectors: reranking.Vectors = None,
    language: Annotated[
        str,
        typer.Option(
            "--language", metavar="NAME", help="Language of stop words and stems, auto, or none."
        ),
    ] = "auto",
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="Measure to choose settings by.",
            show_default="AP, or nDCG for a teacher's scores",
        ),
    ] = None,
    time_budget: Annotated[
        float,
        typer.Option(
            "--time-budget",
            min=0,
            metavar="SECONDS",
            help="Time after which nothing more is tried.",
        ),
    ] = 60.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Try only the small set of features and linear rankers.")
    ] = False,
    html: options.Html = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    part: texts.Part = None,
    queries: texts.Queries = None,
    passages: texts.Passages = None,
    qrels: texts.Qrels = None,
    run: texts.RunFile = None,
    first_stage: texts.FirstStage = None,
    depth: texts.Depth = 50,
    names: texts.Names = "",
    checkpoint: checkpointing.Folder = None,
    checkpoint_every: checkpointing.Every = 300,
    resume: checkpointing.Resume = False,
    as_json: options.Json = False,
) -> None:
    """Train a reranker on judged passages and save it.

    Features, scaling and C are chosen by cross-validation over queries. What
    was learned is kept only if held-out queries rank better than by the first
    stage's scores or, where there are none, by BM25; else the model keeps that
    order and says so. Ctrl-C ends the search and keeps the best so far (exit
    code 130). If the process dies, the same command with --resume goes on with
    what is yet to be tried and the time that is left.

    [bold]Examples[/bold]

    didyma rerank fit train.tsv -o reranker.didyma.safetensors

    didyma rerank fit scifact/ --part train --html report.html

    didyma rerank fit --queries topics.tsv --passages docs.tsv --qrels qrels.txt --run bm25.run

    didyma rerank fit --queries topics.tsv --qrels qrels.txt --first-stage docs.index

    didyma rerank fit scored.jsonl --names label=score --quick
    """
    if quick and features is TextFeatureSet.extended:
        raise typer.BadParameter("tries the small set only", param_hint="--quick")
    files = texts.TextFiles(data, part, queries, passages, qrels, run, depth, names, first_stage)
    check_output(output, *files.paths)
    check_output(html, *files.paths, output)
    if html is not None:
        from didyma.report.html import require_extra

        require_extra()
    if measure is not None:
        from didyma.metrics import parse

        measure = str(parse(measure))
    began = time.perf_counter()
    spoken = None if language == "none" else language
    table = reranking.read_vectors(vectors)
    lists = reranking.read_judged(files, spoken)

    from didyma import model as model_file
    from didyma.text.text_reranker import TextReranker

    with checkpointing.surviving(context, output, texts=lists):
        with reranking.searching() as callback:
            reranker = TextReranker(
                features=features.value,
                vectors=table,
                language=spoken,
                measure=measure,
                time_budget=time_budget,
                quick=quick,
                random_state=seed,
                callback=callback,
            ).fit(lists)
        counts = {"queries": len(lists.groups), "passages": len(lists)}
        train = {"file": str(files.path), **counts, "first_stage": lists.scores is not None}
        model_file.save(reranker, output, summary={"train": train, "verdict": str(reranker.gate_)})
    compared = reranking.OrdersCompared.of(reranker, lists, reranker.out_of_fold_)
    if html is not None:
        compared.write(html, reranker, lists)
    seconds = time.perf_counter() - began
    if as_json:
        print_json(
            {
                "model": str(output),
                "bytes": output.stat().st_size,
                "train": train,
                "gate": reranker.gate_.state(),
                "trials": reranker.trials_,
                "held_out": compared.table.to_dict(),
                "calibration": reranker.calibration_.to_dict(),
                "interrupted": reranker.interrupted_,
                "wall_seconds": seconds,
            }
        )
    else:
        print_table(compared.table)
        typer.echo(f"\n{reranker.gate_}\n")
        typer.echo(listed(_summary(reranker, output, seconds)))
    end_if_interrupted(reranker.interrupted_, "reranker")


@app.command()
def rank(
    model: Model,
    data: texts.Texts = None,
    query: Query = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="JSON lines (.jsonl), a table (.tsv), or else a TREC run.",
            show_default="a table on stdout",
        ),
    ] = None,
    top_k: TopK = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", min=0, max=1, help="Leave out passages whose score is below it."
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            min=0,
            max=1,
            help="As --threshold: the score above which this share of held-out passages was "
            "relevant.",
        ),
    ] = None,
    vectors: reranking.Vectors = None,
    jobs: options.Jobs = None,
    part: texts.Part = None,
    queries: texts.Queries = None,
    passages: texts.Passages = None,
    run: texts.RunFile = None,
    first_stage: texts.FirstStage = None,
    depth: texts.Depth = 50,
    names: texts.Names = "",
    as_json: options.Json = False,
) -> None:
    """Rank the passages of each query, best first.

    Scores are probabilities of relevance. With --query, each line of DATA is a
    passage: a text, or a JSON object with text, id and score (of the first
    stage). Without DATA they come from stdin. Labels are not looked at.

    [bold]Examples[/bold]

    didyma rerank rank reranker.didyma.safetensors test.tsv -o ranked.jsonl --top-k 10

    didyma rerank rank reranker.didyma.safetensors scifact/ --part test -o run.txt

    cat passages.txt | didyma rerank rank reranker.didyma.safetensors --query "who wrote Emma?"
    """
    if threshold is not None and precision is not None:
        raise typer.BadParameter("give one of them", param_hint="--threshold / --precision")
    if output is not None and as_json:
        raise typer.BadParameter("give one of them", param_hint="--output / --json")
    if query is not None:
        check_output(output, model, data)
        reranker = reranking.load(model, vectors)
        found = [reranking.rank_one(reranker, query, data)]
    else:
        files = texts.TextFiles(data, part, queries, passages, None, run, depth, names, first_stage)
        check_output(output, model, *files.paths)
        reranker = reranking.load(model, vectors)
        lists = files.read(reranker.language)
        with waiting("ranking"), placed(files.path):
            reranking.say_drift(reranker, lists)
            found = reranking.rank_all(reranker, lists)
    if precision is not None:
        least = reranker.calibration_.threshold(precision)
        threshold = least.score
        say(f"threshold {_meaning(least)}")
    kept = [ranking.cut(top_k, threshold) for ranking in found]

    from didyma.data import rankings

    if as_json:
        print_json({"queries": list(rankings.records(kept))})
    elif output is None:
        columns = rankings.COLUMNS if query is None else ("rank", "score", "docid", "passage")
        rankings.write_table(kept, sys.stdout, columns)
    else:
        rankings.write(kept, output)
    if empty := sum(not ranking.passages for ranking in kept):
        say(f"{empty} of {len(kept)} queries have no passage that reaches the threshold")
    if output is not None:
        n_passages = sum(len(ranking.passages) for ranking in kept)
        say(f"{output}: {n_passages} passages for {len(kept)} queries")


@app.command("eval")
def evaluate(
    model: Model,
    data: texts.Texts = None,
    measures: options.Measures = reranking.MEASURES,
    every: Annotated[
        bool,
        typer.Option("--all", help="Count queries whose passages are all of one kind, too."),
    ] = False,
    vectors: reranking.Vectors = None,
    jobs: options.Jobs = None,
    part: texts.Part = None,
    queries: texts.Queries = None,
    passages: texts.Passages = None,
    qrels: texts.Qrels = None,
    run: texts.RunFile = None,
    first_stage: texts.FirstStage = None,
    depth: texts.Depth = 50,
    names: texts.Names = "",
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
    from didyma.metrics import parse_all

    parse_all(measures)  # a misspelt name should not cost the time to read the data
    files = texts.TextFiles(data, part, queries, passages, qrels, run, depth, names, first_stage)
    reranker = reranking.load(model, vectors)
    lists = reranking.read_judged(files, reranker.language)
    with waiting("ranking"), placed(files.path):
        scores = reranker.predict(lists)
        compared = reranking.OrdersCompared.of(reranker, lists, scores, measures, every=every)
    drift = reranking.say_drift(reranker, lists)
    if as_json:
        found = {**compared.table.to_dict(), "left_out": compared.left_out}
        print_json({**found, "drift": drift.to_dict()})
        return
    print_table(compared.table)
    if compared.left_out:
        typer.echo(f"left out: {compared.left_out} queries whose passages are all of one kind")


@app.command()
def explain(
    model: Model,
    query: Annotated[str, typer.Option("--query", metavar="TEXT", help="The query.")],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="Its passages, one a line.", show_default="stdin"),
    ] = None,
    top_k: Annotated[
        int, typer.Option("--top-k", min=1, metavar="K", help="Explain the K best.")
    ] = 1,
    vectors: reranking.Vectors = None,
    as_json: options.Json = False,
) -> None:
    """Show why passages have their scores.

    What each feature adds to the raw score, and the passage with the words
    that matched the query in brackets.

    [bold]Example[/bold]

    didyma rerank explain reranker.didyma.safetensors --query "who wrote Emma?" passages.txt
    """
    from didyma.cli.explained import explained

    reranker = reranking.load(model, vectors)
    documents, scores = reranking.read_passages(reranker, data)
    ranked = reranker.rank(query, documents, top_k, scores)
    reasons = reranker.explain(query, documents, scores)
    found = [(own, reasons[own.index]) for own in ranked]
    if as_json:
        print_json(
            {
                "query": query,
                "passages": [
                    {"rank": place, "id": own.id, "text": own.text, **why.to_dict()}
                    for place, (own, why) in enumerate(found, 1)
                ],
            }
        )
        return
    for place, (own, why) in enumerate(found, 1):
        typer.echo(explained(place, own.text, why) + "\n" * (place < len(found)))


def _summary(reranker: TextReranker, output: Path, seconds: float) -> dict[str, str]:
    calibration = reranker.calibration_
    try:
        threshold = _meaning(calibration.threshold(PRECISION))
    except DataError as error:
        threshold = error.problem
    return {
        "ranks by": reranker.gate_.kept,
        "calibration": f"{calibration.kind}, expected error {decimal(calibration.error)}",
        "threshold": threshold,
        "saved to": f"{output}, {output.stat().st_size / 1e6:.2f} MB, after {seconds:.1f} s",
    }


def _meaning(least: Threshold) -> str:
    return (
        f"{least.score:.4g}: of held-out passages above it {least.precision:.0%} are relevant, and "
        f"{least.answered:.0%} of queries have one"
    )
