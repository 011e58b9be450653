"""Lines of a file of n-best lists, and values in them, with errors that name their place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, read_lines

Vector: TypeAlias = "NDArray[np.float64]"


class Lines:
    """The lines of a file that are not blank, and errors that name the current one."""

    def __init__(self, path: PathName) -> None:
        self.path, self.number = path, 0
        self._texts = read_lines(path)

    @property
    def are_json(self) -> bool:
        """Whether the first one begins with a brace."""
        return next((text for text in self._texts if text.strip()), "").lstrip().startswith("{")

    def __iter__(self) -> Iterator[str]:
        for number, text in enumerate(self._texts, 1):
            if text.strip():
                self.number = number
                yield text

    def fail(self, problem: str, field: str | None = None, line: int | None = None) -> NoReturn:
        """Refuse the current line, or another."""
        raise DataError(problem, path=self.path, line=line or self.number, field=field)

    def number_of(self, value: Any, field: str) -> float:
        """A finite number."""
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            self.fail(f"expected a number, found {kind_of(value)}", field)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(f"expected a finite number, found {value!r:.20}", field)
        return number

    def parsed(self, word: str, field: str) -> float:
        """A finite number that is written as a word."""
        try:
            number = math.nan if "_" in word else float(word)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"expected a finite number, found {word!r}", field)
        return number

    def loss(self, value: Any, field: str) -> float:
        """A number of 0 or more."""
        loss = self.number_of(value, field)
        if loss < 0:
            self.fail(f"expected a loss of 0 or more, found {loss:g}", field)
        return loss

    def text(self, value: Any, field: str) -> str | None:
        """A text, or nothing."""
        if value is not None and not isinstance(value, str):
            self.fail(f"expected a text, found {kind_of(value)}", field)
        return value

    def vector(self, value: Any, field: str) -> Vector | None:
        """A list of numbers, or nothing."""
        if value is None:
            return None
        if not isinstance(value, list):
            self.fail(f"expected a list of numbers, found {kind_of(value)}", field)
        numbers = [self.number_of(x, f"{field}[{k}]") for k, x in enumerate(value)]
        return np.array(numbers, np.float64)


def kind_of(value: Any) -> str:
    """What JSON calls a value."""
    names = {type(None): "none", dict: "an object", list: "a list", str: "a text"}
    return names.get(type(value), "true or false" if isinstance(value, bool) else "a number")
