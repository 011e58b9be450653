"""Motifs: probabilities of the bases at each position, files for the MEME Suite, sequence logos.

A logo shows at each position its bases, as tall as the bits they carry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.motif.fasta import BASES
from didyma.files import PathName, replace_when_done
from didyma.report.plots import require_matplotlib, write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Motif", "save_logo", "write"]

Vector = NDArray[np.float64]

# Sets of bases as the sum of 1, 2, 4, 8 for A, C, G, T.
IUPAC = "-ACMGRSVTWYHKDBN"
EVEN = np.full(4, 0.25)
_NAME = re.compile(r"\S+")
# Okabe and Ito's, told apart by colour-blind readers.
COLOURS = {"A": "#009e73", "C": "#0072b2", "G": "#e69f00", "T": "#d55e00"}
INK = "#1c2430"
WIDTH, HEIGHT, MARGIN = 0.32, 1.9, 0.9  # inches a position, of the plot, beside it
THINNEST = 0.005  # bits: letters below are not drawn


@dataclass(frozen=True, eq=False)
class Motif:
    """``probabilities`` (l, 4) of A, C, G, T at each position, and ``background`` (4,) without it.

    >>> motif = Motif("box", np.array([[0.9, 0.1, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]]))
    >>> motif.consensus, motif.information.round(2).tolist()
    ('AR', [1.53, 1.0])
    """

    name: str
    probabilities: Vector
    background: Vector = field(default_factory=lambda: EVEN)
    n_sites: int = 20

    @classmethod
    def from_weights(cls, name: str, matrix: Vector, background: Vector = EVEN) -> Motif:
        """Softmax over the four weights of each position."""
        powers = np.exp(matrix - matrix.max(axis=1, keepdims=True))
        return cls(name, powers / powers.sum(axis=1, keepdims=True), background)

    @classmethod
    def from_counts(
        cls, name: str, counts: Vector, background: Vector = EVEN, pseudocount: float = 1.0
    ) -> Motif:
        """Shares of the bases in aligned sites, to which ``pseudocount`` bases are added."""
        smoothed = counts + pseudocount * background
        shares = smoothed / smoothed.sum(axis=1, keepdims=True)
        return cls(name, shares, background, round(float(counts[0].sum())))

    @property
    def log_odds(self) -> Vector:
        """log2 of the probabilities over the background's, shape (l, 4)."""
        with np.errstate(divide="ignore"):
            return np.log2(self.probabilities / self.background)

    @property
    def information(self) -> Vector:
        """Bits of each position: 2 less the entropy."""
        p = self.probabilities
        return 2.0 + np.sum(p * np.log2(p, out=np.zeros_like(p), where=p > 0), axis=1)

    @property
    def consensus(self) -> str:
        """At each position the bases with at least half the share of the first, as IUPAC code."""
        common = self.probabilities >= 0.5 * self.probabilities.max(axis=1, keepdims=True)
        return "".join(IUPAC[chosen] for chosen in common @ (1 << np.arange(4)))

    @property
    def reverse_complement(self) -> Motif:
        """The same motif as read on the other strand."""
        turned, background = self.probabilities[::-1, ::-1], self.background[::-1]
        return Motif(self.name, turned, background, self.n_sites)


def write(motifs: Sequence[Motif], path: PathName, *, both_strands: bool = False) -> None:
    """Write motifs in the minimal MEME format, version 4."""
    for motif in motifs:
        if not _NAME.fullmatch(motif.name):
            raise DataError(f"expected a name without white space, found {motif.name!r}", path=path)
    with replace_when_done(path) as file:
        file.write(f"MEME version 4\n\nALPHABET= {BASES}\n\n")
        file.write(f"strands: {'+ -' if both_strands else '+'}\n\n")
        background = motifs[0].background if motifs else EVEN
        shares = " ".join(f"{base} {share:.6f}" for base, share in zip(BASES, background))
        file.write(f"Background letter frequencies\n{shares}\n")
        for motif in motifs:
            sizes = f"alength= 4 w= {len(motif.probabilities)} nsites= {motif.n_sites} E= 0"
            file.write(f"\nMOTIF {motif.name} {motif.consensus}\n")
            file.write(f"letter-probability matrix: {sizes}\n")
            for row in motif.probabilities:
                file.write(" ".join(f"{share:.6f}" for share in row) + "\n")


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
    """Draw a motif into a .png, .svg or .pdf, whole or not at all.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp(), "logo.svg")
    >>> save_logo(Motif("m", np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])), path)
    >>> "<svg" in path.read_text()
    True
    """
    write_picture(logo(motif), path)


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
