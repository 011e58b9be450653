"""JSON values and JSON lines, an object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

from didyma.data.categories import TextFoundError
from didyma.errors import DataError
from didyma.files import PathName, stream_lines

__all__ = ["number_of", "objects", "parse_json"]


def objects(path: PathName) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object on each line that is not blank, and the number of the line."""
    for number, line in enumerate(stream_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line.decode())
        except UnicodeDecodeError:
            raise DataError("expected UTF-8 text", path=path, line=number) from None
        except ValueError as error:
            raise DataError(f"expected a JSON object ({error})", path=path, line=number) from None
        if not isinstance(record, dict):
            raise DataError("expected a JSON object", path=path, line=number)
        yield number, record


def parse_json(text: str) -> Any:
    """A JSON value; what cannot be one, or could not be written again, is a `ValueError`.

    >>> parse_json('{"word": "\\\\ud800"}')
    Traceback (most recent call last):
    ValueError: half of a surrogate pair
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair") from None
    return value


def number_of(value: Any, field: str) -> float:
    """A finite number, of a value as JSON has it."""
    if isinstance(value, Real):
        try:
            if math.isfinite(number := float(value)):
                return number
        except OverflowError:
            pass
    value_shown = "none" if value is None else f"{value!r:.40}"
    problem = f"expected a finite number, found {value_shown}"
    raise (TextFoundError if isinstance(value, str) else DataError)(problem, field=field)
