"""N-best lists in lines as of Moses.

Those of an input stand one after the other:

    7 ||| NN NNS ||| lm= -3.2 tm= -1.5 -0.5 ||| -9.1

where the values of a name with several are called ``tm.1``, ``tm.2``, those without a name ``1``,
``2``; what follows the total (an alignment) is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from didyma.data.lists import Lists
from didyma.errors import DataError, placed
from didyma.files import PathName
from didyma.nbest.formats.collector import ListRecord, check_loss, check_number
from didyma.nbest.formats.outputs import Input, Output, outputs_of

SEPARATOR = "|||"
ALIGNMENT = "alignment"

# Id, number of the line, output, score and loss.
Row: TypeAlias = "tuple[str, int, Output, float, float | None]"


def records_of(path: PathName, lines: Iterable[tuple[int, str]], loss: str) -> Iterator[ListRecord]:
    """The lists of a file, of which these are the lines with their numbers."""
    for name, rows in groupby(_rows(path, lines, loss), key=itemgetter(0)):
        _, numbers, outputs, scores, losses = zip(*rows)
        yield ListRecord(numbers[0], name, Input(), outputs, scores, losses)


def _rows(path: PathName, lines: Iterable[tuple[int, str]], loss: str) -> Iterator[Row]:
    for number, line in lines:
        with placed(path, number):
            row = _row(number, line, loss)
        yield row


def _row(number: int, line: str, loss: str) -> Row:
    parts = [part.strip() for part in line.split(SEPARATOR)]
    if len(parts) < 4:
        raise DataError(
            f"expected id ||| text ||| features ||| total, found {len(parts)} "
            f"part{'s' if len(parts) > 1 else ''}"
        )
    name, text, columns, total, *rest = parts
    if not name:
        raise DataError("expected a text, found none", field="id")
    features = _features(columns)
    cost = features.pop(loss, None)
    other = {ALIGNMENT: f" {SEPARATOR} ".join(rest)} if rest else {}
    score = _number(total, "total")
    if cost is not None:
        check_loss(cost, loss)
    return name, number, Output(text, features, other=other), score, cost


def _features(columns: str) -> dict[str, float]:
    named: dict[str, list[float]] = {}
    name = ""
    for word in columns.split():
        if word.endswith("="):
            name = word[:-1]
            if not name or name in named:
                raise DataError(f"expected a new name, found {word!r}", field="features")
            named[name] = []
        else:
            named.setdefault(name, []).append(_number(word, name or "features"))
    features: dict[str, float] = {}
    for name, values in named.items():
        if not values:
            raise DataError("expected a number after the name, found none", field=name)
        if name and len(values) == 1:
            features[name] = values[0]
        else:
            prefix = f"{name}." if name else ""
            features |= {f"{prefix}{k}": value for k, value in enumerate(values, 1)}
    return features


def _number(word: str, field: str) -> float:
    try:
        number = math.nan if "_" in word else float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"expected a finite number, found {word!r}", field=field)
    return check_number(number, field)


def lines_of(lists: Lists, loss: str) -> Iterator[str]:
    """A line for each output."""
    outputs, groups, scores = outputs_of(lists), lists.groups, lists.scores
    for number, name in enumerate(map(str, groups.names.tolist())):
        place = f"list {name!r}"
        rows = groups.rows_of(number).tolist()
        if not rows:
            raise DataError("a list without candidates cannot be written as Moses", field=place)
        if scores is None:
            raise DataError("Moses needs a score for each candidate, found none", field=place)
        for row in rows:
            output = outputs[row]
            if output.vector is not None:
                raise DataError("vectors cannot be written as Moses", field=place)
            features = dict(output.features or {})
            if lists.losses is not None:
                features[loss] = float(lists.losses[row])
            parts = [name, output.text, _columns(features, place), repr(float(scores[row]))]
            if any(mark in part for part in parts for mark in (SEPARATOR, "\n", "\r")):
                raise DataError(
                    f"a text with {SEPARATOR!r} or several lines cannot be written as Moses",
                    field=place,
                )
            if ALIGNMENT in output.other:
                parts.append(str(output.other[ALIGNMENT]))
            yield f" {SEPARATOR} ".join(parts)


def _columns(features: Mapping[str, float], place: str) -> str:
    """Names and values; ``tm.1``, ``tm.2``, … in a row come under one name, as they were."""
    names, words = list(features), list[str]()
    start, unnamed = 0, True
    while start < len(names):
        name = names[start]
        if not name or any(map(str.isspace, name)):
            raise DataError(f"the name {name!r} cannot be written as Moses", field=place)
        group = name.removesuffix(".1")
        stop = start + 1
        if group != name and group and group not in features:
            while stop < len(names) and names[stop] == f"{group}.{stop - start + 1}":
                stop += 1
        unnamed = unnamed and name == str(start + 1)
        if not unnamed:
            words.append(f"{group if stop > start + 1 else name}=")
        words += [repr(features[member]) for member in names[start:stop]]
        start = stop
    return " ".join(words)
