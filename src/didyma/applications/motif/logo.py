"""Sequence logos: at each position of a motif its bases, as tall as the bits they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from didyma.applications.motif.fasta import BASES
from didyma.applications.motif.meme import Motif
from didyma.files import PathName, format_suffix, replace_when_done
from didyma.report.plots import as_picture, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's, told apart by colour-blind readers.
COLOURS = {"A": "#009e73", "C": "#0072b2", "G": "#e69f00", "T": "#d55e00"}
INK = "#1c2430"
WIDTH, HEIGHT, MARGIN = 0.32, 1.9, 0.9  # inches a position, of the plot, beside it
THINNEST = 0.005  # bits: letters below are not drawn


def logo(motif: Motif) -> Figure:
    """A matplotlib figure; a letter's height is its probability times the position's bits.

    >>> figure = logo(Motif("box", np.array([[0.97, 0.01, 0.01, 0.01], [0.4, 0.1, 0.4, 0.1]])))
    >>> len(figure.axes[0].patches)
    8
    """
    require_matplotlib("drawing a sequence logo")
    from matplotlib.figure import Figure

    length = len(motif.probabilities)
    figure = Figure(figsize=(MARGIN + WIDTH * length, HEIGHT), layout="constrained")
    axes = figure.subplots()
    letters = {base: _letter(base) for base in BASES}
    for place, heights in enumerate(motif.probabilities * motif.information[:, None]):
        bottom = 0.0
        for base in np.argsort(heights, kind="stable"):  # the tallest on top
            if heights[base] > THINNEST:
                _stack(axes, letters[BASES[base]], BASES[base], place, bottom, heights[base])
                bottom += heights[base]
    axes.set(xlim=(0.4, length + 0.6), ylim=(0, 2), ylabel="bits")
    axes.set_xticks(range(1, length + 1))
    axes.set_yticks([0, 1, 2])
    axes.set_title(f"{motif.name}   {motif.consensus}", color=INK, fontsize=10)
    axes.tick_params(length=0, labelsize=8, colors=INK)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


def save_logo(motif: Motif, path: PathName) -> None:
    """Draw a motif into a file, whole or not at all: SVG, or PNG if the name says so.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp(), "logo.svg")
    >>> save_logo(Motif("m", np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])), path)
    >>> "<svg" in path.read_text()
    True
    """
    kind = ".png" if format_suffix(path) == ".png" else ".svg"
    contents = as_picture(logo(motif), kind)
    with replace_when_done(path, "wb") as file:
        file.write(contents)


def _letter(base: str) -> Any:
    """A letter's outline, one unit wide and high."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    outline = TextPath((0, 0), base, size=1, prop=FontProperties(weight="bold"))
    box = outline.get_extents()
    unit = Affine2D().translate(-box.x0, -box.y0).scale(1 / box.width, 1 / box.height)
    return outline.transformed(unit)


def _stack(axes: Any, outline: Any, base: str, place: int, bottom: float, height: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    put = Affine2D().scale(0.94, height).translate(place + 0.53, bottom)
    axes.add_patch(PathPatch(outline.transformed(put), facecolor=COLOURS[base], linewidth=0))
