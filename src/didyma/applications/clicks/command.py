"""`didyma clicks`: judgements from a log of what was shown and clicked."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options, texts
from didyma.cli.output import aligned, check_output, listed, print_json, say, waiting
from didyma.errors import DataError, placed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.applications.clicks.log import ClickLog
    from didyma.applications.clicks.model import ClickJudgements
    from didyma.data.lists import Lists

__all__ = ["clicks"]

MODEL = "Model"


class Method(StrEnum):
    """How examination is told from relevance."""

    swaps = "swaps"
    em = "em"


def clicks(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="JSON lines, or a table (.csv, else with tabs), with query, document, position "
            "and clicked; one line for each document that a user was shown.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Judged texts (.jsonl), rows with features as --rows has them, or else TREC "
            "judgements.",
        ),
    ],
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            rich_help_panel=texts.FILES,
            help="Rows of features with query and document ids, to be judged: LETOR, .csv, .tsv, "
            ".parquet or .npz.",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            rich_help_panel=texts.FILES,
            help="Text of each query by its id (.tsv, .jsonl), where the log has ids.",
        ),
    ] = None,
    passages: Annotated[
        Path | None,
        typer.Option(
            "--passages",
            metavar="FILE",
            rich_help_panel=texts.FILES,
            help="Text of each document by its id (.tsv, .jsonl), where the log has ids.",
        ),
    ] = None,
    names: Annotated[
        str,
        typer.Option(
            "--names",
            metavar="ROLE=NAME,…",
            rich_help_panel=texts.FILES,
            help="What columns or fields are called: roles are query, qid, passage, docid, "
            "position, clicked, impression.",
        ),
    ] = "",
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            rich_help_panel=MODEL,
            help="swaps looks at where the clicks of each document fell, em also at impressions "
            "without clicks, which takes many for each document.",
        ),
    ] = Method.swaps,
    clip: Annotated[
        float,
        typer.Option(
            "--clip",
            min=0,
            max=1,
            rich_help_panel=MODEL,
            help="Least examination that a position counts as.",
        ),
    ] = 0.05,
    smoothing: Annotated[
        float,
        typer.Option(
            "--smoothing",
            min=0,
            rich_help_panel=MODEL,
            help="Impressions with the mean relevance that are added to each document.",
        ),
    ] = 1.0,
    min_impressions: Annotated[
        int,
        typer.Option(
            "--min-impressions",
            min=0,
            rich_help_panel=MODEL,
            help="Documents with fewer are left out.",
        ),
    ] = 5,
    min_clicks: Annotated[
        int,
        typer.Option(
            "--min-clicks", min=0, rich_help_panel=MODEL, help="Queries with fewer are left out."
        ),
    ] = 1,
    bootstrap: Annotated[
        int,
        typer.Option(
            "--bootstrap",
            min=0,
            rich_help_panel=MODEL,
            help="Curves from queries with random weights, for the interval; 0 for none.",
        ),
    ] = 100,
    html: options.Html = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Turn a log of clicks into judgements to train on.

    Users look at the first results more than at others. How much more is
    estimated from documents that one query has shown at several positions. A log
    without such documents is refused. The label of a document is the probability
    of a click by users who look at it: its clicks over the impressions that were
    looked at. TREC judgements and rows get grades from 0 to 4 instead.

    [bold]Examples[/bold]

    didyma clicks log.jsonl -o judged.jsonl --html clicks.html

    didyma rerank fit judged.jsonl

    didyma clicks log.tsv.gz --queries queries.tsv --passages passages.tsv -o judged.jsonl

    didyma clicks log.csv --rows features.csv -o train.csv
    """
    for written in (output, html):
        check_output(written, log, rows, queries, passages)
    check_output(html, output)
    if html is not None:
        from didyma.report.page import require_extra

        require_extra()
    from didyma.applications.clicks import log as click_log
    from didyma.applications.clicks.model import ClickModel
    from didyma.applications.clicks.report import (
        position_records,
        position_rows,
        write_click_report,
    )

    given = texts.parse_names(names, click_log.ROLES)
    with waiting(f"reading {log}"):
        found = click_log.read(log, **given).with_texts(queries=queries, passages=passages)
    say(
        f"{log}: {len(found.queries)} queries, {len(found.documents)} documents of them, "
        f"{found.impressions.sum()} impressions, {found.clicks.sum()} clicks"
    )
    write = _writer(output, rows, found)
    model = ClickModel(
        method.value,
        clip=clip,
        smoothing=smoothing,
        min_impressions=min_impressions,
        min_clicks=min_clicks,
        bootstrap=bootstrap,
        random_state=seed,
    )
    with waiting("estimating examination"), placed(log):
        examination = model.fit(found).examination_
        judged = model.judge(found)
    n_judged = write(judged)
    clipped = examination.positions[examination.values < clip].tolist()
    end = "converged" if examination.converged else "did NOT converge"
    summary = {
        "examination": f"{method.value}, {end} after {len(examination.log_likelihood) - 1} steps, "
        f"from {examination.n_documents} documents at several positions",
        **({"clipped": f"positions {', '.join(map(str, clipped))}"} if clipped else {}),
        **{f"left out {k}": f"{n} {why}" for k, (why, n) in enumerate(judged.left_out.items(), 1)},
        "saved to": f"{output}, {n_judged} judgements of {len(judged.lists.groups)} queries",
    }
    if html is not None:
        notes = [f"{name}: {text}" for name, text in summary.items()]
        write_click_report(found, examination, judged, html, notes)
    records = position_records(found, examination)
    if as_json:
        print_json(
            {
                "output": str(output),
                "method": method.value,
                "converged": examination.converged,
                "steps": len(examination.log_likelihood) - 1,
                "log_likelihood": examination.log_likelihood[-1],
                "documents_at_several_positions": examination.n_documents,
                "positions": records,
                "clipped": clipped,
                "left_out": judged.left_out,
                "judgements": n_judged,
                "queries": len(judged.lists.groups),
            }
        )
        return
    typer.echo(aligned(position_rows(records)) + "\n")
    typer.echo(listed(summary))


