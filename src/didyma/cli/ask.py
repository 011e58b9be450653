"""`didyma ask`: passages that answer a query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options, reranking, texts
from didyma.cli.explained import marked, printable, reasons, shortened
from didyma.cli.indexing import Language, open_or_make
from didyma.cli.output import check_output, explain, print_json, say
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.text.found import FoundPassage
    from didyma.text.index import PassageIndex
    from didyma.text.text_reranker import TextReranker

__all__ = ["ask"]

BOLD = ("\x1b[1m", "\x1b[0m")
PROMPT = "ask: "


def ask(
    index: Annotated[
        Path,
        typer.Argument(
            metavar="INDEX",
            help="A folder that didyma index has made, or texts as it takes them: these are "
            "indexed first, in this user's cache, and again when they change.",
            show_default=False,
        ),
    ],
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY", help="What is asked.", show_default="asked for, or read from stdin"
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", metavar="FILE", help="A reranker of didyma rerank fit.", show_default="BM25"
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Passages for each query, at most.")] = 10,
    candidates: Annotated[
        int,
        typer.Option("--candidates", min=1, help="Passages of BM25 that the reranker looks at."),
    ] = 100,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Several queries: one a line, or id and text (.tsv, .jsonl).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="JSON lines (.jsonl), a table (.tsv), or else a TREC run.",
            show_default="stdout, for people",
        ),
    ] = None,
    with_reasons: Annotated[
        bool, typer.Option("--explain", help="Show what each feature adds to a score.")
    ] = False,
    vectors: reranking.Vectors = None,
    language: Language = "auto",
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Find the passages that answer a query, in an index or in any texts.

    BM25 finds candidates, and a reranker puts them in order; without one the
    order is BM25's. Words that match the query are marked. Without a QUERY,
    queries are asked for one after the other, or read from stdin, one a line.

    [bold]Examples[/bold]

    didyma ask notes/ "how do I install it?"

    didyma ask notes.index "how do I install it?" --model reranker.didyma.safetensors --explain

    didyma ask passages.index --queries topics.tsv -k 100 -o run.txt
    """
    if query is not None and queries is not None:
        raise typer.BadParameter("give one of them", param_hint="QUERY / --queries")
    if output is not None and as_json:
        raise typer.BadParameter("give one of them", param_hint="--output / --json")
    if with_reasons and model is None:
        raise typer.BadParameter("BM25 has no reasons: give a --model", param_hint="--explain")
    check_output(output, model, queries)
    reranker = None if model is None else reranking.load(model, vectors)
    asking = _Asking(open_or_make(index, language), reranker, k, candidates, with_reasons)
    if model is None:
        say("without a model: in the order of BM25")
    if query is None and queries is None and output is None and not as_json and sys.stdin.isatty():
        asking.converse()
        return
    asked = [("1", query)] if query is not None else list(_read_queries(queries))
    if output is not None:
        from didyma.data import rankings
        from didyma.data.rankings import PassageRanking

        found = [PassageRanking(name, text, asking.found(text)) for name, text in asked]
        rankings.write(found, output)
        say(f"{output}: {sum(len(own.passages) for own in found)} passages, {len(found)} queries")
    elif as_json:
        answers = [{"qid": name, **asking.answer(text)} for name, text in asked]
        print_json(asking.answer(query) if query is not None else {"queries": answers})
    else:
        for name, text in asked:
            asking.show(text, None if query is not None else f"{name}: {text}")


class _Asking:
    """An index, perhaps a reranker, and how much is wanted of them."""

    def __init__(
        self,
        index: PassageIndex,
        reranker: TextReranker | None,
        k: int,
        candidates: int,
        with_reasons: bool,
    ) -> None:
        self.index, self.reranker, self.with_reasons = index, reranker, with_reasons
        self.k, self.candidates = k, candidates

    def found(self, query: str) -> list[FoundPassage]:
        return self.index.search(
            query,
            self.k,
            reranker=self.reranker,
            candidates=self.candidates,
            explain=self.with_reasons,
        )

    def answer(self, query: str) -> dict[str, Any]:
        """What is found, ready for JSON."""
        found = self.found(query)
        spans = self.index.spans(query, [own.text for own in found])
        results = []
        for rank, (own, matched) in enumerate(zip(found, spans), 1):
            result = {
                "rank": rank,
                "score": own.score,
                "id": own.id,
                "text": own.text,
                "metadata": own.metadata,
                "first_stage": {"score": own.first_score, "rank": own.first_rank},
                "spans": [[span.start, span.stop] for span in matched],
            }
            if own.explanation is not None:
                result["explanation"] = own.explanation.to_dict()
            results.append(result)
        return {"query": query, "results": results}

    def show(self, query: str, title: str | None = None) -> None:
        """What is found, for people."""
        found = self.found(query)
        if title is not None:
            typer.echo(printable(title))
        if not found:
            typer.echo("no passage has a word of it")
        spans = self.index.spans(query, [own.text for own in found])
        mark = BOLD if sys.stdout.isatty() else ("[", "]")
        for rank, (own, matched) in enumerate(zip(found, spans), 1):
            text, places = shortened(own.text, [(span.start, span.stop) for span in matched])
            first = f"BM25 {own.first_score:.2f}, rank {own.first_rank}"
            typer.echo(f"{rank}. score {own.score:.3f}   {printable(own.id)}   {first}")
            if own.explanation is not None:
                typer.echo(reasons(own.explanation))
            typer.echo(f"   {marked(printable(text), places, mark)}")

    def converse(self) -> None:
        """Ask for queries until there are no more."""
        say("one query a line; Ctrl-D ends")
        while True:
            try:
                query = input(PROMPT).strip()
            except EOFError:
                say("")
                return
            try:
                if query:
                    self.show(query)
            except DataError as error:  # of this query: the next may do
                say(f"error: {explain(error)}")


def _read_queries(path: Path | None) -> Iterator[tuple[str, str]]:
    """Id and text of each query; lines without ids are numbered."""
    from didyma.files import format_suffix

    if path is not None and format_suffix(path) in (".tsv", ".jsonl", ".json"):
        from didyma.data.texts import by_id

        yield from by_id.read(path).items()
        return
    path, lines = texts.lines_of(path)
    asked = [line.strip() for line in lines if line.strip()]
    if not asked:
        raise DataError("expected queries, one a line, found none", path=path)
    yield from ((str(number), line) for number, line in enumerate(asked, 1))
