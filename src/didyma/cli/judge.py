"""`didyma judge`: judgements in a folder, how far judges agree, how many are enough, which next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from didyma.cli import inputs, options, rerankers
from didyma.cli.groups import command, group
from didyma.cli.output import check_output, print_json, print_message, waiting
from didyma.errors import DataError, placed

if TYPE_CHECKING:
    from didyma.judgements import Judgement

app = group(
    """Keep judgements of many judges in a folder, and learn from them.

    [bold]Collect, look, learn:[/bold]

    didyma judge import judgements/ ratings.csv --who anna

    didyma judge agree judgements/

    didyma rerank fit judgements/ -o reranker.didyma.safetensors

    [bold]How many are enough, and which next:[/bold]

    didyma judge enough new.safetensors test.jsonl --against live.safetensors --gain .02

    didyma judge next new.safetensors candidates.jsonl --judgements judgements/ -o work.jsonl

    Of one judge the latest judgement of a query and document counts, of several
    judges the lower median, weighted if that is asked for."""
)

Format = Literal["qrels", "csv", "quepid", "argilla", "texts"]
Store = Annotated[Path, options.argument("STORE", "A folder of judgements.")]
Weights = Annotated[
    str,
    options.text(
        "JUDGE=WEIGHT,…",
        "Weights of judges, 1 for others; agreement for that of each with the others.",
        "--weights",
    ),
]


def _format(verb: str) -> object:
    return options.text(
        "NAME",
        f"Format to {verb}: qrels, csv, quepid, argilla, or texts (the JSON lines of rerank fit, "
        "the page and clicks).",
        "--format",
        default="by the file's name",
    )


@app.command("import")
@command
def import_(
    *,
    store: Store,
    files: Annotated[list[Path], options.argument("FILE", "Files to read.")],
    format: Annotated[Format | None, _format("read")] = None,
    who: Annotated[
        str, options.text("NAME", "The judge of judgements that name none.", default="the file's")
    ] = "",
    queries: Annotated[
        Path | None, options.file("Texts of queries by id (.tsv, .jsonl), where there are ids.")
    ] = None,
    passages: Annotated[
        Path | None, options.file("Texts of documents by id (.tsv, .jsonl), where there are ids.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Add the judgements of files to a folder, all or none.

    Several processes may add at the same time. Labels of a large model, or of
    a teacher, are those of one more judge: give it a name.

    [bold]Examples[/bold]

    didyma judge import judgements/ qrels.txt --queries topics.tsv --who trec

    didyma judge import judgements/ quepid.csv argilla.json clicks.jsonl
    """
    from didyma.data.texts import by_id
    from didyma.judgements import JudgementStore, read_judgements

    query_texts, texts = (
        None if path is None else by_id.read(path) for path in (queries, passages)
    )
    read = [
        judgement
        for path in files
        for judgement in read_judgements(
            path, format, who=who or path.name.split(".")[0], queries=query_texts, passages=texts
        )
    ]
    count = JudgementStore(store).add(read)
    if as_json:
        print_json({"store": str(store), "added": count})
    else:
        print_message(f"{store}: {count} judgements added")


@app.command()
@command
def export(
    *,
    store: Store,
    output: Annotated[Path, options.argument("FILE", "The file to write.")],
    format: Annotated[Format | None, _format("write")] = None,
    weights: Weights = "",
) -> None:
    """Write judgements for other tools, or to train on.

    csv and argilla have those of each judge, the others one label for each pair.

    [bold]Examples[/bold]

    didyma judge export judgements/ train.jsonl --weights llm=.5

    didyma judge export judgements/ ratings.csv --format quepid
    """
    from didyma.judgements import JudgementStore, format_of, merge, write_judgements

    check_output(output, store / "judgements.jsonl")
    said = list(JudgementStore.open(store))
    if (format or format_of(output)) not in ("csv", "argilla"):
        said = merge(said, read_weights(weights, said))
    with placed(store):
        count = write_judgements(said, output, format)
    print_message(f"{output}: {count} judgements")


@app.command()
@command
def agree(*, store: Store, as_json: options.Json = False) -> None:
    """How far judges agree: Krippendorff's alpha, Fleiss' and Cohen's kappa.

    The weight of a judge is its ordinal kappa with the lower median of all
    others, or 1 if fewer than 20 pairs are common; --weights agreement takes it.

    [bold]Example[/bold]

    didyma judge agree judgements/
    """
    from didyma.judgements import JudgementStore, agreement

    agreed = agreement(JudgementStore.open(store))
    if as_json:
        print_json(agreed.to_dict())
    else:
        typer.echo(agreed.text())