def _writer(output: Path, rows: Path | None, log: ClickLog) -> Callable[[ClickJudgements], int]:
    """What writes judgements to a file of this name, and says how many."""
    from didyma.files import format_suffix

    if rows is not None:
        return lambda judged: _write_rows(judged, rows, output)
    if format_suffix(output) not in (".jsonl", ".json", ".ndjson"):
        return lambda judged: _write_qrels(judged, output)
    for what, known in (("queries", log.query_texts), ("passages", log.passages)):
        if known is None:
            raise DataError(
                f"texts need those of the {what}, of which the log has ids alone: give "
                f"--{what}, or write TREC judgements (-o clicks.qrels)",
                path=output,
            )
    return lambda judged: _write_texts(judged, output)


def _write_texts(judged: ClickJudgements, output: Path) -> int:
    from didyma.data.texts import json_lines as json_texts

    json_texts.write(
        judged.lists,
        output,
        impressions=judged.impressions,
        clicks=judged.clicks,
        weight=judged.weights.round(2),
    )
    return len(judged.lists)


def _write_qrels(judged: ClickJudgements, output: Path) -> int:
    import numpy as np

    from didyma.data.trec import Qrels, write_qrels

    lists = judged.lists
    assert lists.docid is not None
    write_qrels(Qrels(lists.qid, lists.docid, _graded(lists).astype(np.int64)), output)
    return len(lists)


def _write_rows(judged: ClickJudgements, rows: Path, output: Path) -> int:
    """The rows that were judged, with grades as their labels."""
    from dataclasses import replace

    import numpy as np

    from didyma.data.formats import read as read_lists
    from didyma.data.formats import write as write_lists

    lists = judged.lists
    assert lists.docid is not None
    pairs = zip(lists.qid.tolist(), lists.docid.tolist())
    grades = dict(zip(pairs, _graded(lists).tolist()))
    features = read_lists(rows)
    if features.docid is None:
        raise DataError("expected document ids, found none", path=rows, field="docid")
    found = [
        grades.get((str(q), str(d))) for q, d in zip(features.qid.tolist(), features.docid.tolist())
    ]
    kept = np.array([grade is not None for grade in found], bool)
    if not kept.any():
        raise DataError("expected rows that the log judges, found none", path=rows)
    left = int((~kept).sum())
    say(f"{rows}: left out {left} of {len(features)} rows, which the log does not judge")
    labels = np.array([grade or 0.0 for grade in found])
    write_lists(replace(features, labels=labels).select(kept), output)
    return int(kept.sum())


def _graded(lists: Lists) -> NDArray[np.float64]:
    """Whole grades from 0 to 4, as a reranker makes them of a teacher's scores."""
    from didyma.text.target import Target

    return Target.of(lists.y, lists.groups).grades
