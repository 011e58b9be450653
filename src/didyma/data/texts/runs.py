"""Runs of several searches: each is a signal of the candidates that any of them has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from didyma.data.attributes import Attributes
from didyma.data.schema import RUN, Schema
from didyma.data.text_columns import distinct
from didyma.data.trec import Run, read_run
from didyma.errors import DataError, LeftOutWarning, warn
from didyma.files import PathName


def files_of(run: PathName | Sequence[PathName] | None) -> list[PathName]:
    """No file, one, or several."""
    if run is None or isinstance(run, (str, PathLike)):
        return [] if run is None else [run]
    return list(run)


def read_runs(files: Sequence[PathName]) -> tuple[Run, ...]:
    """Runs with different tags: the names of their files, where they have the same."""
    runs = [read_run(file) for file in files]
    if len({run.tag for run in runs}) < len(runs):
        runs = [replace(run, tag=Path(file).stem) for run, file in zip(runs, files)]
    return tuple(runs)


def join_runs(
    runs: Sequence[Run], path: PathName, schema: Schema | None = None
) -> tuple[Run, dict[str, NDArray[np.float64]]]:
    """The pairs that any run has, and if there are several the scores of each, NaN for none.

    A model that was trained with several, by its ``schema``, knows runs by their tags; of one that
    was not, they have no scores.

    >>> lexical = Run(np.array(["q", "q"]), np.array(["d1", "d2"]), np.array([3.0, 2.0]), "bm25")
    >>> dense = Run(np.array(["q"]), np.array(["d2"]), np.array([0.5]), "dense")
    >>> pairs, scores = join_runs([lexical, dense], "a folder")
    >>> pairs.docid.tolist(), {tag: own.tolist() for tag, own in scores.items()}
    (['d1', 'd2'], {'bm25': [3.0, 2.0], 'dense': [nan, 0.5]})
    """
    trained = [] if schema is None else [one.name for one in schema.fields if one.reason == RUN]
    if trained:
        _check_tags([run.tag for run in runs], trained, path)
    elif len(runs) == 1:
        return runs[0], {}
    qid, docid = (np.concatenate([getattr(run, name) for run in runs]) for name in ("qid", "docid"))
    code, place = distinct(qid, docid)
    begin = np.cumsum([0, *map(len, runs)])
    signals: dict[str, NDArray[np.float64]] = {}
    for run, start in zip(runs, begin.tolist()):
        if run.tag in signals:
            raise DataError(f"expected runs with different tags, found {run.tag!r} again")
        scores = np.full(len(place), np.nan)
        scores[code[start : start + len(run)]] = run.score
        signals[run.tag] = scores
    if schema is not None and not trained:
        tags = ", ".join(signals)
        warn(f"{path}: scores that the model was not trained with: {tags}", LeftOutWarning)
        signals = {}
    return Run(qid[place], docid[place], np.zeros(len(place)), runs[0].tag), signals


def _check_tags(tags: Sequence[str], trained: Sequence[str], path: PathName) -> None:
    """Refuse runs that a model does not know; warn of those that it was trained with and lacks."""
    for tag in tags:
        if tag not in trained:
            expected = f"expected runs with tags {', '.join(trained)}, as in training"
            raise DataError(f"{expected}, found {tag!r}", path=path, field="run")
    if missing := [tag for tag in trained if tag not in tags]:
        absent = f"no run {', '.join(missing)}, which the model was trained with"
        warn(f"{path}: {absent}: its scores are missing", LeftOutWarning)


def with_runs(attributes: Attributes | None, signals: dict[str, NDArray[np.float64]]) -> Attributes:
    """The same with the scores of runs as signals of the first stage."""
    before = attributes or Attributes()
    for name in signals:
        if name in before.signals or name in before.fields:
            schema_before = Schema.of(attributes)
            if all(field.name != name or field.reason != RUN for field in schema_before.fields):
                raise DataError("expected a tag that is no field of passages", field=name)
    schema = Schema.of(attributes).with_runs(list(signals))
    return replace(
        before,
        signals={**before.signals, **signals},
        first_stages=tuple(dict.fromkeys((*before.first_stages, *signals))),
        schema=schema,
    )
