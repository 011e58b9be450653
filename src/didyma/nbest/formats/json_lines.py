"""N-best lists as JSON lines.

An object for each input:

    {"id": "7", "input": "time flies", "reference": "NN VBZ",
     "candidates": [{"text": "NN NNS", "score": -9.1, "loss": 1, "features": {"lm": -3.2}}, …]}

of which only ``candidates`` and their ``text`` are required; ``vector`` (of the input or a
candidate) and ``reference_vector`` are lists of numbers, and any further keys are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from didyma.data.json_lines import parse_json
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.formats.collector import Collector
from didyma.nbest.formats.lines import Lines, kind_of
from didyma.nbest.formats.outputs import Input, Output, inputs_of, outputs_of


def collect(lines: Lines, loss: str, collector: Collector) -> None:
    """Read all lists of a file."""
    for place, text in enumerate(lines):
        try:
            record = parse_json(text)
        except ValueError as error:
            lines.fail(f"expected a JSON object ({error})")
        if not isinstance(record, dict):
            lines.fail(f"expected a JSON object, found {kind_of(record)}")
        candidates = record.pop("candidates", None)
        if not isinstance(candidates, list):
            lines.fail(f"expected a list, found {kind_of(candidates)}", "candidates")
        outputs = [
            _output(lines, f"candidates[{k}]", fields, loss) for k, fields in enumerate(candidates)
        ]
        name = record.pop("id", place)
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            lines.fail(f"expected a text or an integer, found {kind_of(name)}", "id")
        input = Input(
            lines.text(record.pop("input", None), "input"),
            lines.text(record.pop("reference", None), "reference"),
            lines.vector(record.pop("vector", None), "vector"),
            lines.vector(record.pop("reference_vector", None), "reference_vector"),
            record,
        )
        collector.begin(str(name), input)
        for output, score, cost in outputs:
            collector.add(output, score, cost)
        collector.end()


def _output(
    lines: Lines, place: str, fields: Any, loss: str
) -> tuple[Output, float | None, float | None]:
    """An output with its score and its loss."""
    if not isinstance(fields, dict):
        lines.fail(f"expected an object with a text, found {kind_of(fields)}", place)
    text = lines.text(fields.pop("text", None), f"{place}.text")
    if text is None:
        lines.fail("expected a text, found none", f"{place}.text")
    features = fields.pop("features", None)
    if features is not None:
        if not isinstance(features, dict):
            kind = kind_of(features)
            lines.fail(f"expected names with numbers, found {kind}", f"{place}.features")
        features = {
            name: lines.number_of(value, f"{place}.features.{name}")
            for name, value in features.items()
        }
    score, cost = fields.pop("score", None), fields.pop(loss, None)
    if cost is None and features:
        cost = features.pop(loss, None)
    vector = lines.vector(fields.pop("vector", None), f"{place}.vector")
    return (
        Output(text, features, vector, fields),
        None if score is None else lines.number_of(score, f"{place}.score"),
        None if cost is None else lines.loss(cost, f"{place}.{loss}"),
    )


def lines_of(lists: Lists, loss: str) -> Iterator[str]:
    """A line for each list."""
    outputs, groups = outputs_of(lists), lists.groups
    for number, (name, input) in enumerate(zip(groups.names.tolist(), inputs_of(lists))):
        record = {
            "id": name,
            "input": input.text,
            "reference": input.reference,
            "vector": _numbers(input.vector),
            "reference_vector": _numbers(input.reference_vector),
        }
        candidates = []
        for row in groups.rows_of(number).tolist():
            output = outputs[row]
            fields = {
                "text": output.text,
                "score": None if lists.scores is None else float(lists.scores[row]),
                loss: None if lists.losses is None else float(lists.losses[row]),
                "features": output.features and dict(output.features),
                "vector": _numbers(output.vector),
            }
            candidates.append({**_present(fields), **output.other})
        document = {**_present(record), **input.other, "candidates": candidates}
        try:
            yield json.dumps(document, ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise DataError("expected finite numbers", field=f"list {name!r}") from None


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _numbers(vector: Any) -> list[float] | None:
    return None if vector is None else vector.tolist()
