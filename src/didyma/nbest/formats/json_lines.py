"""N-best lists as JSON lines.

An object for each input:

    {"id": "7", "input": "time flies", "reference": "NN VBZ",
     "candidates": [{"text": "NN NNS", "score": -9.1, "loss": 1, "features": {"lm": -3.2}}, …]}

of which only ``candidates`` and their ``text`` are required; ``vector`` (of the input or a
candidate) and ``reference_vector`` are lists of numbers, and any further keys are kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from didyma.data.json_lines import parse_json
from didyma.data.lists import Lists
from didyma.errors import DataError, placed
from didyma.files import PathName
from didyma.nbest.formats.collector import ListRecord, check_loss, check_number
from didyma.nbest.formats.outputs import Input, Output, Vector, inputs_of, outputs_of


def records_of(path: PathName, lines: Iterable[tuple[int, str]], loss: str) -> Iterator[ListRecord]:
    """The lists of a file, of which these are the lines with their numbers."""
    for place, (line, text) in enumerate(lines):
        with placed(path, line):
            record = _record(line, text, place, loss)
        yield record


def _record(line: int, text: str, place: int, loss: str) -> ListRecord:
    try:
        record = parse_json(text)
    except ValueError as error:
        raise DataError(f"expected a JSON object ({error})") from None
    if not isinstance(record, dict):
        raise DataError(f"expected a JSON object, found {_kind_of(record)}")
    candidates = record.pop("candidates", None)
    if not isinstance(candidates, list):
        raise DataError(f"expected a list, found {_kind_of(candidates)}", field="candidates")
    outputs = [_output(f"candidates[{k}]", fields, loss) for k, fields in enumerate(candidates)]
    name = record.pop("id", place)
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise DataError(f"expected a text or an integer, found {_kind_of(name)}", field="id")
    input = Input(
        _text(record.pop("input", None), "input"),
        _text(record.pop("reference", None), "reference"),
        _vector(record.pop("vector", None), "vector"),
        _vector(record.pop("reference_vector", None), "reference_vector"),
        record,
    )
    columns = zip(*outputs) if outputs else ([], [], [])
    return ListRecord(line, str(name), input, *columns)


def _output(place: str, fields: Any, loss: str) -> tuple[Output, float | None, float | None]:
    """An output with its score and its loss."""
    if not isinstance(fields, dict):
        problem = f"expected an object with a text, found {_kind_of(fields)}"
        raise DataError(problem, field=place)
    text = _text(fields.pop("text", None), f"{place}.text")
    if text is None:
        raise DataError("expected a text, found none", field=f"{place}.text")
    features = fields.pop("features", None)
    if features is not None:
        if not isinstance(features, dict):
            problem = f"expected names with numbers, found {_kind_of(features)}"
            raise DataError(problem, field=f"{place}.features")
        features = {
            name: _number(value, f"{place}.features.{name}") for name, value in features.items()
        }
    score, cost = fields.pop("score", None), fields.pop(loss, None)
    if cost is None and features:
        cost = features.pop(loss, None)
    vector = _vector(fields.pop("vector", None), f"{place}.vector")
    if score is not None:
        score = _number(score, f"{place}.score")
    if cost is not None:
        cost = check_loss(_number(cost, f"{place}.{loss}"), f"{place}.{loss}")
    return Output(text, features, vector, fields), score, cost


def _text(value: Any, field: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise DataError(f"expected a text, found {_kind_of(value)}", field=field)
    return value


def _vector(value: Any, field: str) -> Vector | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise DataError(f"expected a list of numbers, found {_kind_of(value)}", field=field)
    return np.array([_number(x, f"{field}[{k}]") for k, x in enumerate(value)], np.float64)


def _number(value: Any, field: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise DataError(f"expected a number, found {_kind_of(value)}", field=field)
    try:
        if math.isfinite(number := float(value)):
            return check_number(number, field)
    except OverflowError:
        pass
    raise DataError(f"expected a finite number, found {value!r:.20}", field=field)


def _kind_of(value: Any) -> str:
    """What JSON calls a value."""
    names = {type(None): "none", dict: "an object", list: "a list", str: "a text"}
    return names.get(type(value), "true or false" if isinstance(value, bool) else "a number")


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
