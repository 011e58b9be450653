"""Dependency trees with their probabilities: as a picture, as a page, as data.

`write` and `write_lines` show the sentences whose trees a parser cannot choose between. Each is
drawn by `draw_trees`: the marginals of all arcs first, then the most probable trees. A page also
says in words where the trees differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.applications.networks.pages import page, svg_element
from didyma.files import PathName, replace_when_done
from didyma.report.figures import (
    MARGIN,
    PAPER,
    SMALL,
    TITLE,
    Posterior,
    indicators,
    line_width,
    panel_views,
    panels_of,
    patches,
    percent,
    read_posterior,
    text_width,
    without_padding,
    write_label,
    write_text,
    write_title,
)
from didyma.report.plots import check_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from didyma.applications.parsing.parser import DependencyParser
    from didyma.data.conll import Sentence

Floats = NDArray[np.float64]

GAP = 10  # points between the pictures of two sentences
SHOWN = 5  # trees of a sentence that a page puts into words
SIZE = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt"')


def draw_trees(posterior: Posterior, words: Sequence[str], *, most: int = 3) -> Figure:
    """Arcs from heads to words over the sentence, one panel per tree; outputs (k, n + 1) are heads.

    ``heads[0]`` is ignored, as the root has none; head 0 is an arrow from above.

    >>> figure = draw_trees(([[-1, 2, 0], [-1, 0, 1]], [0.7, 0.3]), ["dogs", "bark"])
    >>> [axes.get_title() for axes in figure.axes]
    ['2 trees', '70%', '30%']
    """
    heads, probabilities = read_posterior(posterior, 2)
    heads = without_padding(heads, "words and the root", len(words) + 1)[:, 1:]
    arcs = indicators(heads, len(words) + 1, "words and the root")
    views = list(panel_views(arcs, probabilities, "trees", most))
    widths = np.array([max(text_width(word), 0.32) for word in words])
    xs = MARGIN + np.cumsum(widths + 0.22) - widths / 2 - 0.22
    base = MARGIN + 0.3
    spans = np.abs(np.arange(1, len(words) + 1)[:, None] - np.arange(len(words) + 1))
    used = views[0].values > 0
    top = base + _rise(spans[:, 1:].max(initial=1, where=used[:, 1:])) + 0.3
    crown = 0.2 if len(views) == 1 or used[:, 0].sum() == 1 else 0.34
    figure, panels = panels_of(len(views), xs[-1] + widths[-1] / 2 + MARGIN, top + crown + TITLE)
    for axes, view in zip(panels, views):
        write_title(axes, view.title)
        for x, word in zip(xs, words):
            write_text(axes, x, base - 0.17, word)
        for m in np.flatnonzero(view.values[:, 0]).tolist():
            share, colour = view.values[m, 0], view.colour(m, 0)
            _arrow(axes, [(xs[m], top), (xs[m], base)], share, colour)
            note = "root" if view.single or view.common[m, 0] else f"root\n{percent(share)}"
            write_text(axes, xs[m], top + 0.03, note, size=SMALL, color=colour, va="bottom")
        taken: list[Floats] = []
        for m, h, start, end, rise in _arcs(view.values[:, 1:] > 0, xs):
            share, colour = view.values[m, h + 1], view.colour(m, h + 1)
            bend = base + rise * 4 / 3  # a cubic curve with its ends at 0 rises to 3/4 of this
            curve = np.array([(start, base), (start, bend), (end, bend), (end, base)])
            _arrow(axes, curve, share, colour)
            if not view.single and not view.common[m, h + 1]:
                taken.append(_free_spot(curve, taken))
                write_label(axes, taken[-1][0], taken[-1][1], percent(share), colour)
    return figure


def _rise(span: int) -> float:
    return 0.3 * float(span) ** 0.75


def _arcs(chosen: NDArray[np.bool_], xs: Floats) -> Iterator[tuple[int, int, float, float, float]]:
    """Word, head, where the arc starts and ends, and its height; ``chosen`` is [word, head].

    Of the arcs that meet on one side of a word, the higher stand closer to its middle.
    """
    rises = {}
    for m, h in np.argwhere(chosen):
        twin = h > m and chosen[h, m]  # the same two words the other way round
        rises[m, h] = _rise(abs(m - h)) + (0.18 if twin else 0.0)
    feet: dict[tuple[int, bool], int] = {}
    ends = {}
    for m, h in sorted(rises, key=lambda arc: -rises[arc]):
        for word, other in ((m, h), (h, m)):
            side = bool(other > word)
            rank = feet[word, side] = feet.get((word, side), -1) + 1
            away = 0.06 + 0.075 * min(rank, 2)
            ends[m, h, word] = xs[word] + (away if side else -away)
    for (m, h), rise in rises.items():
        yield m, h, ends[m, h, h], ends[m, h, m], rise


def _free_spot(curve: Floats, taken: Sequence[Floats]) -> Floats:
    """A place on a cubic curve where no label stands yet, its middle if it can be."""
    for t in (0.5, 0.4, 0.6, 0.33, 0.67, 0.27, 0.73):
        weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
        spot = weights @ curve
        if all((np.abs(spot - other) > (0.32, 0.14)).any() for other in taken):
            return spot
    return curve[[1, 2]].mean(axis=0) * 0.75 + curve[[0, 3]].mean(axis=0) * 0.25


def _arrow(axes: Any, points: ArrayLike, share: float, colour: str) -> None:
    """A straight line of two points, or a cubic curve of four, with a head."""
    from matplotlib.path import Path

    corners = np.asarray(points)
    codes = [Path.LINETO] if len(corners) == 2 else [Path.CURVE4] * 3
    style = {"arrowstyle": "-|>", "mutation_scale": 9, "linewidth": line_width(share)}
    path = Path(corners, [Path.MOVETO, *codes])
    axes.add_patch(patches().FancyArrowPatch(path=path, color=colour, **style))


@dataclass(frozen=True, eq=False)
class Ambiguity:
    """A sentence and its trees, most probable first."""

    name: str
    words: Sequence[str]
    heads: NDArray[np.int64]  # (k, n): of each word in each tree, 0 for the root
    relations: Sequence[Sequence[str]]  # of each word to its head, in each tree
    probabilities: NDArray[np.float64]

    def draw(self) -> Figure:
        """The trees side by side."""
        root = np.full((len(self.heads), 1), -1)
        return draw_trees((np.hstack([root, self.heads]), self.probabilities), self.words)

    def differences(self) -> Iterator[tuple[float, list[str]]]:
        """The probability of each tree, and its arcs that other trees lack."""
        relations = np.array([list(row) for row in self.relations])
        differs = ((self.heads != self.heads[0]) | (relations != relations[0])).any(axis=0)
        names = ["the root", *self.words]
        for heads, labels, share in zip(self.heads, self.relations, self.probabilities):
            arcs = [
                f"{self.words[m]} is {labels[m]} of {names[heads[m]]}"
                for m in np.flatnonzero(differs).tolist()
            ]
            yield float(share), arcs


def write(sentences: Sequence[Ambiguity], title: str, path: PathName) -> None:
    """Write an SVG picture or an HTML page, by the name's suffix, whole or not at all."""
    kind = check_picture(path, (".svg", ".html"))
    pictures = [svg_element(sentence.draw()) for sentence in sentences]
    text = _stacked(pictures) if kind == ".svg" else _page(sentences, pictures, title)
    with replace_when_done(path) as file:
        file.write(text)


