"""A comparison as one HTML file: table, plots and examples, with nothing to load beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma.files import PathName
from didyma.report import plots
from didyma.report.page import PagePlot, require_extra, write_page
from didyma.report.table import ComparisonTable, p_value_text
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.metrics import Evaluation
    from didyma.report.functions import AdditiveTerm
    from didyma.text.calibration import Calibration
    from didyma.text.drift import Drift

__all__ = [
    "Example",
    "PageTable",
    "RankedPassage",
    "rankings_of",
    "require_extra",
    "write_report",
]

TEMPLATE = Path(__file__).with_name("report.html.j2")
N_MOVED = 5  # queries that are listed for gains, and for losses
N_WEIGHTS = 24  # that are drawn
N_PASSAGES, N_LETTERS = 5, 220  # of an example: passages of a ranking, letters of each
N_DRIFTS = 10  # features that are listed, the most distant from training first


@dataclass(frozen=True)
class RankedPassage:
    """A passage, its rank here and in the other ranking, and whether it is relevant."""

    rank: int
    other_rank: int
    text: str
    relevant: bool


@dataclass(frozen=True)
class Example:
    """The first passages for a query, as systems rank them, by the name of the system."""

    query: str
    remark: str
    rankings: Mapping[str, Sequence[RankedPassage]]


def rankings_of(
    orders: Mapping[str, Sequence[int]],
    texts: Sequence[str],
    relevant: Sequence[bool] | NDArray[np.bool_],
) -> dict[str, list[RankedPassage]]:
    """The first passages of two orders of the same rows, by the name of the system.

    >>> orders = {"old": [0, 1], "new": [1, 0]}
    >>> rankings_of(orders, ["It rains.", "They ring."], [False, True])["new"][0]
    RankedPassage(rank=1, other_rank=2, text='They ring.', relevant=True)
    """
    others = dict(zip(orders, [*orders.values()][::-1]))
    return {
        name: [
            RankedPassage(
                rank,
                others[name].index(row) + 1,
                textwrap.shorten(texts[row], N_LETTERS, placeholder=" …"),
                bool(relevant[row]),
            )
            for rank, row in enumerate(order[:N_PASSAGES], 1)
        ]
        for name, order in orders.items()
    }


@dataclass(frozen=True)
class PageTable:
    """A table of texts with a heading; the first cell of a row is its name."""

    heading: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_report(
    path: PathName,
    *,
    title: str,
    table: ComparisonTable,
    evaluations: Mapping[str, Evaluation],
    lead: str = "",
    queries: Mapping[str, str] | None = None,
    histories: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    curves: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    weights: Mapping[str, Mapping[str, float]] | None = None,
    functions: Mapping[str, Sequence[AdditiveTerm]] | None = None,
    calibrations: Mapping[str, Calibration] | None = None,
    drifts: Mapping[str, Drift] | None = None,
    tables: Sequence[PageTable] = (),
    examples: Sequence[Example] = (),
    notes: Sequence[str] = (),
) -> None:
    """Write a self-contained page, whole or not at all.

    Parameters
    ----------
    path, title
        Where it goes, and its heading.
    table : ComparisonTable
        The systems and their baseline.
    evaluations : by system
        What the table sums up, query by query, each in the same order of queries.
    lead : str
        A paragraph that says what is compared.
    queries : by query id
        Texts to show instead of ids.
    histories : by system
        The ``history_`` of rankers: how their gap closes.
    curves : by system
        Pairs of C and the value of the measure on development data.
    weights : by system
        Weight of each feature by name.
    functions : by system
        What an additive ranker adds up (`didyma.report.terms`), drawn one by one.
    calibrations : by system
        What its scores mean.
    drifts : by system
        How far the queries are from those that it was trained on.
    tables, examples, notes
        Further tables, rankings to read, and paragraphs that say how the numbers came about.

    Sections without contents are left out.
    """
    others = [row.name for row in table.rows if row.name != table.baseline]
    gains = {
        name: evaluations[name][table.measure] - evaluations[table.baseline][table.measure]
        for name in others
    }
    write_page(
        TEMPLATE,
        path,
        title=title,
        lead=lead,
        table=table,
        head=list(table.rows[0].means),
        best={name: max(row.means[name] for row in table.rows) for name in table.rows[0].means},
        decimal=decimal,
        p_value_text=p_value_text,
        difference_plots=list(_difference_plots(table, gains)),
        moved=_moved(table, evaluations, gains, queries or {}),
        training_plots=list(_training_plots(table, histories or {}, curves or {})),
        weight_plots=list(_weight_plots(weights or {})),
        function_plots={
            name: list(map(_function_plot, of)) for name, of in (functions or {}).items()
        },
        reliability_plots=list(_reliability_plots(calibrations or {})),
        drifts=drifts or {},
        n_drifts=N_DRIFTS,
        tables=tables,
        examples=examples,
        notes=notes,
    )


def _difference_plots(table: ComparisonTable, gains: Mapping[str, Any]) -> Iterator[PagePlot]:
    changes = np.concatenate([[0.0], *gains.values()])
    limits = (1.1 * float(changes.min()) - 0.02, 1.1 * float(changes.max()) + 0.02)
    for row in table.rows:
        if row.name in gains:
            sentence = (
                f"{row.name} is better than {table.baseline} on {row.wins} queries, "
                f"worse on {row.losses} and equal on {row.ties}."
            )
            label = f"Sorted bars. {sentence}"
            svg = plots.differences(gains[row.name], table.measure, label, limits=limits)
            yield PagePlot(f"{row.name} − {table.baseline}", svg, sentence)


def _moved(
    table: ComparisonTable,
    evaluations: Mapping[str, Evaluation],
    gains: Mapping[str, Any],
    texts: Mapping[str, str],
) -> dict[str, Any] | None:
    """The queries that the best system helps and hurts most."""
    if not gains:
        return None
    means = {row.name: row.means[table.measure] for row in table.rows}
    system = max(gains, key=lambda name: means[name])
    before, after = (evaluations[name][table.measure] for name in (table.baseline, system))
    queries = [texts.get(str(query), str(query)) for query in evaluations[system].queries]
    order = np.argsort(-gains[system], kind="stable")
    gained = [place for place in order[:N_MOVED] if gains[system][place] > 0]
    lost = [place for place in order[::-1][:N_MOVED] if gains[system][place] < 0]
    lists = {"Most gained": gained, "Most lost": lost}
    return {
        "system": system,
        "lists": {
            heading: [(queries[place], before[place], after[place]) for place in places]
            for heading, places in lists.items()
        },
    }


def _training_plots(
    table: ComparisonTable,
    histories: Mapping[str, Sequence[Mapping[str, Any]]],
    curves: Mapping[str, Sequence[tuple[float, float]]],
) -> Iterator[PagePlot]:
    if histories := {name: history for name, history in histories.items() if history}:
        passes = [f"{name} {history[-1]['passes']:.3g}" for name, history in histories.items()]
        sentence = f"Passes in all: {', '.join(passes)}."
        if any(history[0]["C"] != history[-1]["C"] for history in histories.values()):
            sentence += " Faint: smaller values of C, on the way to the one that was asked for."
        svg = plots.convergence(histories, f"Relative gap over passes. {sentence}")
        yield PagePlot("Convergence of the duality gap", svg, sentence)
    if curves:
        best = {name: max(curve, key=lambda point: point[1]) for name, curve in curves.items()}
        chosen = [f"{name} C = {C:g} ({decimal(value)})" for name, (C, value) in best.items()]
        sentence = f"Best: {', '.join(chosen)}."
        svg = plots.curves(curves, f"development {table.measure}", f"Curves over C. {sentence}")
        yield PagePlot(f"Development {table.measure} over C", svg, sentence)


def _weight_plots(weights: Mapping[str, Mapping[str, float]]) -> Iterator[PagePlot]:
    """Bars for each system, all in the order of the first system's magnitudes.

    Of many features those are drawn whose weights are great for some system.
    """
    if not weights:
        return
    first = next(iter(weights.values()))
    greatest = {
        name: max(map(abs, of_feature.values())) or 1.0 for name, of_feature in weights.items()
    }
    matter = {
        name: max(abs(weights[system][name]) / greatest[system] for system in weights)
        for name in first
    }
    drawn = sorted(first, key=lambda name: -matter[name])[:N_WEIGHTS]
    order = sorted(drawn, key=lambda name: -abs(first[name]))
    for system, of_feature in weights.items():
        bars = {name: of_feature[name] for name in order}
        strongest = max(order, key=lambda name: abs(bars[name]))
        sentence = f"The greatest weight is that of {strongest}, {bars[strongest]:+.3g}."
        if others := len(first) - len(order):
            sentence += f" Not drawn: {others} features with smaller ones."
        yield PagePlot(system, plots.signed_bars(bars, f"Bars. {sentence}"), sentence)


def _function_plot(term: AdditiveTerm) -> PagePlot:
    sentence = f"What it adds has a deviation of {term.importance:.3g}."
    if term.changed is not None:
        sentence += f" It changes the order of {term.changed:.0%} of the queries."
    svg = plots.function(term, f"What {term.title} adds to a score. {sentence}")
    return PagePlot(term.title, svg, sentence)


def _reliability_plots(calibrations: Mapping[str, Calibration]) -> Iterator[PagePlot]:
    for system, calibration in calibrations.items():
        if calibration.bins:
            sentence = (
                f"The mean distance of score and share is {decimal(calibration.error)} over "
                f"{sum(each.passages for each in calibration.bins)} passages."
            )
            svg = plots.reliability(calibration.bins, f"Points with intervals. {sentence}")
            yield PagePlot(system, svg, sentence)
