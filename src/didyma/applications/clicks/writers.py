"""Judgements of clicks as files: judged texts, TREC judgements, or rows of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.clicks.log import ClickLog
from didyma.applications.clicks.model import ClickJudgements
from didyma.data import Lists, read, write
from didyma.data.texts import json_lines
from didyma.data.trec import Qrels, write_qrels
from didyma.files import format_suffix
from didyma.text import Target


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
