"""`didyma clicks`: judgements from a log of what was shown and clicked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from didyma import cli
from didyma.cli import options
from didyma.errors import placed
from didyma.report import aligned, listed

TEXTS = "Texts"  # a panel of the help

MODEL = cli.ParametersOf(
    "didyma.applications.clicks.model.ClickModel",
    {
        "Model": [*("method", "clip", "smoothing", "min_impressions", "min_clicks", "bootstrap")],
        None: [cli.SEED],
    },
)


@cli.command
def clicks(
    *,
    log: Annotated[
        Path,
        options.argument(
            "LOG",
            "JSON lines, or a table (.csv, else with tabs), with query, document, position and "
            "clicked; one line for each document that a user was shown.",
            default=False,
        ),
    ],
    output: Annotated[
        Path,
        options.file(
            "Judged texts (.jsonl), rows with features as --rows has them, or else TREC "
            "judgements.",
            "--output",
            "-o",
        ),
    ],
    rows: Annotated[
        Path | None,
        options.file(
            "Rows of features with query and document ids, to be judged: LETOR, .csv, .tsv, "
            ".parquet or .npz.",
            panel=TEXTS,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        options.file(
            "Text of each query by its id (.tsv, .jsonl), where the log has ids.", panel=TEXTS
        ),
    ] = None,
    passages: Annotated[
        Path | None,
        options.file(
            "Text of each document by its id (.tsv, .jsonl), where the log has ids.", panel=TEXTS
        ),
    ] = None,
    names: Annotated[
        str,
        options.text(
            "ROLE=NAME,…",
            "What columns or fields are called: roles are query, qid, passage, docid, position, "
            "clicked, impression.",
            panel=TEXTS,
        ),
    ] = "",
    parameters: Annotated[dict[str, Any], MODEL],
    html: options.Html = None,
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
        cli.check_output(written, log, rows, queries, passages)
    cli.check_output(html, output)
    if html is not None:
        from didyma.report.page import require_extra

        require_extra()
    from didyma.applications.clicks import log as click_log
    from didyma.applications.clicks.model import ClickModel
    from didyma.applications.clicks.writers import (
        position_records,
        position_rows,
        write_click_report,
        writer_of,
    )

    columns = cli.parse_names(names, click_log.ROLES)
    with cli.waiting(f"reading {log}"):
        shown = click_log.read(log, **columns).with_texts(queries=queries, passages=passages)
    cli.print_message(
        f"{log}: {len(shown.queries)} queries, {len(shown.documents)} documents of them, "
        f"{shown.impressions.sum()} impressions, {shown.clicks.sum()} clicks"
    )
    write = writer_of(output, rows, shown, cli.print_message)
    model = ClickModel(**parameters)
    with cli.waiting("estimating examination"), placed(log):
        examination = model.fit(shown).examination_
        judged = model.judge(shown)
    n_judged = write(judged)
    clipped = examination.positions[examination.values < model.clip].tolist()
    end = "converged" if examination.converged else "did NOT converge"
    summary = {
        "examination": f"{model.method}, {end} after {len(examination.log_likelihood) - 1} steps, "
        f"from {examination.n_documents} documents at several positions",
        **({"clipped": f"positions {', '.join(map(str, clipped))}"} if clipped else {}),
        **{f"left out {k}": f"{n} {why}" for k, (why, n) in enumerate(judged.left_out.items(), 1)},
        "saved to": f"{output}, {n_judged} judgements of {len(judged.lists.groups)} queries",
    }
    if html is not None:
        notes = [f"{name}: {text}" for name, text in summary.items()]
        write_click_report(shown, examination, judged, html, notes)
    records = position_records(shown, examination)
    if as_json:
        cli.print_json(
            {
                "output": str(output),
                "method": model.method,
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
