"""`didyma rerank`: passages, best first, learned from judged texts."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import comparing, options, reranking, teaching, texts
from didyma.cli.checkpointing import Checkpointing
from didyma.cli.groups import command, group
from didyma.cli.interruption import end_if_interrupted
from didyma.cli.output import check_output, print_json, print_message, print_table, waiting
from didyma.cli.steps import AfterRanking
from didyma.errors import DataError, placed
from didyma.report.table import listed
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.text.calibration import Calibration, Threshold
    from didyma.text.text_reranker import TextReranker

app = group(
    """Rank passages for queries, learned from texts and judgements.

    [bold]Train, evaluate, apply:[/bold]

    didyma rerank fit train.tsv -o reranker.didyma.safetensors

    didyma rerank eval reranker.didyma.safetensors test.tsv

    didyma rerank rank reranker.didyma.safetensors test.tsv -o ranked.jsonl

    [bold]One query, passages from a file or a pipe, one a line:[/bold]

    didyma rerank rank reranker.didyma.safetensors --query "who wrote Emma?" passages.txt

    didyma rerank explain reranker.didyma.safetensors --query "who wrote Emma?" passages.txt

    Data are JSON lines, tables, lines of question, sentence and label, or
    folders as of BEIR, MS MARCO and TREC QA; all files may be compressed (.gz)."""
)

MEASURES = "AP, RR, nDCG@10"
PRECISION = 0.9


@app.command()
@command
def fit(
    *,
    files: texts.TrainTextFiles,
    output: options.Output = Path("reranker.didyma.safetensors"),
    parameters: Annotated[dict[str, Any], reranking.PARAMETERS],
    embedding: reranking.Embedding,
    increasing: Annotated[
        str, options.text("FEATURES", "Signals with which scores must not fall.")
    ] = "",
    decreasing: Annotated[
        str, options.text("FEATURES", "Signals with which scores must not rise.")
    ] = "",
    html: options.Html = None,
    against: comparing.Against = None,
    test: Annotated[
        Path | None, options.file("Judged queries to compare on, with --against.")
    ] = None,
    if_better: Annotated[
        bool,
        options.flag(
            "--if-better", "With --against: exit with code 3 unless the new one is better."
        ),
    ] = False,
    jobs: options.Jobs = None,
    checkpointing: Checkpointing,
    as_json: options.Json = False,
) -> None:
    """Train a reranker on judged passages and save it.

    A passage is a text, or has further fields: texts (title, tags), signals
    (any numbers: clicks, age, scores of other searches; categories) and a vector.
    A table says what each field was read as; --fields, --signals and --ignore say
    otherwise. Each of several runs (--run, given again) is a signal.

    Features, scaling and C are chosen by cross-validation over queries. What
    was learned is kept only if held-out queries rank better than by the best
    order that needs no training (each first stage, each signal, BM25, the
    encoder, the sum of z-scores, reciprocal rank fusion); else the model keeps
    that order and says so. Without any labels nothing is learned: the model is the
    sum of z-scores of first stages, BM25 and encoder. Ctrl-C ends the search and
    keeps the best so far (exit code 130). If the process dies, the same command
    with --resume goes on with what is yet to be tried and the time that is left.

    [bold]Examples[/bold]

    didyma rerank fit train.tsv -o reranker.didyma.safetensors

    didyma rerank fit scifact/ --part train --html report.html

    didyma rerank fit --queries topics.tsv --passages docs.tsv --qrels qrels.txt --run bm25.run

    didyma rerank fit --queries topics.tsv --qrels qrels.txt --first-stage docs.index

    didyma rerank fit scifact/ --part train --run bm25.run --run dense.run

    didyma rerank fit shop.jsonl --fields title,tags --signals brand --increasing clicks

    didyma rerank fit scored.jsonl --names label=score --quick

    didyma rerank fit judgements/ --against live.safetensors --if-better -o new.safetensors
    """
    if against is None and (if_better or test is not None):
        raise typer.BadParameter("needs --against", param_hint="--if-better / --test")
    reranking.check_parameters(parameters, embedding)
    files.check()
    check_output(output, *files.paths, against, test)
    check_output(html, *files.paths, output)
    live = None if against is None else reranking.load(against, embedding)
    if html is not None:
        from didyma.report.html import require_extra

        require_extra()
    began = time.perf_counter()
    parameters |= embedding.parameters
    parameters["increasing"] = texts.names_in(increasing)
    parameters["decreasing"] = texts.names_in(decreasing)
    lists = files.read(parameters["language"], encoder=embedding.encoder)
    if lists.labels is None:
        wanted = {name: parameters[name] for name in ("measure", "increasing", "decreasing")}
        for name, value in {**wanted, "html": html}.items():
            if value:
                raise typer.BadParameter(
                    "needs labels, of which there are none", param_hint=f"--{name}"
                )
        print_message(f"{files.path}: without labels nothing is learned (--names tells their name)")
    promotion = comparing.Promotion.of(live, lists, test, parameters["language"])
    lists = promotion.train

    from didyma import model as model_file
    from didyma.report.rerankers import RerankerComparison
    from didyma.text.text_reranker import TextReranker

    with checkpointing.saving(output, texts=lists):
        with reranking.searching() as callbacks:
            reranker = TextReranker(**parameters, **callbacks).fit(lists)
        counts = {"queries": len(lists.groups), "passages": len(lists)}
        train = {"file": str(files.path), **counts, "first_stage": lists.scores is not None}
        summary = {"train": train, "verdict": str(reranker.gate_)}
        model_file.save(reranker, output, summary=summary, parent=live)
    promoted = promotion.compare(reranker, parameters["measure"], against, output)
    judged = lists.labels is not None
    compared = RerankerComparison.of(reranker, lists, reranker.out_of_fold_) if judged else None
    if html is not None and compared is not None:
        compared.write(reranker, lists, html)
    seconds = time.perf_counter() - began
    fields = reranker.schema_.table()
    if as_json:
        print_json(
            {
                "model": str(output),
                "bytes": output.stat().st_size,
                "train": train,
                "schema": [dict(zip(("field", "role", "because"), row)) for row in fields],
                "gate": reranker.gate_.to_dict(),
                "trials": reranker.trials_,
                "held_out": None if compared is None else compared.table.to_dict(),
                "calibration": {
                    **reranker.calibration_.to_dict(),
                    "compared": reranker.calibration_report(),
                }
                if judged
                else None,
                "version": model_file.version_of(output).to_dict(),
                "against": None if promoted is None else promoted.to_dict(),
                "interrupted": reranker.interrupted_,
                "wall_seconds": seconds,
            }
        )
    else:
        if compared is not None:
            print_table(compared.table)
        typer.echo(f"\n{reranker.gate_}\n")
        if compared is not None:
            typer.echo(listed(_opponents(reranker)) + "\n")
        typer.echo(listed(_summary(reranker, output, seconds, judged=judged)))
        if promoted is not None:
            typer.echo(f"\n{promoted.text()}")
    end_if_interrupted(reranker.interrupted_, "reranker")
    if if_better and promoted is not None and not promoted.better:
        raise typer.Exit(comparing.NOT_BETTER)


@app.command()
@command
def rank(
    *,
    model: reranking.Model,
    files: texts.TextFiles,
    query: Annotated[
        str | None, options.text("TEXT", "One query, whose passages DATA has, one a line.")
    ] = None,
    output: Annotated[
        Path | None,
        options.file(options.RANKINGS, "--output", "-o", default="a table on stdout"),
    ] = None,
    top_k: Annotated[
        int | None, options.number("Passages for each query, at most.", min=1, metavar="K")
    ] = None,
    threshold: Annotated[
        float | None,
        options.number("Leave out passages whose probability is below it.", min=0, max=1),
    ] = None,
    precision: Annotated[
        float | None,
        options.number(
            "As --threshold: the least that guarantees this share of relevant answers, on average "
            "over queries that have any; if held-out queries are too few for that, a message says "
            "so, and it is the one above which this share of held-out passages was relevant.",
            min=0,
            max=1,
        ),
    ] = None,
    level: Annotated[float, options.number("Confidence of --precision.", min=0.5, max=0.999)] = 0.9,
    after: AfterRanking,
    embedding: reranking.Embedding,
    trust: reranking.Trust = None,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Rank the passages of each query, best first.

    Scores tell the order of one query's passages; the probability that a
    passage is relevant depends on no other, and means the same for every query.
    With --query, each line of DATA is a passage: a text, or a JSON object with
    text, id and score (of the first stage). Without DATA they come from stdin.
    Labels are not looked at. Steps after ranking change the order alone.

    [bold]Examples[/bold]

    didyma rerank rank reranker.didyma.safetensors test.tsv -o ranked.jsonl --top-k 10

    didyma rerank rank reranker.didyma.safetensors scifact/ --part test -o run.txt

    didyma rerank rank reranker.didyma.safetensors news.jsonl --recency date=30d --diversity 0.3

    cat passages.txt | didyma rerank rank reranker.didyma.safetensors --query "who wrote Emma?"
    """
    options.at_most_one(threshold=threshold, precision=precision)
    options.at_most_one(output=output, json=as_json)
    then = after.steps
    if query is not None:
        check_output(output, model, files.data)
        reranker = reranking.load(model, embedding, trust)
        ranked = [reranking.rank_one(reranker, query, files.data, then)]
    else:
        files.check()
        check_output(output, model, *files.paths)
        reranker = reranking.load(model, embedding, trust)
        fields = dict.fromkeys(field for step in then for field in step.fields)
        schema = reranker.schema_.with_categories(fields, "for a step after ranking")
        lists = files.read(reranker.language, schema, embedding.encoder)
        with waiting("ranking"), placed(files.path):
            reranking.warn_of_drift(reranker, lists)
            ranked = reranking.rank_all(reranker, lists, then)
    if precision is not None:
        if reranker.calibration_ is None:
            raise DataError("the scores of this model are not calibrated", field="precision")
        threshold = _threshold(reranker.calibration_, precision, level)
    shown = [ranking.cut(top_k, threshold) for ranking in ranked]

    from didyma.ranking import ranked as rankings

    if as_json:
        print_json({"queries": list(rankings.records(shown))})
    elif output is None:
        columns = (
            rankings.COLUMNS
            if query is None
            else ("rank", "score", "probability", "docid", "passage")
        )
        rankings.write_table(shown, sys.stdout, columns)
    else:
        rankings.write(shown, output)
    if empty := sum(not ranking.passages for ranking in shown):
        print_message(f"{empty} of {len(shown)} queries have no passage that reaches the threshold")
    if output is not None:
        n_passages = sum(len(ranking.passages) for ranking in shown)
        print_message(f"{output}: {n_passages} passages for {len(shown)} queries")


