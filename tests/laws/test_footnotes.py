"""A footnote explains a mark if, and only if, the table above it carries the mark."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from didyma.cli.nbest import _comparison_text
from didyma.cli.options import PairedTest
from didyma.data.groups import Groups
from didyma.metrics import Evaluation, parse
from didyma.report.html import write_report
from didyma.report.table import ComparisonTable, Row, footnote
from tests.docs.blocks import PAGES, name_of

MARKED = re.compile(r"\d(?:\$\^\{)?\*")  # .0123* and, in LaTeX, .0123$^{*}$
EXPLAINED = re.compile(r"(?m)^\W*\* ")


def table_of(p_values: list[float]) -> ComparisonTable:
    others = [Row(f"new {k}", {"AP": 0.5}, 0.1, 3, 2, 1, p) for k, p in enumerate(p_values)]
    rows = (Row("old", {"AP": 0.4}), *others)
    return ComparisonTable(rows, "AP", "old", "wilcoxon", corrected=False, n_queries=6)


def as_rich(table: ComparisonTable) -> str:
    console = Console(width=200)
    with console.capture() as shown:
        console.print(table.rich())
    return shown.get()


def as_nbest_text(table: ComparisonTable) -> str:
    lists = SimpleNamespace(groups=Groups.from_sizes([2] * 6, 12))
    judge = SimpleNamespace(lists=lists, measure="given", n_empty=0)
    return _comparison_text(table.rows, judge, "wilcoxon", holm=False)


@pytest.mark.parametrize(
    "render", [ComparisonTable.text, ComparisonTable.latex, as_rich, as_nbest_text]
)
@given(p_values=st.lists(st.floats(0, 1) | st.sampled_from([0.05, 0.0499]), max_size=3))
@settings(max_examples=50)
def test_a_star_is_explained_where_there_is_one(
    render: Callable[[ComparisonTable], str], p_values: list[float]
) -> None:
    text = render(table_of(p_values))
    starred = any(p < 0.05 for p in p_values)
    assert bool(MARKED.search(text)) == starred
    assert bool(EXPLAINED.search(text)) == starred
    assert ("two-tailed Wilcoxon test" in text) == bool(p_values)  # p is explained in any case


@pytest.mark.parametrize("p_values", [[], [0.3], [0.3, 0.01]])
def test_a_page_explains_the_star_where_there_is_one(tmp_path: Path, p_values: list[float]) -> None:
    pytest.importorskip("matplotlib")
    table, values = table_of(p_values), {parse("AP"): np.linspace(0, 1, 6)}
    evaluations = {row.name: Evaluation(np.arange(6), values) for row in table.rows}
    write_report(tmp_path / "page.html", title="", table=table, evaluations=evaluations)
    page = (tmp_path / "page.html").read_text()
    starred = any(p < 0.05 for p in p_values)
    assert bool(MARKED.search(page[page.index("<table>") : page.index("</table>")])) == starred
    assert ("<figcaption>* p &lt; .05" in page) == starred


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_of_the_documentation_explain_no_star_that_they_lack(page: Path) -> None:
    above = ""
    for line in page.read_text().splitlines():
        if re.match(r"\\?\* .*\bp < ", line):
            assert MARKED.search(above), f"{page.name}: {line}"
            above = ""
        above += f"{line}\n"


def test_every_test_has_a_name_for_the_footnote() -> None:
    rows = table_of([0.3]).rows
    for test in get_args(PairedTest):
        assert "two-tailed" in footnote(rows, test.removesuffix("-test"), "", corrected=False)