@app.command()
@command
def enough(
    *,
    model: rerankers.Model,
    files: inputs.JudgedTextFiles,
    against: Annotated[
        Path | None,
        options.file("Another model to compare with.", default="the order before reranking"),
    ] = None,
    gain: Annotated[float, options.number("The gain to be shown.", min=1e-6, max=1)] = 0.02,
    power: Annotated[float, options.number("The chance to show it.", min=0.01, max=0.999)] = 0.8,
    measure: Annotated[str, options.text("NAME", "The measure.")] = "AP",
    embedding: rerankers.Embedding,
    trust: rerankers.Trust = None,
    as_json: options.Json = False,
) -> None:
    """How many judged queries would show a gain, by those at hand.

    What counts is how much the gain differs from query to query: the power of
    a paired t-test at the level .05.

    [bold]Example[/bold]

    didyma judge enough new.safetensors test.jsonl --against live.safetensors --gain .02
    """
    from didyma.metrics import evaluate, queries_needed

    files.check()
    reranker = rerankers.load(model, embedding, trust)
    lists = files.read(reranker.language, reranker.schema_, embedding.encoder)
    with waiting("ranking"), placed(files.path):
        other = None if against is None else rerankers.load(against, embedding, trust)
        before = reranker.baseline(lists)[1] if other is None else other.predict(lists)
        a, b = (
            evaluate(scores, lists.y, lists.groups, measure, docid=lists.docid)[measure]
            for scores in (reranker.predict(lists), before)
        )
        needed = queries_needed(a - b, gain, power)
    if as_json:
        print_json({"measure": measure, "difference": float((a - b).mean()), **needed.to_dict()})
    else:
        typer.echo(f"{measure} {(a - b).mean():+.4f} on {len(a)} queries; {needed}")


@app.command("next")
@command
def next_(
    *,
    model: rerankers.Model,
    files: inputs.TextFiles,
    against: Annotated[
        Path | None,
        options.file("Another model whose order counts.", default="the order before reranking"),
    ] = None,
    judgements: Annotated[
        Path | None, options.text("FOLDER", "Judgements that there are: these are left out.")
    ] = None,
    top: Annotated[int, options.number("How many to list.", min=1, metavar="K")] = 50,
    output: Annotated[
        Path | None,
        options.file(
            "JSON lines with query, passages and why.", "--output", "-o", default="stdout"
        ),
    ] = None,
    embedding: rerankers.Embedding,
    trust: rerankers.Trust = None,
    as_json: options.Json = False,
) -> None:
    """Which documents to judge next: uncertain tops, disagreeing orders, drift.

    First come documents whose label would change most about the model's own
    DCG, or its difference from the other order. The page takes the file.

    [bold]Example[/bold]

    didyma judge next new.safetensors candidates.jsonl --judgements judgements/ --top 20
    """
    import json

    from didyma.files import replace_when_done
    from didyma.judgements import JudgementStore, work_list

    files.check()
    check_output(output, model, *files.paths)
    reranker = rerankers.load(model, embedding, trust)
    lists = files.read(reranker.language, reranker.schema_, embedding.encoder)
    there: Iterable[Judgement] = () if judgements is None else JudgementStore.open(judgements)
    pairs = {(judgement.query, judgement.document) for judgement in there}
    with waiting("ranking"), placed(files.path):
        other = None if against is None else rerankers.load(against, embedding, trust)
        items = work_list(reranker, lists, other, pairs, top)
    if as_json:
        print_json({"work": [item.to_dict() for item in items]})
    elif output is None:
        for item in items:
            typer.echo(f"{item.value:.3f}\t{item.query}\t{item.document:.60}\t{item.why}")
    else:
        with replace_when_done(output) as file:
            for item in items:
                file.write(json.dumps(item.to_dict(), ensure_ascii=False) + "\n")
        print_message(f"{output}: {len(items)} documents to judge")


def read_weights(text: str, said: list[Judgement]) -> dict[str, float]:
    """The weights of judges that were asked for."""
    if text.strip() == "agreement":
        from didyma.judgements import agreement

        return agreement(said).weights
    weights = {}
    for part in inputs.names_in(text):
        who, equals, number = part.rpartition("=")
        try:
            weights[who] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            problem = f"expected agreement, or JUDGE=WEIGHT, found {part!r}"
            raise typer.BadParameter(problem, param_hint="--weights")
    judges = {judgement.who for judgement in said}
    for who in weights:
        if who not in judges:
            raise DataError(
                f"expected one of {', '.join(sorted(judges))}, found {who!r}", field="weights"
            )
    return weights