@app.command("eval")
@command
def evaluate(
    *,
    model: reranking.Model,
    files: texts.JudgedTextFiles,
    measures: options.Measures = MEASURES,
    every: Annotated[
        bool, options.flag("--all", "Count queries whose passages are all of one kind, too.")
    ] = False,
    per_query: Annotated[
        bool, options.flag("--per-query", "Show the values of each query too.")
    ] = False,
    html: options.Html = None,
    embedding: reranking.Embedding,
    trust: reranking.Trust = None,
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
    from didyma.metrics import parse_all
    from didyma.report.rerankers import RerankerComparison

    parse_all(measures)  # a misspelt name should not cost the time to read the data
    files.check()
    check_output(html, model, *files.paths)
    if html is not None:
        from didyma.report.html import require_extra

        require_extra()
    reranker = reranking.load(model, embedding, trust)
    lists = files.read(reranker.language, reranker.schema_, embedding.encoder)
    with waiting("ranking"), placed(files.path):
        scores = reranker.predict(lists)
        compared = RerankerComparison.of(reranker, lists, scores, measures, every=every)
    drift = reranking.warn_of_drift(reranker, lists)
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


@app.command()
@command
def explain(
    *,
    model: reranking.Model,
    query: Annotated[str, options.text("TEXT", "The query.")],
    data: Annotated[
        Path | None, options.argument("DATA", "Its passages, one a line.", default="stdin")
    ] = None,
    top_k: Annotated[int, options.number("Explain the K best.", min=1, metavar="K")] = 1,
    embedding: reranking.Embedding,
    trust: reranking.Trust = None,
    as_json: options.Json = False,
) -> None:
    """Show why passages have their scores.

    What each feature adds to the raw score, and the passage with the words
    that matched the query in brackets.

    [bold]Example[/bold]

    didyma rerank explain reranker.didyma.safetensors --query "who wrote Emma?" passages.txt
    """
    from didyma.report.explanations import explained

    reranker = reranking.load(model, embedding, trust)
    documents, scores = reranking.read_passages(reranker, data)
    ranked = reranker.rank(query, documents, top_k, scores, explain=True)
    for note in ranked.notes:
        print_message(note)
    passages = [(one, one.explanation) for one in ranked if one.explanation is not None]
    if as_json:
        print_json(
            {
                "query": query,
                "passages": [
                    {"rank": place, "id": passage.id, "text": passage.text, **why.to_dict()}
                    for place, (passage, why) in enumerate(passages, 1)
                ],
            }
        )
        return
    for place, (passage, why) in enumerate(passages, 1):
        typer.echo(explained(place, passage.text, why) + "\n" * (place < len(passages)))


def _opponents(reranker: TextReranker) -> dict[str, str]:
    """Orders that need no training, the best first, with their means on held-out queries."""
    orders = sorted(reranker.gate_.opponents, key=lambda order: -order.value)
    return {order.name: f"{reranker.gate_.measure} {decimal(order.value)}" for order in orders}


app.command()(comparing.compare)
app.command()(teaching.distil)
app.command()(teaching.cascade)


def _summary(
    reranker: TextReranker, output: Path, seconds: float, *, judged: bool
) -> dict[str, str]:
    saved = f"{output}, {output.stat().st_size / 1e6:.2f} MB, after {seconds:.1f} s"
    if not judged:
        return {"ranks by": reranker.gate_.kept, "saved to": saved}
    calibration = reranker.calibration_
    errors = calibration.held_out[-1:]
    brier = f", Brier score {decimal(errors[0].brier)}" if errors else ""
    try:
        threshold = _meaning(calibration.threshold(PRECISION))
    except DataError as error:
        threshold = error.problem
    return {
        "ranks by": reranker.gate_.kept,
        "calibration": f"{calibration.kind}, expected error {decimal(calibration.error)}{brier}",
        "threshold": threshold,
        "saved to": saved,
    }


def _threshold(calibration: Calibration, precision: float, level: float) -> float:
    """The certified threshold or, with a message why not, the one that was read off."""
    try:
        if calibration.guarantees is None:
            raise DataError("the model's file has no guarantees, as it is of before 0.3")
        certified = calibration.guarantees.precision(precision, level)
        print_message(f"threshold {certified}")
        return certified.score
    except DataError as error:
        least = calibration.threshold(precision)
        print_message(f"no guarantee: {error.problem}")
        print_message(f"threshold {_meaning(least)}")
        return least.score


def _meaning(least: Threshold) -> str:
    return (
        f"{least.score:.4g}: of held-out passages above it {least.precision:.0%} are relevant, and "
        f"{least.answered:.0%} of queries have one"
    )
