"""A reader of Vespa's ranking expressions, as far as rank profiles that are written here need it.

    expression = sum [("<=" | "==") sum]
    sum        = product {("+" | "-") product}
    product    = value {("*" | "/") value}
    value      = number | "-" value | "(" expression ")" | name ["(" [argument {"," argument}] ")"]

A function of the profile is called by its name, with or without parentheses.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError

RowValues = NDArray[np.float64]

TOKENS = re.compile(r"\s*([A-Za-z_]\w*|(?:\d+\.?\d*(?:[eE][+-]?\d+)?)|<=|==|[-+*/(),])")
BODY = r"function\s+(\w+)\s*\(\s*\)\s*\{\s*expression\s*(?::([^\n]*)\n|\{([^{}]*)\})\s*\}"

BUILT_IN: dict[str, Callable[..., Any]] = {
    "max": np.maximum,
    "min": np.minimum,
    "isNan": lambda x: np.isnan(x).astype(np.float64),
}


def evaluate_function(profile: str, name: str, attributes: Mapping[str, RowValues]) -> RowValues:
    """The values of a function of a rank profile, given those of attributes for all rows.

    >>> text = "function a() {\\n expression: attribute(x)\\n}"
    >>> text += "function b() { expression { if (a <= 1.5, 2 * a, -1) } }"
    >>> evaluate_function(text, "b", {"x": np.array([1.0, 2.0])}).tolist()
    [2.0, -1.0]
    """
    text = re.sub(r"#[^\n]*", "", profile)
    bodies = {own: line or block for own, line, block in re.findall(BODY, text)}
    return _Expression(bodies, attributes).function(name)


class _Expression:
    """One expression while it is read; values are those of all rows at once."""

    def __init__(self, bodies: Mapping[str, str], attributes: Mapping[str, RowValues]) -> None:
        self.bodies, self.attributes = bodies, attributes
        self.known: dict[str, RowValues] = {}
        self.tokens: list[str] = []
        self.place = 0

    def function(self, name: str) -> RowValues:
        """The values of a function, which are computed once."""
        if name not in self.known:
            outer = self.tokens, self.place
            self.tokens, self.place = _tokens(self.bodies[name]), 0
            self.known[name] = self.comparison()
            if self.place != len(self.tokens):
                raise DataError(f"expected an end, found {self.tokens[self.place]!r}", field=name)
            self.tokens, self.place = outer
        return self.known[name]

    def take(self, *wanted: str) -> str | None:
        """The next token if it is one of those wanted."""
        found = self.next_token()
        if found not in wanted:
            return None
        self.place += 1
        return found

    def next_token(self) -> str:
        """The next token, which is empty at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def expect(self, wanted: str) -> None:
        """Go on behind a token that must be there."""
        if self.take(wanted) is None:
            raise DataError(f"expected {wanted!r}, found {self.next_token()!r}", field="expression")

    def comparison(self) -> RowValues:
        left = self.chain(self.product, {"+": operator.add, "-": operator.sub})
        if sign := self.take("<=", "=="):
            right = self.chain(self.product, {"+": operator.add, "-": operator.sub})
            compare = operator.le if sign == "<=" else operator.eq
            return np.asarray(compare(left, right), np.float64)
        return left

    def product(self) -> RowValues:
        return self.chain(self.value, {"*": operator.mul, "/": operator.truediv})

    def chain(
        self, part: Callable[[], RowValues], signs: Mapping[str, Callable[[Any, Any], Any]]
    ) -> RowValues:
        """Parts with signs between them, from left to right."""
        total = part()
        while sign := self.take(*signs):
            total = signs[sign](total, part())
        return total

    def value(self) -> RowValues:
        if self.take("-"):
            return -self.value()
        if self.take("("):
            inner = self.comparison()
            self.expect(")")
            return inner
        token = self.next_token()
        self.place += 1
        return np.asarray(np.float64(token)) if token[:1].isdigit() else self.named(token)

    def named(self, name: str) -> RowValues:
        """A function of the profile, a feature or a built-in function."""
        if name in self.bodies:
            return self.function(name)
        if name not in ("attribute", "if", *BUILT_IN):
            raise DataError(f"expected a value, found {name!r}", field="expression")
        self.expect("(")
        if name == "attribute":
            attribute = self.take(*self.attributes)
            self.expect(")")
            return self.attributes[attribute or ""]
        arguments = [self.comparison()]
        while self.take(","):
            arguments.append(self.comparison())
        self.expect(")")
        if name == "if":
            condition, if_true, if_false = arguments
            return np.where(condition != 0, if_true, if_false)
        return np.asarray(BUILT_IN[name](*arguments))


def _tokens(text: str) -> list[str]:
    found, place, text = [], 0, text.strip()
    while place < len(text):
        match = TOKENS.match(text, place)
        if match is None:
            raise DataError(f"cannot be read: {text[place : place + 20]!r}", field="expression")
        found.append(match[1])
        place = match.end()
    return found
