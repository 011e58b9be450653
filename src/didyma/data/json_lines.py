"""JSON lines: an object a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from didyma.data.text import parse_json
from didyma.errors import DataError
from didyma.files import PathName, stream_lines

__all__ = ["objects"]


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