def _stacked(pictures: Sequence[str]) -> str:
    y, width, placed = 0.0, 1.0, []
    for picture in pictures:
        size = SIZE.search(picture)
        assert size is not None
        units = f'x="0" y="{y:g}" width="{size[1]}" height="{size[2]}"'
        placed.append(SIZE.sub(units, picture, count=1))
        y += float(size[2]) + GAP
        width = max(width, float(size[1]))
    height = max(y - GAP, 1.0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt" '
        f'viewBox="0 0 {width:g} {height:g}">\n<rect width="100%" height="100%" fill="{PAPER}"/>\n'
        + "\n".join(placed)
        + "\n</svg>\n"
    )


def _page(sentences: Sequence[Ambiguity], pictures: Sequence[str], title: str) -> str:
    parts = []
    for sentence, picture in zip(sentences, pictures):
        name, text = escape(sentence.name), escape(" ".join(sentence.words))
        count = len(sentence.probabilities)
        parts.append(f'<h2>{text} <span class="quiet">{name}, {count} trees</span></h2>')
        parts.append(f"<figure>{picture}</figure>\n<ol>")
        for share, arcs in islice(sentence.differences(), SHOWN):
            parts.append(f"<li><b>{share:.1%}</b> {escape('; '.join(arcs))}</li>")
        parts.append("</ol>")
        if count > SHOWN:
            rest = float(sentence.probabilities[SHOWN:].sum())
            parts.append(f'<p class="quiet">and {count - SHOWN} more, {rest:.1%} together</p>')
    return page(title, "\n".join(parts))


def ambiguities(
    parser: DependencyParser, sentences: Sequence[Sentence], temperature: float
) -> list[Ambiguity]:
    """The sentences of which SparseMAP keeps several trees, at a temperature."""
    ambiguous = []
    posteriors = parser.alternatives(sentences, temperature)
    for number, (sentence, posterior) in enumerate(zip(sentences, posteriors), 1):
        if posterior.support_size > 1:
            heads = posterior.structures[:, 1:]
            relations = parser.label([sentence] * len(heads), list(heads))
            name = sentence.sent_id or f"sentence {number}"
            trees = (heads, relations, posterior.probabilities)
            ambiguous.append(Ambiguity(name, sentence.words, *trees))
    return ambiguous


def write_lines(sentences: Sequence[Ambiguity], path: PathName) -> None:
    """Write sentences with their trees, a line of JSON each."""
    with replace_when_done(path) as file:
        for sentence in sentences:
            trees = [
                {"probability": share, "heads": heads, "relations": relations}
                for share, heads, relations in zip(
                    sentence.probabilities.tolist(), sentence.heads.tolist(), sentence.relations
                )
            ]
            record = {"sentence": sentence.name, "words": sentence.words, "trees": trees}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
