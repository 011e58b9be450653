"""Quality over questions to a teacher, drawn."""

from __future__ import annotations

from typing import Any

from didyma.report.figures import COLOURS
from didyma.report.plots import require_matplotlib
from didyma.text.cascade_curve import CascadeCurve


def draw_curve(curve: CascadeCurve) -> Any:
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
