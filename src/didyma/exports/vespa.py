"""Rank profiles of Vespa, which computes in double precision, and a reader of them.

The file is a ``rank-profile`` to be put into a schema. Each column is a function of its own, at
first an attribute: there one says where its value comes from. The reader knows as much of ranking
expressions as these profiles need:

    expression = sum [("<=" | "==") sum]
    sum        = product {("+" | "-") product}
    product    = value {("*" | "/") value}
    value      = number | "-" value | "(" expression ")" | name ["(" [argument {"," argument}] ")"]

A function of the profile is called by its name, with or without parentheses.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from didyma.errors import DataError
from didyma.exports.description import ColumnLine, Description, FloatArray
from didyma.exports.engine import Engine, spelled
from didyma.exports.trees import Branch, BranchOrLeaf, trees_of

TOKENS = re.compile(r"\s*([A-Za-z_]\w*|(?:\d+\.?\d*(?:[eE][+-]?\d+)?)|<=|==|[-+*/(),])")
BODY = r"function\s+(\w+)\s*\(\s*\)\s*\{\s*expression\s*(?::([^\n]*)\n|\{([^{}]*)\})\s*\}"

BUILT_IN: dict[str, Callable[..., Any]] = {
    "max": np.maximum,
    "min": np.minimum,
    "isNan": lambda x: np.isnan(x).astype(np.float64),
}

COMMENT = """\
# Written by didyma. Each function feature_… says where the value of a column comes from: replace
# attribute(…) by query(…), bm25(…) or any other rank feature where it is no field of documents.
"""


class Vespa(Engine):
    """A rank profile."""

    title = "Vespa"
    by_name = True
    illegal = "[^A-Za-z0-9_]|^(?=[0-9])"  # names are identifiers

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The text of a rank profile."""
        terms = [_product(line, _feature(names[line.column])) for line in description.lines]
        terms += [_if(tree, names) for tree in trees_of(description)]
        if description.constant:
            terms.append(_number(description.constant))
        features = (
            _block(f"function {_feature(names[j])}()", f"expression: attribute({names[j]})")
            for j in description.columns
        )
        total = _block("function score()", _block("expression", " +\n".join(terms)))
        phase = _block("first-phase", "expression: score")
        profile = spelled([name], self.illegal)[0]
        text = _block(f"rank-profile {profile}", *features, total, phase)
        return f"{COMMENT}{text}\n".encode()

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores by the text of the profile."""
        attributes = dict(zip(names, rows.T))
        scores = evaluate_function(contents.decode(), "score", attributes)
        return np.broadcast_to(scores, len(rows)).astype(np.float64)


def _block(head: str, *parts: str) -> str:
    lines = [f"    {line}" for part in parts for line in part.splitlines()]
    return "\n".join([f"{head} {{", *lines, "}"])


def _feature(name: str) -> str:
    return f"feature_{name}"


def _number(value: float) -> str:
    """A constant; one with a sign in parentheses."""
    return repr(value) if value >= 0 else f"({value!r})"


def _product(line: ColumnLine, x: str) -> str:
    if line.low > -np.inf:
        x = f"max({x}, {_number(line.low)})"
    if line.high < np.inf:
        x = f"min({x}, {_number(line.high)})"
    if line.centre:
        x = f"({x} - {_number(line.centre)})"
    scaled = f" / {_number(line.scale)}" if line.scale != 1 else ""
    return f"{_number(line.weight)} * {x}{scaled}"


def _if(node: BranchOrLeaf, names: Sequence[str]) -> str:
    if not isinstance(node, Branch):
        return _number(node)
    x, low, high = _feature(names[node.column]), _if(node.low, names), _if(node.high, names)
    if node.threshold == np.inf:
        return f"if (isNan({x}) == 1, {high}, {low})"
    return f"if ({x} <= {_number(node.threshold)}, {low}, {high})"


def evaluate_function(profile: str, name: str, attributes: Mapping[str, FloatArray]) -> FloatArray:
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

    def __init__(self, bodies: Mapping[str, str], attributes: Mapping[str, FloatArray]) -> None:
        self.bodies, self.attributes = bodies, attributes
        self.evaluated: dict[str, FloatArray] = {}
        self.tokens: list[str] = []
        self.place = 0

    def function(self, name: str) -> FloatArray:
        """The values of a function, which are computed once."""
        if name not in self.evaluated:
            outer = self.tokens, self.place
            self.tokens, self.place = _tokens(self.bodies[name]), 0
            self.evaluated[name] = self.comparison()
            if self.place != len(self.tokens):
                raise DataError(f"expected an end, found {self.tokens[self.place]!r}", field=name)
            self.tokens, self.place = outer
        return self.evaluated[name]

    def take(self, *wanted: str) -> str | None:
        """The next token if it is one of those wanted."""
        token = self.next_token()
        if token not in wanted:
            return None
        self.place += 1
        return token

    def next_token(self) -> str:
        """The next token, which is empty at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def expect(self, wanted: str) -> None:
        """Go on behind a token that must be there."""
        if self.take(wanted) is None:
            raise DataError(f"expected {wanted!r}, found {self.next_token()!r}", field="expression")

    def comparison(self) -> FloatArray:
        left = self.sum()
        if sign := self.take("<=", "=="):
            compare = operator.le if sign == "<=" else operator.eq
            return np.asarray(compare(left, self.sum()), np.float64)
        return left

    def sum(self) -> FloatArray:
        return self.chain(self.product, {"+": operator.add, "-": operator.sub})

    def product(self) -> FloatArray:
        return self.chain(self.value, {"*": operator.mul, "/": operator.truediv})

    def chain(
        self, part: Callable[[], FloatArray], signs: Mapping[str, Callable[[Any, Any], Any]]
    ) -> FloatArray:
        """Parts with signs between them, from left to right."""
        total = part()
        while sign := self.take(*signs):
            total = signs[sign](total, part())
        return total

    def value(self) -> FloatArray:
        if self.take("-"):
            return -self.value()
        if self.take("("):
            inner = self.comparison()
            self.expect(")")
            return inner
        token = self.next_token()
        self.place += 1
        return np.asarray(np.float64(token)) if token[:1].isdigit() else self.named(token)

    def named(self, name: str) -> FloatArray:
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
    tokens, place, text = [], 0, text.strip()
    while place < len(text):
        match = TOKENS.match(text, place)
        if match is None:
            raise DataError(f"cannot be read: {text[place : place + 20]!r}", field="expression")
        tokens.append(match[1])
        place = match.end()
    return tokens
