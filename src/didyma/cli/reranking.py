"""What `didyma rerank` does between reading texts and showing what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import texts
from didyma.cli.output import say, say_warning, terminal
from didyma.cli.progress import progress_bars
from didyma.errors import DataError
from didyma.formatting import decimal
from didyma.report.table import comparison

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.data.lists import Lists
    from didyma.data.rankings import PassageRanking
    from didyma.metrics import Evaluation
    from didyma.report.table import ComparisonTable
    from didyma.text.drift import Drift
    from didyma.text.selection import Tried
    from didyma.text.text_reranker import TextReranker

__all__ = [
    "MEASURES",
    "OrdersCompared",
    "Vectors",
    "load",
    "rank_all",
    "rank_one",
    "read_judged",
    "read_passages",
    "read_vectors",
    "say_drift",
    "searching",
]

MEASURES = "AP, RR, nDCG@10"
LEARNED = "reranker"

Vectors = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="FILE",
        help="Word vectors in the text format of word2vec or GloVe, or wordllama for those of the "
        "package of that name.",
    ),
]


def load(path: Path, vectors: str | None) -> TextReranker:
    """A saved reranker, with the word vectors that it was trained with."""
    from didyma.text.text_reranker import TextReranker

    reranker = TextReranker.load(path)
    if vectors is not None:
        reranker.attach(read_vectors(vectors))
    return reranker


def read_vectors(given: str | None) -> Any:
    """The table of a file, or the name of one that is known."""
    if given is None or (given == "wordllama" and not Path(given).exists()):
        return given
    from didyma.data import word_vectors as vectors

    return dict(zip(*vectors.read(given)))


def read_judged(files: texts.TextFiles, language: str | None) -> Lists:
    """Lists of texts, which must have labels."""
    lists = files.read(language)
    if lists.labels is None:
        raise DataError(
            "expected labels, found none (--names tells how they are called)",
            path=files.path,
            field="label",
        )
    return lists


@dataclass(frozen=True, eq=False)
class OrdersCompared:
    """A reranker beside the order that it changes, on queries that tell orders apart."""

    evaluations: dict[str, Evaluation]
    table: ComparisonTable
    left_out: int

    @classmethod
    def of(
        cls,
        reranker: TextReranker,
        lists: Lists,
        scores: NDArray[np.float64],
        measures: str = MEASURES,
        *,
        every: bool = False,
    ) -> OrdersCompared:
        """Compare raw scores with the baseline's by paired tests of the first measure."""
        import numpy as np

        from didyma.metrics import Evaluation, evaluate, parse_all
        from didyma.text.target import Target

        groups, target = lists.groups, Target.of(lists.y, lists.groups, reranker.measure)
        better = (target.grades if target.kind == "teacher" else target.relevance)[groups.rows]
        starts = groups.starts[:-1]
        kept = every | (np.minimum.reduceat(better, starts) < np.maximum.reduceat(better, starts))
        if not kept.any():
            raise DataError("expected a query with relevant passages and others, found none")
        name, before = reranker.baseline(lists)
        found = {}
        for system, own in ((name, before), (LEARNED, scores)):
            whole = evaluate(own, target.grades, groups, measures, docid=lists.docid)
            values = {measure: value[kept] for measure, value in whole.values.items()}
            found[system] = Evaluation(whole.queries[kept], values)
        table = comparison(found, measure=str(parse_all(measures)[0]))
        return cls(found, table, int(np.sum(~kept)))

    def write(self, path: Path, reranker: TextReranker, lists: Lists) -> None:
        """Write a report on how a reranker was trained."""
        from didyma.report.html import write_report

        assert lists.queries is not None
        write_report(
            path,
            title="Reranking passages",
            lead=f"{len(lists.groups)} queries with {len(lists)} passages, ranked by models that "
            "had not seen the query.",
            table=self.table,
            evaluations=self.evaluations,
            queries=dict(zip(map(str, lists.groups.names.tolist()), lists.queries)),
            calibrations={LEARNED: reranker.calibration_},
            notes=[str(reranker.gate_)],
        )


@contextmanager
def searching() -> Iterator[Callable[[Tried], None]]:
    """A callback that shows how the search goes: a bar on a terminal, else lines."""

    def line(tried: Tried) -> str:
        place = f"{tried.number}/{tried.of}"
        found = f"{decimal(tried.mean)}  best {decimal(tried.best)}   {tried.seconds:.1f} s"
        return f"{place:<7}{tried.rung:<50}{found}"

    if (console := terminal()) is None:
        yield lambda tried: say(line(tried))
        return
    with progress_bars(console) as bars:
        task = bars.add_task("features", total=None, state="")

        def show(tried: Tried) -> None:
            bars.console.print(line(tried), highlight=False)
            done = {"completed": tried.number, "total": tried.of}
            bars.update(task, description="search", state=f"best {decimal(tried.best)}", **done)

        yield show


def rank_one(reranker: TextReranker, query: str, data: Path | None) -> PassageRanking:
    """The passages of a file, or of stdin, ranked for one query."""
    from didyma.data.rankings import PassageRanking

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
    from didyma.data.rankings import PassageRanking

    assert lists.queries is not None
    groups, found = lists.groups, []
    for n, query in enumerate(lists.queries):
        rows = groups.rows_of(n)
        documents = [
            {"text": lists.items[row], "id": None if lists.docid is None else str(lists.docid[row])}
            for row in rows.tolist()
        ]
        known = lists.scores if reranker.uses_scores else None
        scores = None if known is None else known[rows]
        ranked = reranker.rank(query, documents, scores=scores)
        found.append(PassageRanking(str(groups.names[n]), query, ranked))
    return found


def say_drift(reranker: TextReranker, lists: Lists) -> Drift:
    """Warn if queries are so unlike those of training that their order may suffer."""
    drift = reranker.drift(lists)
    if drift.warns:
        say_warning(f"these queries are not like those of training: {drift}")
    return drift
