"""Drawing by matplotlib: figures as files, and plots of a page.

Plots of a page are SVG texts that take their colours from it, and so follow its light or dark
theme. The same input gives the same file, byte for byte.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from didyma.errors import DataError, MissingExtraError
from didyma.files import PathName, format_suffix, replace_when_done

if TYPE_CHECKING:
    from didyma.report.functions import AdditiveTerm
    from didyma.text.calibration import Reliability
    from didyma.text.cascade_curve import CascadeCurve

__all__ = [
    "as_picture",
    "as_svg",
    "check_picture",
    "convergence",
    "curves",
    "differences",
    "function",
    "line_style",
    "reliability",
    "require_matplotlib",
    "signed_bars",
    "write_picture",
]

PICTURES = (".png", ".svg", ".pdf")
# Okabe and Ito's, told apart by colour-blind readers and by their lightness.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
# Colours that matplotlib writes, and what they become in the page.
INK, FAINT, WIN, LOSS = "#010101", "#020202", "#030303", "#040404"
SERIES = tuple(f"#0505{number:02x}" for number in range(1, 7))
PAGE_COLOURS = {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    WIN: "var(--win)",
    LOSS: "var(--loss)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, 1)},
}
MARKERS, LINES = "os^Dvp", ("-", "--", ":", "-.")  # no line is told by its colour alone
SVG = {"svg.fonttype": "none", "svg.hashsalt": "didyma"}  # texts stay texts, ids are the same
STYLE = {
    **SVG,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
_NEEDLESS = (
    re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL),
    re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.DOTALL),
    re.compile(r"(?<=<g) id=\"[^\"]*\""),
    re.compile(r"font-family: [^;]*; "),
)
# Inches: a plot is as wide as its column of the page, so that its texts keep their size.
NARROW, WIDE = 3.3, 4.6


def differences(
    values: ArrayLike, measure: str, label: str, *, limits: tuple[float, float] = (-1, 1)
) -> str:
    """Sorted bars, one for each query: how much a system gains or loses on it."""
    bars = np.sort(np.asarray(values, dtype=np.float64))[::-1]

    def draw(axes: Any) -> None:
        axes.bar(np.arange(1, len(bars) + 1), bars, width=1.0, color=_signed_colours(bars))
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set(xlim=(0.5, len(bars) + 0.5), ylim=limits)
        axes.set(xlabel="queries, best gain first", ylabel=f"difference in {measure}")
        axes.grid(axis="x", visible=False)

    return as_svg(draw, NARROW, 2.1, label)


def convergence(histories: Mapping[str, Sequence[Mapping[str, Any]]], label: str) -> str:
    """Relative duality gap over passes through the data, on a logarithmic scale.

    A solver may work its way up to C; what it did for smaller values is drawn faintly.
    """

    def draw(axes: Any) -> None:
        for place, (name, history) in enumerate(histories.items()):
            for C, records in groupby(history, key=itemgetter("C")):
                points = [(r["passes"], 1 - r["dual"] / r["value"]) for r in records]
                last = history[-1]["C"] == C
                style: dict[str, Any] = {"label": name} if last else {"alpha": 0.35}
                style |= {"linestyle": LINES[place % len(LINES)], "linewidth": 1.1}
                axes.plot(
                    *zip(*points), **line_style(place) | {"marker": ".", "markersize": 2} | style
                )
        axes.set(yscale="log", xlabel="passes over the training data", ylabel="relative gap")
        axes.legend()

    return as_svg(draw, WIDE, 2.9, label)


def curves(points: Mapping[str, Sequence[tuple[float, float]]], measure: str, label: str) -> str:
    """A measure over C for each system; its best value is ringed."""

    def draw(axes: Any) -> None:
        for place, (name, curve) in enumerate(points.items()):
            axes.plot(*zip(*curve), label=name, **line_style(place))
            ring = {"markersize": 11, "markerfacecolor": "none", "linestyle": "none"}
            best = max(curve, key=itemgetter(1))
            axes.plot(*best, **line_style(place) | ring)
        axes.set(xscale="log", xlabel="C", ylabel=measure)
        axes.legend()

    return as_svg(draw, WIDE, 2.9, label)


def signed_bars(weights: Mapping[str, float], label: str) -> str:
    """A horizontal bar for each name, to the right if positive and to the left if negative."""
    places, values = np.arange(len(weights)), list(weights.values())

    def draw(axes: Any) -> None:
        axes.barh(places, values, height=0.72, color=_signed_colours(values))
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set(ylim=(len(weights) - 0.4, -0.6), xlabel="weight")
        axes.set_yticks(places, list(weights))
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="y", visible=False)

    return as_svg(draw, NARROW, 0.6 + 0.21 * len(weights), label)


def function(term: AdditiveTerm, label: str) -> str:
    """What a term of an additive ranker adds to a score."""
    from didyma.report.functions import Colours

    def draw(axes: Any) -> None:
        term.draw(axes, Colours(SERIES[0], INK, WIN, LOSS))
        axes.grid(visible=False)
        if term.pair is None:
            axes.set(xlabel=term.title, ylabel="added to the score")

    return as_svg(draw, NARROW, 2.1, label)


def reliability(bins: Sequence[Reliability], label: str) -> str:
    """Share of relevant passages over calibrated scores, with intervals; best on the diagonal."""
    scores, shares = [each.score for each in bins], [each.share for each in bins]
    below = [each.share - each.low for each in bins]
    above = [each.high - each.share for each in bins]

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1.0, linestyle="--")
        bars = {"capsize": 2.5, "elinewidth": 1.0, "clip_on": False}
        axes.errorbar(scores, shares, [below, above], **line_style(0), **bars)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set(xlabel="calibrated score", ylabel="share of relevant passages")

    return as_svg(draw, NARROW, NARROW, label)


def require_matplotlib(purpose: str = "drawing") -> Any:
    """The library that draws, or an error that says how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError(purpose, "report") from None
    return matplotlib


