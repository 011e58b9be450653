"""Tables as text: columns, and systems side by side with a paired test against a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from didyma.errors import DataError
from didyma.values import decimal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

    from didyma.metrics import Comparison, Evaluation

__all__ = [
    "ComparisonTable",
    "Row",
    "aligned",
    "comparison",
    "footnote",
    "listed",
    "markdown",
    "p_value_text",
]

SIGNIFICANT = 0.05
TEST_NAMES = {
    "wilcoxon": "Wilcoxon test",
    "t": "paired t-test",
    "randomisation": "randomisation test",
}


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Rows of cells as columns, the first flush left and the others flush right.

    >>> print(aligned([["", "AP"], ["baseline", ".31"]]))
               AP
    baseline  .31
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        indent + "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]).rstrip()
        for first, *rest in rows
    )


def listed(values: Mapping[str, object], *, indent: str = "") -> str:
    """Names and values, one pair a line.

    >>> print(listed({"queries": 12, "saved to": "model"}))
    queries   12
    saved to  model
    """
    width = max(map(len, values))
    return "\n".join(f"{indent}{name:<{width}}  {value}" for name, value in values.items())


def p_value_text(p: float) -> str:
    """A p-value of four decimals, never rounded to 0."""
    return decimal(p) if p >= 0.00005 else "<.0001"


@dataclass(frozen=True)
class Row:
    """A system: the mean of each measure by name, and its comparison with the baseline.

    ``difference`` and ``wins`` are in favour of the system; the baseline has None in these places.
    """

    name: str
    means: Mapping[str, float]
    difference: float | None = None
    wins: int | None = None
    losses: int | None = None
    ties: int | None = None
    p_value: float | None = None

    @classmethod
    def compared(cls, name: str, means: Mapping[str, float], result: Comparison) -> Row:
        """A system, and what a paired test says of it and the baseline."""
        counts = result.wins, result.losses, result.ties
        return cls(name, means, result.difference, *counts, result.p_value)

    @property
    def star(self) -> bool:
        """Whether the difference, for better or worse, is significant at the level .05."""
        return self.p_value is not None and self.p_value < SIGNIFICANT

    @property
    def cells(self) -> list[str]:
        """Name, means, difference, wins / losses / ties and p, the last three empty without any."""
        against = ["", "", ""]
        if self.p_value is not None:
            against = [
                decimal(self.difference, signed=True) + ("*" if self.star else " "),
                f"{self.wins}/{self.losses}/{self.ties}",
                p_value_text(self.p_value),
            ]
        return [self.name, *map(decimal, self.means.values()), *against]


@dataclass(frozen=True)
class ComparisonTable:
    """Systems in the order given, compared on ``measure`` with the one named ``baseline``."""

    rows: tuple[Row, ...]
    measure: str
    baseline: str
    test: str
    corrected: bool
    n_queries: int

    @property
    def caption(self) -> str:
        """What the numbers stand for: the p-values, and the star if there is one."""
        over = f"over {self.n_queries} queries"
        compared = f"of {self.measure} against {self.baseline} {over}"
        return footnote(self.rows, self.test, compared, self.corrected) or f"means {over}"

    def to_dict(self) -> dict[str, Any]:
        """All of it, unrounded, ready for JSON."""
        systems = []
        for row in self.rows:
            record = asdict(row)
            record["means"] = {name: _finite(mean) for name, mean in row.means.items()}
            systems.append(record | {"significant": row.star})
        return {
            "measure": self.measure,
            "baseline": self.baseline,
            "test": self.test,
            "corrected": self.corrected,
            "n_queries": self.n_queries,
            "systems": systems,
        }

    def text(self) -> str:
        """Plain columns, as wide as they need to be."""
        rows = [self._head("diff"), *(row.cells for row in self.rows)]
        return f"{aligned(rows)}\n{self.caption}"

    def latex(self) -> str:
        """A tabular for the package booktabs."""
        columns = "l" + "r" * (len(self._head("")) - 1)
        lines = [
            f"% {self.caption}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_line(self._head("Δ")),
            r"\midrule",
            *(_latex_line(row.cells) for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines)

    def rich(self) -> Table:
        """The table for a terminal, to be printed by a console of rich."""
        from rich.table import Table
        from rich.text import Text

        table = Table(caption=self.caption, caption_justify="left")
        for place, name in enumerate(self._head("Δ")):
            table.add_column(Text(name), justify="right" if place else "left")
        for row in self.rows:
            style = "bold" if row.star else "dim" if row.name == self.baseline else ""
            table.add_row(*map(Text, row.cells), style=style)
        return table

    def _head(self, difference: str) -> list[str]:
        return ["system", *self.rows[0].means, f"{difference} {self.measure}", "W/L/T", "p"]


def comparison(
    evaluations: Mapping[str, Evaluation],
    *,
    measure: str = "AP",
    baseline: str | None = None,
    test: str = "wilcoxon",
    correct: bool = False,
) -> ComparisonTable:
    """Compare systems, each named, with one of them (the first unless ``baseline`` says which).

    All must have been evaluated by the same measures on the same queries, in any order. ``test`` is
    "wilcoxon", "t-test" or "randomisation"; ``correct`` applies Holm's correction.

    >>> from didyma.data.lists import Groups
    >>> from didyma.metrics import evaluate
    >>> groups, y = Groups.from_qid(["a", "a", "b", "b"]), [1, 0, 0, 1]
    >>> systems = {
    ...     "old": evaluate([1, 2, 1, 2], y, groups, "AP RR"),
    ...     "new": evaluate([2, 1, 1, 2], y, groups, "AP RR"),
    ... }
    >>> print(comparison(systems).text())
    system      AP      RR  diff AP  W/L/T       p
    old      .7500   .7500
    new     1.0000  1.0000  +.2500   1/0/1  1.0000
    p: two-tailed Wilcoxon test of AP against old over 2 queries
    """
    from didyma.metrics import compare, parse
    from didyma.metrics.significance import TESTS

    if not evaluations:
        raise DataError("there are no systems to compare")
    key = test.lower().removesuffix("-test")
    if key not in TESTS:
        raise DataError(f"expected wilcoxon, t-test or randomisation, found {test!r}", field="test")
    name = next(iter(evaluations)) if baseline is None else baseline
    if name not in evaluations:
        raise DataError(
            f"expected one of {', '.join(evaluations)}, found {name!r}", field="baseline"
        )
    chosen, reference = parse(measure), evaluations[name]
    for system, evaluation in evaluations.items():
        if missing := [m for m in (chosen, *reference.values) if m not in evaluation.values]:
            raise DataError(f"{system} was not evaluated by {', '.join(map(str, missing))}")
    values = {
        system: evaluation[chosen][_alignment(system, evaluation, name, reference)]
        for system, evaluation in evaluations.items()
    }
    others = {system: column for system, column in values.items() if system != name}
    results = compare(values[name], others, test=TESTS[key], correct=correct)
    rows = []
    for system, evaluation in evaluations.items():
        means = {str(m): evaluation.mean(m) for m in reference.values}
        if system == name:
            rows.append(Row(system, means))
        else:
            rows.append(Row.compared(system, means, results[system]))
    return ComparisonTable(
        tuple(rows), str(chosen), name, key, correct, n_queries=len(reference.queries)
    )


def footnote(rows: Sequence[Row], test: str, compared: str, corrected: bool) -> str:
    """The line below a table that says by which test its p-values came about.

    The star is explained only if a row has one, and a table without p-values needs no such line.

    >>> rows = [Row("old", {"AP": 0.2}), Row("new", {"AP": 0.3}, 0.1, 5, 2, 1, p_value=0.2)]
    >>> footnote(rows, "t", "against old", False)
    'p: two-tailed paired t-test against old'
    """
    if all(row.p_value is None for row in rows):
        return ""
    mark = "* p < .05" if any(row.star for row in rows) else "p"
    correction = ", Holm-corrected" if corrected else ""
    return f"{mark}: two-tailed {TEST_NAMES[test]} {compared}{correction}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with columns of even width, so that it reads well on a terminal too."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    text = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths)) + " |" for line in lines]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])


def _alignment(
    system: str, evaluation: Evaluation, baseline: str, reference: Evaluation
) -> list[int]:
    """Places of the reference's queries among those of the system."""
    places = {query: place for place, query in enumerate(_names(evaluation.queries))}
    expected = dict.fromkeys(_names(reference.queries))
    for lacking, queries in (
        (system, [query for query in expected if query not in places]),
        (baseline, [query for query in places if query not in expected]),
    ):
        if queries:
            shown = ", ".join(queries[:5]) + (", …" if len(queries) > 5 else "")
            raise DataError(
                f"expected the same queries from {baseline} and {system}, but {lacking} lacks "
                f"{len(queries)}: {shown}"
            )
    return [places[query] for query in expected]


def _names(queries: NDArray[Any]) -> list[str]:
    return [str(query) for query in queries.tolist()]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "Δ": r"$\Delta$",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    }
)


def _latex_line(cells: Sequence[str]) -> str:
    name, *numbers = (cell.strip().translate(_LATEX) for cell in cells)
    return " & ".join([name, *map(_latex_number, numbers)]) + r" \\"


def _latex_number(cell: str) -> str:
    sign, rest = (f"${cell[0]}$", cell[1:]) if cell[:1] in ("+", "-") else ("", cell)
    return sign + (rest[:-1] + "$^{*}$" if rest.endswith("*") else rest)
