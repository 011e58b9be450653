"""What clicks say, as files: judged texts, TREC judgements or rows of features, and a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.clicks.examination import Examination
from didyma.applications.clicks.log import ClickLog
from didyma.applications.clicks.model import ClickJudgements
from didyma.data import Lists, read, write
from didyma.data.texts import json_lines
from didyma.data.trec import Qrels, write_qrels
from didyma.files import PathName, format_suffix
from didyma.report import decimal, plots
from didyma.report.page import PagePlot, write_page
from didyma.text import Target

TEMPLATE = Path(__file__).with_name("report.html.j2")
MOST_TICKS = 20
EDGES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def writer_of(
    output: Path, rows: Path | None, log: ClickLog, report: Callable[[str], None]
) -> Callable[[ClickJudgements], int]:
    """A function that writes judgements to a file of this name and returns their number."""
    if rows is not None:
        return lambda judged: _write_rows(judged, rows, output, report)
    if format_suffix(output) not in (".jsonl", ".json", ".ndjson"):
        return lambda judged: _write_qrels(judged, output)
    for what, texts in (("queries", log.query_texts), ("passages", log.passages)):
        if texts is None:
            raise DataError(
                f"texts need those of the {what}, of which the log has ids alone: give "
                f"--{what}, or write TREC judgements (-o clicks.qrels)",
                path=output,
            )
    return lambda judged: _write_texts(judged, output)


def _write_texts(judged: ClickJudgements, output: Path) -> int:
    json_lines.write(
        judged.lists,
        output,
        impressions=judged.impressions,
        clicks=judged.clicks,
        weight=judged.weights.round(2),
    )
    return len(judged.lists)


def _write_qrels(judged: ClickJudgements, output: Path) -> int:
    lists = judged.lists
    assert lists.docid is not None
    write_qrels(Qrels(lists.qid, lists.docid, _graded(lists).astype(np.int64)), output)
    return len(lists)


def _write_rows(
    judged: ClickJudgements, rows: Path, output: Path, report: Callable[[str], None]
) -> int:
    """The rows that were judged, with grades as their labels."""
    lists = judged.lists
    assert lists.docid is not None
    pairs = zip(lists.qid.tolist(), lists.docid.tolist())
    grades = dict(zip(pairs, _graded(lists).tolist()))
    features = read(rows)
    if features.docid is None:
        raise DataError("expected document ids, found none", path=rows, field="docid")
    labels = [
        grades.get((str(q), str(d))) for q, d in zip(features.qid.tolist(), features.docid.tolist())
    ]
    judged_rows = np.array([grade is not None for grade in labels], bool)
    if not judged_rows.any():
        raise DataError("expected rows that the log judges, found none", path=rows)
    left = int((~judged_rows).sum())
    report(f"{rows}: left out {left} of {len(features)} rows, which the log does not judge")
    grades_of_rows = np.array([grade or 0.0 for grade in labels])
    write(replace(features, labels=grades_of_rows).select(judged_rows), output)
    return int(judged_rows.sum())


def _graded(lists: Lists) -> NDArray[np.float64]:
    """Whole grades from 0 to 4, as a reranker makes them of a teacher's scores."""
    return Target.of(lists.y, lists.groups).grades


def position_records(log: ClickLog, examination: Examination) -> list[dict[str, Any]]:
    """Of each position its impressions, clicks, examination and interval, None where unknown."""
    positions, place = np.unique(log.position, return_inverse=True)
    shown = np.bincount(place, log.impressions).astype(int).tolist()
    clicked = np.bincount(place, log.clicks).astype(int).tolist()
    curve = dict(
        zip(
            examination.positions.tolist(),
            zip(*(c.tolist() for c in (examination.values, examination.low, examination.high))),
        )
    )
    nothing = (np.nan,) * 3
    return [
        {"position": position, "impressions": n, "clicks": c, "click_rate": c / n}
        | {
            name: None if np.isnan(value) else value
            for name, value in zip(("examination", "low", "high"), curve.get(position, nothing))
        }
        for position, n, c in zip(positions.tolist(), shown, clicked)
    ]


def position_rows(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The same as cells, below their head."""
    head = ["position", "impressions", "clicks", "click rate", "examination", "95 % interval"]
    return [head] + [
        [
            str(record["position"]),
            f"{record['impressions']:,}",
            f"{record['clicks']:,}",
            decimal(record["click_rate"]),
            "unknown" if record["examination"] is None else decimal(record["examination"]),
            ""
            if record["low"] is None
            else f"{decimal(record['low'])} to {decimal(record['high'])}",
        ]
        for record in records
    ]


def write_click_report(
    log: ClickLog,
    examination: Examination,
    judged: ClickJudgements,
    path: PathName,
    notes: Sequence[str] = (),
) -> None:
    """Write a self-contained page: the curve with its interval, and what labels there are."""
    records = position_records(log, examination)
    rates = np.array(
        [record["click_rate"] for record in records if record["examination"] is not None]
    )
    first, last = examination.positions[[0, -1]].tolist()
    sentence = (
        f"Position {last} is looked at {examination.values[-1]:.0%} as often as position {first}. "
        "Click rates depend on what stood at a position as well."
    )
    label = f"Examination and click rate over positions. {sentence}"
    drawing = _plot(examination, rates / max(rates[0], 1e-12), label)
    shown, clicked = int(log.impressions.sum()), int(log.clicks.sum())
    write_page(
        TEMPLATE,
        path,
        title="What clicks say",
        lead=f"{shown:,} impressions with {clicked:,} clicks for {len(log.queries):,} queries; "
        f"{len(judged.lists):,} documents of {len(judged.lists.groups):,} queries are judged.",
        plot=PagePlot("Examination of positions", drawing, sentence),
        rows=position_rows(records),
        labels=_label_rows(judged),
        notes=notes,
    )


def _label_rows(judged: ClickJudgements) -> list[list[str]]:
    place = np.clip(np.searchsorted(EDGES, judged.lists.y, "right") - 1, 0, len(EDGES) - 2)
    rows = []
    for k, (low, high) in enumerate(pairwise(EDGES)):
        inside = place == k
        counts = inside.sum(), judged.impressions[inside].sum(), judged.clicks[inside].sum()
        rows.append([f"{low:g} to {high:g}", *(f"{int(count):,}" for count in counts)])
    return rows


def _plot(curve: Examination, rates: NDArray[np.float64], label: str) -> str:
    """Examination over positions with its interval, and click rates over that of the first."""
    places = np.arange(len(curve.positions))
    named = [str(position) for position in curve.positions.tolist()]
    step = -(-len(places) // MOST_TICKS)

    def draw(axes: Any) -> None:
        if not np.isnan(curve.low).any():
            axes.fill_between(
                places, curve.low, curve.high, color=plots.SERIES[0], alpha=0.2, linewidth=0
            )
        axes.plot(places, curve.values, label="examination", **plots.line_style(0))
        axes.plot(places, rates, label="click rate", **plots.line_style(1) | {"linestyle": "--"})
        axes.set_xticks(places[::step], named[::step])
        axes.set(xlabel="position", ylabel="relative to the first")
        axes.set_ylim(bottom=0)
        axes.legend()

    return plots.as_svg(draw, plots.WIDE, 2.9, label)
