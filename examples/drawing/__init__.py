"""Pictures of the few structures that SparseMAP selects, with their probabilities.

Each function takes a posterior, which is a `Distribution` or a pair (structures, probabilities),
and the names of what it is about, and returns a matplotlib figure to show or to save:

>>> figure = trees(([[-1, 2, 0], [-1, 0, 1]], [0.7, 0.3]), ["dogs", "bark"])
>>> [axes.get_title() for axes in figure.axes]
['2 trees', '70%', '30%']

The first panel has the marginals, the others one structure each. What all structures have in common
is grey, what tells them apart is coloured.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.applications.parsing import draw_trees as trees
from didyma.errors import DataError
from didyma.report.figures import (
    ACCENT,
    FAINT,
    INK,
    MARGIN,
    OTHERS,
    PAPER,
    QUIET,
    SIZE,
    SMALL,
    TITLE,
    Posterior,
    check_shape,
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
from didyma.report.plots import COLOURS, write_picture
from didyma.structures import Segmentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "alignments",
    "choices",
    "constituents",
    "factor_graphs",
    "forests",
    "graphs",
    "paths",
    "save",
    "segments",
    "sequences",
    "subsets",
    "trees",
]

Floats = NDArray[np.float64]


def save(figure: Figure) -> None:
    """Save a figure where the command line says, as ``python gallery_tree.py tree.svg``."""
    if sys.argv[-1].endswith((".png", ".svg")):
        write_picture(figure, sys.argv[-1])


def choices(posterior: Posterior, options: Sequence[str]) -> Figure:
    """Bars: the probability of each option of a `Choice`, outputs (k,)."""
    chosen, probabilities = read_posterior(posterior, 1)
    shares = indicators(chosen, len(options), "options").T @ probabilities
    left, length, step = MARGIN + _widest(options) + 0.12, 2.6, 0.3
    width = left + length + 0.6
    figure, (axes,) = panels_of(1, width, 2 * MARGIN + step * len(options))
    for place, (option, share) in enumerate(zip(options, shares)):
        y = MARGIN + step * (len(options) - place - 0.5)
        colour, ink = (ACCENT, INK) if share > 0 else (FAINT, QUIET)
        axes.barh(y, length * share, height=0.6 * step, left=left, color=colour)
        write_text(axes, left - 0.12, y, option, ha="right", color=ink)
        write_text(axes, left + length * share + 0.06, y, percent(share), ha="left", color=ink)
    axes.plot([left, left], [MARGIN, MARGIN + step * len(options)], color=QUIET, linewidth=0.8)
    return figure


def subsets(posterior: Posterior, items: Sequence[str], *, most: int = 8) -> Figure:
    """A row of cells for each set of items: a `TopK` or a structure of your own, outputs (k, n)."""
    members, probabilities = read_posterior(posterior, 2)
    members = without_padding(members.astype(bool), "items", len(items))
    views = list(panel_views(members, probabilities, "sets", most))
    widths = [max(0.42, text_width(item) + 0.14) for item in items]
    left, step = 2 * MARGIN + _widest([view.title for view in views], bold=True), 0.33
    edges = left + np.concatenate([[0.0], np.cumsum(widths)])
    height = 2 * MARGIN + step * (len(views) + 1)
    figure, (axes,) = panels_of(1, edges[-1] + MARGIN, height)
    for x, item in zip((edges[:-1] + edges[1:]) / 2, items):
        write_text(axes, x, height - MARGIN - step / 2, item)
    for row, view in enumerate(views):
        y = height - MARGIN - step * (row + 2)
        write_text(axes, left - MARGIN, y + step / 2, view.title, ha="right", weight="bold")
        for x, width, value in zip(edges, widths, view.values):
            _cell(axes, x, y, width, step, value, written=not view.single)
    return figure


def sequences(
    posterior: Posterior, words: Sequence[str], tags: Sequence[str], *, most: int = len(COLOURS)
) -> Figure:
    """A lattice of words and tags: each tag sequence, outputs (k, n), is a band through it.

    A band is as wide as the sequence is probable; the ``most`` probable ones have a colour. Where
    bands meet in a tag, they fill a box as high as the tag's marginal.
    """
    paths, probabilities = read_posterior(posterior, 2)
    paths = without_padding(paths, "words", len(words))
    step, full, half = 0.52, 0.4, 0.13
    left = 2 * MARGIN + _widest(tags)
    advances = [max(text_width(word) + 0.25, 1.0) for word in words]
    xs = left + np.cumsum(advances) - np.array(advances) / 2
    height = TITLE + step * (len(tags) + 1) + MARGIN
    tops = height - TITLE - step * np.arange(1.5, len(tags) + 1.5)
    named = min(most, len(COLOURS))
    shown = [percent(share) for share in probabilities[:named]]
    if len(paths) > named:
        shown.append(f"{len(paths) - named} others {percent(probabilities[named:].sum())}")
    width = left + max(sum(advances) + MARGIN, _legend_width(shown, SIZE))
    figure, (axes,) = panels_of(1, width, height)
    _legend(axes, left, height - 0.22, shown, [*COLOURS[:named], OTHERS], SIZE)
    for x, word in zip(xs, words):
        write_text(axes, x, height - TITLE - step / 2, word)
    for y, tag in zip(tops, tags):
        write_text(axes, left - MARGIN, y, tag, ha="right", color=QUIET)
        axes.plot(xs, np.full(len(xs), y), ".", color=FAINT, markersize=5, zorder=0)
    marginals = np.tensordot(probabilities, indicators(paths, len(tags), "tags").astype(float), 1)
    floor = tops - full * marginals / 2  # of the boxes; rises as bands are stacked in them
    place = np.arange(len(words))
    for rank, (path, share) in enumerate(zip(paths, probabilities)):
        middle = floor[place, path] + full * share / 2
        floor[place, path] += full * share
        _band(axes, xs, middle, full * share, half, COLOURS[rank] if rank < named else OTHERS)
    for i, tag in np.argwhere(marginals > 0):
        size = full * marginals[i, tag]
        box = (xs[i] - half, tops[tag] - size / 2), 2 * half, size
        axes.add_patch(patches().Rectangle(*box, fill=False, edgecolor=INK, linewidth=0.8))
    return figure


def segments(
    posterior: Posterior, words: Sequence[str], labels: Sequence[str], *, most: int = 4
) -> Figure:
    """A row of boxes for each `Segmentation`, outputs (k, n), in the colours of their labels.

    In the first row a word is as much in a label's colour as that is probable; what separates two
    words is as strong as a cut between them is probable.
    """
    tags, probabilities = read_posterior(posterior, 2)
    tags = without_padding(tags, "words", len(words))
    inside = indicators(tags // 2, len(labels), "labels")
    views = list(panel_views(inside, probabilities, "segmentations", most))
    left, step = 2 * MARGIN + _widest([view.title for view in views], bold=True), 0.36
    widths = [max(0.5, text_width(word) + 0.2) for word in words]
    edges = left + np.concatenate([[0.0], np.cumsum(widths)])
    legend = 0.3
    height = MARGIN + step * (len(views) + 1) + legend
    width = max(edges[-1] + MARGIN, left + _legend_width(labels, SMALL))
    figure, (axes,) = panels_of(1, width, height)
    _legend(axes, left, 0.2, labels, COLOURS, SMALL)
    for x, word in zip((edges[:-1] + edges[1:]) / 2, words):
        write_text(axes, x, height - MARGIN - step / 2, word)
    rows = iter(tags)
    for place, view in enumerate(views):
        y, tall = height - MARGIN - step * (place + 2), step - 0.08
        write_text(axes, left - MARGIN, y + tall / 2, view.title, ha="right", weight="bold")
        if view.single:
            for start, stop, label in Segmentation.segments(next(rows)):
                box = (edges[start] + 0.03, y), edges[stop] - edges[start] - 0.06, tall
                axes.add_patch(patches().Rectangle(*box, color=COLOURS[label % len(COLOURS)]))
            continue
        cuts = probabilities @ (tags % 2 == 0)
        for i, shares in enumerate(view.values):
            bottom = y
            for label in np.flatnonzero(shares).tolist():
                box = (edges[i], bottom), widths[i], tall * shares[label]
                axes.add_patch(patches().Rectangle(*box, color=COLOURS[label % len(COLOURS)]))
                bottom += tall * shares[label]
            if i and cuts[i]:
                line = {"color": PAPER, "linewidth": 4.3 * cuts[i], "solid_capstyle": "butt"}
                axes.plot([edges[i]] * 2, [y, y + tall], **line)
    return figure


def constituents(
    posterior: Posterior, words: Sequence[str], labels: Sequence[str], *, most: int = 3
) -> Figure:
    """Spans over their words, one panel per `Constituency` tree, outputs (k, n, n)."""
    spans, probabilities = read_posterior(posterior, 3)
    n = len(words)
    spans = without_padding(spans, "words", n, n)
    views = list(
        panel_views(
            indicators(spans, len(labels), "labels", none=True), probabilities, "trees", most
        )
    )
    note = max(text_width(f"{label} 99%", SMALL) for label in labels)
    widths = np.array([max(text_width(word) + 0.2, note + 0.1) for word in words])
    xs = MARGIN + np.cumsum(widths) - widths / 2
    base, step = MARGIN + 0.5, 0.42
    height = base + step * (n - 1) + 0.2 + TITLE
    figure, panels = panels_of(len(views), xs[-1] + widths[-1] / 2 + MARGIN, height)
    shown = iter(spans >= 0)
    for axes, view in zip(panels, views):
        write_title(axes, view.title)
        own = [next(shown)] if view.single else list(spans >= 0)
        weights = [1.0] if view.single else probabilities
        shares = view.values.sum(axis=2)
        place = {
            (i, j): ((xs[i] + xs[j]) / 2, base + step * (j - i)) for i, j in np.argwhere(shares > 0)
        }
        for span, child, share in _branches(own, weights):
            line = {"color": QUIET, "linewidth": line_width(share), "zorder": 1}
            axes.plot(*zip(place[span], place[child]), **line)
        for (i, j), (x, y) in place.items():
            name = "/".join(labels[t] for t in np.flatnonzero(view.values[i, j]).tolist())
            common = bool(view.common[i, j].any())
            if not view.single and not common:
                name += f" {percent(shares[i, j])}"
            write_label(axes, x, y, name, QUIET if common else ACCENT)
        for x, word in zip(xs, words):
            axes.plot([x, x], [base, base - 0.22], color=FAINT, linewidth=0.8, zorder=0)
            write_text(axes, x, base - 0.32, word)
    return figure


def _branches(
    trees: Sequence[NDArray[np.bool_]], weights: Sequence[float] | Floats
) -> Iterator[tuple[tuple[int, int], tuple[int, int], float]]:
    """Spans, their children, and how probable it is that they are that."""
    shares: dict[tuple[tuple[int, int], tuple[int, int]], float] = {}
    for tree, weight in zip(trees, weights):
        for i, j in np.argwhere(tree).tolist():
            for k in range(i, j):
                if tree[i, k] and tree[k + 1, j]:
                    for child in ((i, k), (k + 1, j)):
                        shares[(i, j), child] = shares.get(((i, j), child), 0.0) + weight
    for (span, child), share in shares.items():
        yield span, child, share


def paths(
    posterior: Posterior,
    edges: Sequence[tuple[int, int]],
    costs: ArrayLike,
    *,
    most: int = len(COLOURS),
) -> Figure:
    """Ways over a grid, outputs (k, n_edges) of a `ShortestPath`: as wide as they are probable.

    Cell (i, j) of the grid is node i · columns + j; it is as dark as it costs.
    """
    taken, probabilities = read_posterior(posterior, 2)
    taken = without_padding(taken.astype(bool), "edges", len(edges))
    grid = np.asarray(costs, dtype=np.float64)
    check_shape(grid.ndim == 2 and np.max(edges) < grid.size, "edges between cells", grid.shape)
    named = min(most, len(COLOURS), len(taken))
    shown = [percent(share) for share in probabilities[:named]]
    if len(taken) > named:
        shown.append(f"{len(taken) - named} others {percent(probabilities[named:].sum())}")
    rows, columns = grid.shape
    step = 0.42
    height = TITLE + step * rows + MARGIN
    width = MARGIN + max(step * columns + MARGIN, _legend_width(shown, SIZE))
    figure, (axes,) = panels_of(1, width, height)
    _legend(axes, MARGIN, height - 0.2, shown, [*COLOURS[:named], OTHERS], SIZE)
    shades = (grid - grid.min()) / max(float(np.ptp(grid)), 1e-12)
    for i, j in np.ndindex(rows, columns):
        corner = MARGIN + step * j, height - TITLE - step * (i + 1)
        grey = np.full(3, 0.96 - 0.4 * shades[i, j])
        box = {"facecolor": grey, "edgecolor": PAPER, "linewidth": 1.0}
        axes.add_patch(patches().Rectangle(corner, step, step, **box))
    for rank in reversed(range(len(taken))):
        steps = np.array(edges)[taken[rank]]
        i, j = np.divmod(np.unique(steps), columns)
        aside = 0.055 * (min(rank, named) - named / 2)  # ways that share cells stay visible
        x, y = MARGIN + step * (j + 0.5) + aside, height - TITLE - step * (i + 0.5) + aside
        colour = COLOURS[rank] if rank < named else OTHERS
        style = {"solid_capstyle": "round", "solid_joinstyle": "round"}
        axes.plot(x, y, color=colour, linewidth=1.0 + 5.0 * probabilities[rank], **style)
    return figure


def alignments(
    posterior: Posterior,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    path: bool = False,
    most: int = 3,
) -> Figure:
    """Cells over a heat map of the marginals, one panel per matching or alignment.

    Outputs are the column of each row, −1 for none, (k, n), or cells, (k, n, m). ``path`` joins the
    cells by a line, from the first row to the last: for alignments that keep the order.
    """
    cells, probabilities = read_posterior(posterior, 2, 3)
    if cells.ndim == 2:
        cells = indicators(
            without_padding(cells, "rows", len(rows)), len(columns), "columns", none=True
        )
    cells = without_padding(cells.astype(bool), "rows and columns", len(rows), len(columns))
    views = list(panel_views(cells, probabilities, "alignments" if path else "matchings", most))
    longest = _widest(columns)
    slanted = longest > 0.6
    step, width = 0.34, 0.46 if slanted else max(longest + 0.1, 0.46)
    left, head = 2 * MARGIN + _widest(rows), 0.3 + (longest * 0.71 if slanted else 0.0)
    right = left + width * len(columns)
    height = TITLE + head + step * len(rows) + MARGIN
    overhang = max(MARGIN, longest * 0.71 - width / 2 if slanted else 0.0)
    figure, panels = panels_of(len(views), right + overhang + MARGIN, height)
    xs = left + width * (np.arange(len(columns)) + 0.5)
    ys = height - TITLE - head - step * (np.arange(len(rows)) + 0.5)
    marginals = views[0].values
    for axes, view in zip(panels, views):
        write_title(axes, view.title)
        for x, name in zip(xs, columns):
            turned = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"} if slanted else {}
            write_text(axes, x, height - TITLE - head + 0.06, name, va="baseline", **turned)
        for y, name in zip(ys, rows):
            write_text(axes, left - 0.1, y, name, ha="right")
        for i, j in np.ndindex(marginals.shape):
            x, y = left + width * j, float(ys[i]) - step / 2
            _cell(axes, x, y, width, step, float(marginals[i, j]), written=not view.single)
        if view.single:
            i, j = np.nonzero(view.values)
            line = {"linestyle": "-" if path else "none", "linewidth": 1.6}
            dot = {"marker": "o", "markersize": 8, "markeredgecolor": PAPER}
            axes.plot(xs[j], ys[i], color=INK, zorder=3, **line, **dot)
    return figure


def forests(
    posterior: Posterior,
    names: Sequence[str],
    *,
    positions: ArrayLike | None = None,
    most: int = 3,
) -> Figure:
    """Nodes and links, one panel per `Forest`, outputs (k, n, n) above the diagonal."""
    links, probabilities = read_posterior(posterior, 3)
    links = without_padding(links.astype(bool), "nodes by nodes", len(names), len(names))
    return _links(links, probabilities, "forests", names, positions, most)


def graphs(
    posterior: Posterior,
    edges: Sequence[tuple[Hashable, Hashable]],
    kind: str,
    positions: Mapping[Hashable, tuple[float, float]],
    *,
    directed: bool = False,
    most: int = 3,
) -> Figure:
    """Edges of a graph, one panel per output (k, n_edges) of a structure of `didyma.solvers`.

    ``kind`` names what they are ("routes"), ``positions`` where each node stands. An edge that an
    output lacks is faint.
    """
    taken, probabilities = read_posterior(posterior, 2)
    taken = without_padding(taken.astype(bool), "edges", len(edges))
    nodes = list(positions)
    ends = np.array([[nodes.index(a), nodes.index(b)] for a, b in edges])
    links = np.zeros((len(taken), len(nodes), len(nodes)), bool)
    for place, (i, j) in enumerate(ends):
        links[:, i, j] |= taken[:, place]
    names = [str(node) for node in nodes]
    places = list(positions.values())
    return _links(links, probabilities, kind, names, places, most, ends, directed)


def _links(
    links: NDArray[np.bool_],
    probabilities: Floats,
    kind: str,
    names: Sequence[str],
    positions: ArrayLike | None,
    most: int,
    edges: Any = (),
    directed: bool = False,
) -> Figure:
    """Links (k, n, n) between nodes, among all ``edges`` of a graph."""
    views = list(panel_views(links, probabilities, kind, most))
    places = edges if len(edges) else np.argwhere(links.any(axis=0))
    graph = _place(names, positions, places)
    figure, panels = panels_of(len(views), graph.width, graph.height)
    for axes, view in zip(panels, views):
        write_title(axes, view.title)
        taken: list[Floats] = []
        for i, j in edges:
            axes.plot(*graph.nodes[[i, j]].T, color=FAINT, linewidth=1.0, zorder=0)
        for i, j in np.argwhere(view.values > 0):
            share, colour = view.values[i, j], view.colour(i, j)
            graph.join(axes, i, j, colour, line_width(share), directed)
            if not view.single and not view.common[i, j]:
                taken.append(graph.free_spot(i, j, taken))
                write_label(axes, taken[-1][0], taken[-1][1], percent(share), colour)
        for i, (x, y) in enumerate(graph.nodes):
            axes.add_patch(patches().Circle((x, y), 0.07, color=INK, zorder=2))
            graph.write(axes, i)
    return figure


def factor_graphs(
    posterior: Posterior,
    edges: Sequence[tuple[int, int]],
    names: Sequence[str],
    states: Sequence[str],
    *,
    positions: ArrayLike | None = None,
    most: int = 3,
) -> Figure:
    """Variables in the colours of their states, one panel per output of a `FactorGraph`, (k, n).

    In the first panel a variable is a pie of its marginals; ``edges`` join the pairs that have a
    common score. Six states have colours of their own.
    """
    outputs, probabilities = read_posterior(posterior, 2)
    outputs = without_padding(outputs, "variables", len(names))
    chosen = indicators(outputs, len(states), "states")
    views = list(panel_views(chosen, probabilities, "labellings", most))
    graph, legend = _place(names, positions, np.array(edges), radius=0.17), 0.3
    width = max(graph.width, MARGIN + _legend_width(states, SMALL))
    figure, panels = panels_of(len(views), width, graph.height + legend)
    for axes, view in zip(panels, views):
        write_title(axes, view.title)
        axes.set_ylim(-legend, graph.height)
        for i, j in edges:
            axes.plot(*graph.nodes[[i, j]].T, color=QUIET, linewidth=1.0, zorder=1)
        for i, centre in enumerate(graph.nodes):
            turns = 90 - 360 * np.concatenate([[0.0], np.cumsum(view.values[i])])
            for state in np.flatnonzero(view.values[i]):
                angles, colour = turns[[state + 1, state]], COLOURS[state % len(COLOURS)]
                slice_ = patches().Wedge(centre, graph.radius, *angles, zorder=2)
                slice_.set(facecolor=colour, edgecolor=PAPER, linewidth=0.6)
                axes.add_patch(slice_)
            ring = patches().Circle(centre, graph.radius, zorder=3)
            ring.set(fill=False, edgecolor=INK, linewidth=1.0)
            axes.add_patch(ring)
            graph.write(axes, i)
    _legend(panels[0], MARGIN, -0.1, states, COLOURS, SMALL)
    return figure


@dataclass(frozen=True)
class _Graph:
    """Where the nodes of a graph stand, and on which side of them their names."""

    names: Sequence[str]
    nodes: Floats
    sides: Floats
    links: NDArray[np.int64]
    radius: float
    width: float
    height: float

    def write(self, axes: Any, i: int) -> None:
        x, y = self.nodes[i] + (self.radius + 0.09) * self.sides[i]
        across, up = np.sign(np.round(self.sides[i], 1)).astype(int)
        va = "center" if across else ("center", "bottom", "top")[up]
        write_text(
            axes, x, y, self.names[i], ha=("center", "left", "right")[across], va=va, zorder=4
        )

    def join(self, axes: Any, i: int, j: int, colour: Any, width: float, directed: bool) -> None:
        """Draw a link, or an arrow whose head shows beside the node."""
        if not directed:
            axes.plot(*self.nodes[[i, j]].T, color=colour, linewidth=width, zorder=1)
            return
        style = {"arrowstyle": "-|>", "mutation_scale": 9 + 2 * width, "linewidth": width}
        ends = {"shrinkA": 0, "shrinkB": 4, "color": colour, "zorder": 1}
        axes.add_patch(patches().FancyArrowPatch(*self.nodes[[i, j]], **style, **ends))

    def free_spot(self, i: int, j: int, taken: Sequence[Floats]) -> Floats:
        """The place on a link, towards its middle, that is farthest from other links and labels."""
        start, stop = self.nodes[i], self.nodes[j]
        others = [self.nodes[link] for link in self.links if set(link) != {i, j}]

        def room(t: float) -> float:
            spot = start + t * (stop - start)
            away = [_distance(spot, *ends) for ends in others]
            away += [np.hypot(*(spot - other)) / 2 for other in taken]  # two texts need more
            return min(0.2, *away, 0.2) - 0.05 * abs(t - 0.5)

        best = max(np.linspace(0.25, 0.75, 21), key=room)
        return start + best * (stop - start)


def _distance(point: Floats, start: Floats, stop: Floats) -> float:
    """From a point to a segment."""
    along = stop - start
    t = np.clip((point - start) @ along / max(float(along @ along), 1e-12), 0.0, 1.0)
    return float(np.hypot(*(start + t * along - point)))


def _place(
    names: Sequence[str],
    positions: ArrayLike | None,
    links: NDArray[np.int64],
    radius: float = 0.07,
) -> _Graph:
    """Nodes on a circle with their names around it, or at the positions given."""
    n = len(names)
    span = max(1.7, 0.27 * n)
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    sides = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    nodes = sides * (span / 2 if n > 1 else 0.0)
    if positions is not None:
        nodes = np.array(positions, dtype=np.float64)
        if nodes.shape != (n, 2):
            raise DataError(f"expected shape {(n, 2)}, found {nodes.shape}", field="positions")
        nodes *= 1.2 * span / max(float(np.ptp(nodes, axis=0).max()), 1e-12)
        sides = np.array([_open_side(nodes, i, links) for i in range(n)])
    widths = np.array([text_width(name) for name in names])
    across = np.sign(np.round(sides[:, 0], 1))
    reach = nodes + (radius + 0.09) * sides
    left = np.minimum(reach[:, 0] + widths * (across - 1) / 2, nodes[:, 0] - radius).min()
    right = np.maximum(reach[:, 0] + widths * (across + 1) / 2, nodes[:, 0] + radius).max()
    bottom = min(reach[:, 1].min() - 0.17, nodes[:, 1].min() - radius)
    top = max(reach[:, 1].max() + 0.17, nodes[:, 1].max() + radius)
    origin = np.array([left - MARGIN, bottom - MARGIN / 2])
    width = max(right + MARGIN - origin[0], 1.6)
    height = top + TITLE - origin[1]
    return _Graph(names, nodes - origin, sides, links, radius, width, height)


def _open_side(nodes: Floats, i: int, links: NDArray[np.int64]) -> Floats:
    """Below, above, right or left of a node: where its links are not."""
    ends = [nodes[link].sum(axis=0) - 2 * nodes[i] for link in links if i in link]
    directions = np.array([end / max(float(np.hypot(*end)), 1e-12) for end in ends])
    sides = np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    closest = (sides @ directions.reshape(-1, 2).T).max(axis=1, initial=0.0)
    return sides[np.argmin(np.round(closest, 3))]


def _legend(
    axes: Any, x: float, y: float, names: Sequence[str], colours: Sequence[str], size: float
) -> None:
    """Squares in a row, each with its name."""
    for place, name in enumerate(names):
        box = patches().Rectangle((x, y - 0.065), 0.13, 0.13)
        axes.add_patch(box)
        box.set_color(colours[place % len(colours)])
        write_text(axes, x + 0.19, y, name, ha="left", size=size)
        x += _legend_width([name], size)


def _legend_width(names: Sequence[str], size: float) -> float:
    return sum(0.35 + text_width(name, size) for name in names)


def _widest(texts: Sequence[str], *, bold: bool = False) -> float:
    return max((text_width(text, bold=bold) for text in texts), default=0.0)


def _cell(
    axes: Any,
    x: float,
    y: float,
    width: float,
    height: float,
    share: float,
    *,
    written: bool = True,
) -> None:
    """A box of a heat map, with its probability where there is one."""
    box = {"facecolor": _shade(share), "edgecolor": PAPER, "linewidth": 1.5}
    axes.add_patch(patches().Rectangle((x, y), width, height, **box))
    if written and share > 0:
        colour = PAPER if share > 0.85 else INK
        write_text(axes, x + width / 2, y + height / 2, percent(share), size=SMALL, color=colour)


def _shade(share: float) -> Floats:
    """From almost white to the accent."""
    low, high = (np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in ("#eef1f5", ACCENT))
    return (low + min(max(share, 0.0), 1.0) * (high - low)) / 255


def _band(axes: Any, xs: Floats, ys: Floats, size: float, half: float, colour: str) -> None:
    """A line of this thickness: level within ``half`` of each x, smooth between them."""
    from matplotlib.path import Path

    points, codes = [(xs[0] - half, ys[0]), (xs[0] + half, ys[0])], [Path.MOVETO, Path.LINETO]
    for (x, y), (next_x, next_y) in pairwise(zip(xs, ys)):
        middle = (x + next_x) / 2
        points += [(middle, y), (middle, next_y), (next_x - half, next_y), (next_x + half, next_y)]
        codes += [Path.CURVE4] * 3 + [Path.LINETO]
    style = {"facecolor": "none", "edgecolor": colour, "capstyle": "butt"}
    axes.add_patch(patches().PathPatch(Path(points, codes), linewidth=72 * size, **style))