def check_picture(path: PathName, kinds: Sequence[str] = PICTURES) -> str:
    """The suffix of a picture's file; a DataError if no picture of these kinds has it."""
    if (kind := format_suffix(path)) not in kinds:
        names = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise DataError(f"expected a name that ends in {names}", path=path)
    return kind


def as_picture(figure: Any, kind: str = ".svg") -> bytes:
    """A figure of matplotlib as the contents of a file: ".svg", ".png" or ".pdf"."""
    file = io.BytesIO()
    unsaid = {"Date": None, "Creator": None} if kind == ".svg" else {}
    with require_matplotlib().rc_context(SVG):
        figure.savefig(file, format=kind[1:], metadata=unsaid, dpi=150)
    return file.getvalue()


def write_picture(figure: Any, path: PathName) -> None:
    """Write a figure of matplotlib, in the format that the name tells, whole or not at all."""
    contents = as_picture(figure, check_picture(path))
    with replace_when_done(path, "wb") as file:
        file.write(contents)


def draw_cascade(curve: CascadeCurve) -> Any:
    """The measure over the mean number of documents asked about: by margin, and by depth."""
    require_matplotlib("drawing a curve")
    from matplotlib.figure import Figure  # not pyplot, which would look for a screen

    figure = Figure(figsize=(4.6, 3.0), layout="constrained")
    axes = figure.subplots()
    series = {"unsure documents": curve.by_margin, "first of every query": curve.by_depth}
    for (name, points), colour, style in zip(series.items(), COLOURS, ("o-", "s--")):
        n_asked, values = [point.asked for point in points], [point.value for point in points]
        axes.plot(n_asked, values, style, color=colour, label=name, markersize=4)
    axes.set(xlabel="documents asked about, mean over queries", ylabel=curve.measure)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


def line_style(place: int) -> dict[str, Any]:
    """Colour, marker and widths of a line, by its place among the lines of a plot."""
    return {
        "color": SERIES[place % len(SERIES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.6,
    }


def _signed_colours(values: Iterable[float]) -> list[str]:
    return [WIN if value > 0 else LOSS for value in values]


def as_svg(draw: Callable[[Any], None], width: float, height: float, label: str) -> str:
    """The SVG element of what ``draw(axes)`` draws, with ids that no other drawing of a page has.

    Sizes are in inches; ``label`` is what a screen reader says.
    """
    file = io.StringIO()
    with require_matplotlib().rc_context(STYLE):
        from matplotlib.figure import Figure  # not pyplot, which would look for a screen

        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    text = file.getvalue()
    text = text[text.index("<svg") :].strip()
    for needless in _NEEDLESS:
        text = needless.sub("", text)
    prefix = blake2b(text.encode(), digest_size=4).hexdigest()
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    for colour, name in PAGE_COLOURS.items():
        text = text.replace(colour, name)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
