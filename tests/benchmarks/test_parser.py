"""The parser's benchmark in small."""

from __future__ import annotations

import math

from benchmarks import parser
from didyma.data import conll


def test_the_parser_is_measured_beside_what_is_installed(monkeypatch):
    monkeypatch.setattr(parser, "environment", lambda package: None)
    rows = parser.run(0.005)
    absent = [row.name for row in rows if row.figure == "absent"]
    assert absent == ["spaCy: parsing"]
    assert all(math.isfinite(row.value) and row.value > 0 for row in rows if row.name not in absent)
    assert sum(row.ok is not None for row in rows) == 3


def test_joined_sentences_are_trees():
    trees = conll.read(parser.DATA, trees=True)[:3]
    one = parser.joined(trees)
    one.check_tree()
    assert one.words == sum((tree.words for tree in trees), ())
    assert (one.heads == 0).sum() == 1
