"""`didyma rerank rank` and `didyma rerank explain`: passages, best first, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import inputs, options, rerankers
from didyma.cli.groups import command
from didyma.cli.output import check_output, print_json, print_message, waiting
from didyma.cli.rerankers import Embedding, Model, Trust
from didyma.cli.steps import AfterRanking
from didyma.errors import DataError, placed

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.ranking.ranked import PassageRanking
    from didyma.text.calibration import Calibration, Threshold
    from didyma.text.reranker import Reranker
    from didyma.text.steps import Step


@command
def rank(
    *,
    model: Model,
    files: inputs.TextFiles,
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
    embedding: Embedding,
    trust: Trust = None,
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
    inputs.check_query(query, "--query")
    if query is not None:
        check_output(output, model, files.data)
        reranker = rerankers.load(model, embedding, trust)
        ranked = [_rank_one(reranker, query, files.data, then)]
    else:
        files.check()
        check_output(output, model, *files.paths)
        reranker = rerankers.load(model, embedding, trust)
        fields = dict.fromkeys(field for step in then for field in step.fields)
        schema = reranker.schema_.with_categories(fields, "for a step after ranking")
        lists = files.read(reranker.language, schema, embedding.encoder)
        with waiting("ranking"), placed(files.path):
            rerankers.warn_of_drift(reranker, lists)
            ranked = _rank_all(reranker, lists, then)
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


@command
def explain(
    *,
    model: Model,
    query: Annotated[str, options.text("TEXT", "The query.")],
    data: Annotated[
        Path | None, options.argument("DATA", "Its passages, one a line.", default="stdin")
    ] = None,
    top_k: Annotated[int, options.number("Explain the K best.", min=1, metavar="K")] = 1,
    embedding: Embedding,
    trust: Trust = None,
    as_json: options.Json = False,
) -> None:
    """Show why passages have their scores.

    What each feature adds to the raw score, and the passage with the words
    that matched the query in brackets.

    [bold]Example[/bold]

    didyma rerank explain reranker.didyma.safetensors --query "who wrote Emma?" passages.txt
    """
    from didyma.report.explanations import explained

    inputs.check_query(query, "--query")
    reranker = rerankers.load(model, embedding, trust)
    documents, scores = _read_passages(reranker, data)
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


def _rank_one(
    reranker: Reranker, query: str, data: Path | None, then: Sequence[Step] = ()
) -> PassageRanking:
    """The passages of a file, or of stdin, ranked for one query."""
    from didyma.ranking.ranked import PassageRanking

    documents, scores = _read_passages(reranker, data)
    ranked = reranker.rank(query, documents, scores=scores, then=then)
    for note in ranked.notes:
        print_message(note)
    return PassageRanking("1", query, ranked)


def _read_passages(reranker: Reranker, data: Path | None) -> tuple[list[Any], list[float] | None]:
    """Passages of one query, and their scores if the reranker was trained with such."""
    documents, scores = inputs.read_passages(data)
    return documents, scores if reranker.uses_scores else None


def _rank_all(reranker: Reranker, lists: Lists, then: Sequence[Step] = ()) -> list[PassageRanking]:
    """The passages of each query, ranked."""
    import numpy as np

    from didyma.data.field_kinds import date_of
    from didyma.ranking.ranked import PassageRanking

    assert lists.queries is not None
    groups, rankings, notes = lists.groups, [], list[str]()
    schema = None if lists.attributes is None else lists.attributes.schema
    dates = [] if schema is None else [one.name for one in schema.fields if one.kind == "date"]
    for n, query in enumerate(lists.queries):
        rows = groups.rows_of(n)
        documents = [
            {**lists.document(row), "id": None if lists.docid is None else str(lists.docid[row])}
            for row in rows.tolist()
        ]
        for document in documents if then else ():  # they were read as days
            document |= {name: date_of(document[name]) for name in dates if name in document}
        first_stage = lists.scores if reranker.uses_scores else None
        scores = None if first_stage is None else first_stage[rows]
        question: Any = query
        if lists.query_vectors is not None and not np.isnan(lists.query_vectors[n]).any():
            question = {"text": query, "vector": lists.query_vectors[n]}
        ranked = reranker.rank(question, documents, scores=scores, then=then)
        rankings.append(PassageRanking(str(groups.names[n]), query, ranked))
        notes += [f"query {groups.names[n]}: {note}" for note in ranked.notes]
    if notes:
        print_message(notes[0] + (f" (and {len(notes) - 1} such notes)" if len(notes) > 1 else ""))
    return rankings


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
        print_message(f"threshold {meaning(least)}")
        return least.score


def meaning(least: Threshold) -> str:
    """What a threshold was worth on held-out queries."""
    return (
        f"{least.score:.4g}: of held-out passages above it {least.precision:.0%} are relevant, and "
        f"{least.answered:.0%} of queries have one"
    )
