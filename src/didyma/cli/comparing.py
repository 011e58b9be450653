"""`didyma rerank compare`, and whether a new model is to replace the live one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options, reranking, texts
from didyma.cli.compare import names_of
from didyma.cli.groups import command
from didyma.cli.output import check_output, print_json, print_warning, waiting
from didyma.errors import DataError, placed

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.report.model_comparison import ModelComparison

NOT_BETTER = 3  # exit code
MEASURES = "AP, RR, nDCG@10"
SHARE = 0.2  # of queries that are held out

Against = Annotated[
    Path | None,
    options.file(
        "The live model: the new one is compared with it on queries that neither has seen. A fifth "
        "of the queries that the live one has not seen is held out for that, always the same "
        "ones, or all of --test."
    ),
]


@command
def compare(
    *,
    old: Annotated[Path, options.argument("OLD", "The model that is there.")],
    new: Annotated[Path, options.argument("NEW", "The model that would replace it.")],
    files: texts.JudgedTextFiles,
    measures: options.Measures = MEASURES,
    html: options.Html = None,
    if_better: Annotated[
        bool, options.flag("--if-better", "Exit with code 3 unless the new one is better.")
    ] = False,
    embedding: reranking.Embedding,
    trust: reranking.Trust = None,
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
    from didyma.metrics import parse_all

    parse_all(measures)
    files.check()
    check_output(html, old, new, *files.paths)
    if html is not None:
        from didyma.report.html import require_extra

        require_extra()
    before, after = (reranking.load(path, embedding, trust) for path in (old, new))
    lists = files.read(after.language, after.schema_, embedding.encoder)
    names = list(names_of([old, new]).values())
    with placed(files.path):
        found = compared(before, after, lists, measures, (names[0], names[1]))
    if html is not None:
        found.write(html)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(found.text())
    if if_better and not found.better:
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


@dataclass(frozen=True, eq=False)
class Promotion:
    """A live model, lists to train its successor on, and others to compare the two on."""

    live: Any
    train: Lists
    test: Lists | None

    @classmethod
    def of(cls, live: Any, lists: Lists, test: Path | None, language: str | None) -> Promotion:
        """Hold queries out, unless there is nothing to compare with, or there are others."""
        if live is None:
            return cls(None, lists, None)
        if test is not None:
            tested = texts.JudgedTextFiles(test).read(language, live.schema_)
            return cls(live, lists, tested)
        return cls(live, *held_out(lists, live))

    def compare(
        self, new: Any, measure: str | None, old: Path | None, output: Path
    ) -> ModelComparison | None:
        """The comparison of the new model, by its measure first; None without a live one."""
        if self.test is None or old is None:
            return None
        first = [] if measure is None else [measure]
        measures = ", ".join(dict.fromkeys([*first, *MEASURES.split(", ")]))
        names = list(names_of([old, output]).values())
        return compared(self.live, new, self.test, measures, (names[0], names[1]))


def held_out(lists: Lists, live: Any, share: float = SHARE) -> tuple[Lists, Lists]:
    """Lists to train on, and those held out: by a hash of the query, so that they stay the same."""
    import numpy as np

    from didyma.report.model_comparison import unseen
    from didyma.text.training_data import hashes

    chosen = unseen(lists, live) & (hashes(lists.query_texts) < share * 2**32)
    if chosen.sum() < 2 or (~chosen).sum() < 2:
        new = int(unseen(lists, live).sum())
        raise DataError(
            f"expected queries to hold out, found {int(chosen.sum())} among {new} that the live "
            "model has not seen: give others by --test",
            field="against",
        )
    return lists.select_lists(np.flatnonzero(~chosen)), lists.select_lists(np.flatnonzero(chosen))
