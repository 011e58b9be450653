"""N-best lists in lines as of Moses.

Those of an input stand one after the other:

    7 ||| NN NNS ||| lm= -3.2 tm= -1.5 -0.5 ||| -9.1

where the values of a name with several are called ``tm.1``, ``tm.2``, those without a name ``1``,
``2``; what follows the total (an alignment) is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.formats.collector import Collector
from didyma.nbest.formats.lines import Lines
from didyma.nbest.formats.outputs import Input, Output, outputs_of

SEPARATOR = "|||"
ALIGNMENT = "alignment"


def collect(lines: Lines, loss: str, collector: Collector) -> None:
    """Read all lists of a file."""
    current = None
    for line in lines:
        parts = [part.strip() for part in line.split(SEPARATOR)]
        if len(parts) < 4:
            lines.fail(
                f"expected id ||| text ||| features ||| total, found {len(parts)} "
                f"part{'s' if len(parts) > 1 else ''}"
            )
        name, text, columns, total, *rest = parts
        if not name:
            lines.fail("expected a text, found none", "id")
        features = _features(lines, columns)
        cost = features.pop(loss, None)
        other = {ALIGNMENT: f" {SEPARATOR} ".join(rest)} if rest else {}
        score = lines.parsed(total, "total")
        cost = None if cost is None else lines.loss(cost, loss)
        if name != current:
            if current is not None:
                collector.end()
            collector.begin(name, Input())
            current = name
        collector.add(Output(text, features, other=other), score, cost)
    if current is not None:
        collector.end()


def _features(lines: Lines, columns: str) -> dict[str, float]:
    named: dict[str, list[float]] = {}
    name = ""
    for word in columns.split():
        if word.endswith("="):
            name = word[:-1]
            if not name or name in named:
                lines.fail(f"expected a new name, found {word!r}", "features")
            named[name] = []
        else:
            named.setdefault(name, []).append(lines.parsed(word, name or "features"))
    features: dict[str, float] = {}
    for name, values in named.items():
        if not values:
            lines.fail("expected a number after the name, found none", name)
        if name and len(values) == 1:
            features[name] = values[0]
        else:
            prefix = f"{name}." if name else ""
            features |= {f"{prefix}{k}": value for k, value in enumerate(values, 1)}
    return features


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
