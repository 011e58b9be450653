"""Drawings show every structure with its probability, and nothing overlaps or is cut off."""

from __future__ import annotations

import io
import sys
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.patches import Circle, FancyArrowPatch, PathPatch, Rectangle, Wedge

import didyma
import drawing
from didyma.errors import DataError, MissingExtraError
from didyma.report.figures import ACCENT, OTHERS, PAPER, QUIET, percent

ROOT = Path(__file__).parents[2]
WORDS = ["they", "ate", "the", "pizza", "with", "anchovies"]
HEADS = [[-1, 2, 0, 4, 2, 4, 5], [-1, 2, 0, 4, 2, 2, 5], [-1, 2, 0, 4, 2, 6, 4]]
LINKS = np.zeros((2, 4, 4), bool)
LINKS[0, [0, 1, 2], [1, 2, 3]] = LINKS[1, [0, 0, 2], [1, 2, 3]] = True
SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3)]
CORNERS = [(0, 0), (0, 5), (5, 5), (5, 0)]
PLACED_EDGES = [("abcd"[i], "abcd"[j]) for i, j in SQUARE]
NAMES = ["Anna", "the doctor", "she", "the surgeon"]

TREES = np.full((2, 3, 3), -1)
TREES[:, [0, 1, 2, 0], [0, 1, 2, 2]] = [1, 2, 1, 0]
TREES[0, 1, 2], TREES[1, 0, 1] = 2, 0
GRID = didyma.structures.ShortestPath.grid(2, 3)
WAYS = [[(1, 4), (0, 1), (4, 5)], [(0, 3), (3, 4), (4, 5)]]

DRAWINGS = {
    "choices": lambda: drawing.choices(([1, 0], [0.7, 0.3]), ["river", "savings", "snow"]),
    "subsets": lambda: drawing.subsets(
        ([[1, 1, 0, 0], [1, 0, 1, 0]], [0.6, 0.4]), ["cheese", "a", "b", "pineapple"]
    ),
    "sequences": lambda: drawing.sequences(
        ([[0, 1, 2, 3], [0, 1, 0, 1]], [0.55, 0.45]),
        ["I", "saw", "her", "duck"],
        ["PRON", "VERB", "DET", "NOUN"],
    ),
    "segments": lambda: drawing.segments(
        ([[0, 1, 2, 4], [0, 2, 3, 4]], [0.7, 0.3]), ["in", "New", "York", "now"], ["a", "b", "c"]
    ),
    "constituents": lambda: drawing.constituents(
        (TREES, [0.8, 0.2]), ["dogs", "chase", "extraordinary cats"], ["S", "NP", "VP"]
    ),
    "ways": lambda: drawing.paths(
        ([[edge in way for edge in GRID.edges] for way in WAYS], [0.6, 0.4]),
        GRID.edges,
        [[1, 2, 3], [4, 5, 6]],
    ),
    "trees": lambda: drawing.trees((HEADS, [0.5, 0.3, 0.2]), WORDS),
    "matchings": lambda: drawing.alignments(
        ([[1, 0, -1], [0, 1, -1]], [0.7, 0.3]), ["ein", "kurzer", "Satz"], ["a", "sentence"]
    ),
    "long columns": lambda: drawing.alignments(
        ([[2, 0], [0, 1]], [0.7, 0.3]), ["a", "b"], ["extraordinary", "words", "interchangeably"]
    ),
    "paths": lambda: drawing.alignments(
        ([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]], [0.8, 0.2]), "ab", "abc", path=True
    ),
    "forests": lambda: drawing.forests((LINKS, [0.6, 0.4]), NAMES),
    "placed forests": lambda: drawing.forests((LINKS, [0.6, 0.4]), NAMES, positions=CORNERS),
    "graphs": lambda: drawing.graphs(
        ([[1, 1, 0, 0], [0, 0, 1, 1]], [0.6, 0.4]),
        PLACED_EDGES,
        "routes",
        dict(zip("abcd", CORNERS)),
    ),
    "directed graphs": lambda: drawing.graphs(
        ([[1, 1, 0, 0]], [1.0]), PLACED_EDGES, "routes", dict(zip("abcd", CORNERS)), directed=True
    ),
    "factor graphs": lambda: drawing.factor_graphs(
        ([[0, 1, 0, 1], [1, 0, 1, 0]], [0.9, 0.1]), SQUARE, NAMES, ["for", "against"]
    ),
    "placed factor graphs": lambda: drawing.factor_graphs(
        ([[0, 1, 2, 1], [1, 0, 1, 0]], [0.9, 0.1]), SQUARE, NAMES, "xyz", positions=CORNERS
    ),
}


def texts_of(axes):
    return [text for text in [axes.title, *axes.texts] if text.get_text()]


def written(axes):
    return [text.get_text() for text in texts_of(axes)]


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def of_kind(axes, kind):
    return [patch for patch in axes.patches if type(patch) is kind]


def boxes_of(figure):
    """The box of each text in pixels, panel by panel."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        # The box of a text at an angle is far larger than the text.
        yield [
            (text.get_text(), text.get_window_extent(renderer))
            for text in texts_of(axes)
            if not text.get_rotation()
        ]


def assert_within(figure):
    for boxes in boxes_of(figure):
        for text, box in boxes:
            low, high = figure.bbox.min - 1, figure.bbox.max + 1
            assert (box.min >= low).all(), text
            assert (box.max <= high).all(), text


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_texts_neither_overlap_nor_leave_the_white_page(draw):
    with matplotlib.rc_context({"figure.facecolor": "black", "text.color": "white"}):
        figure = draw()
    assert to_hex(figure.get_facecolor()) == PAPER
    assert not any(text.get_color() == "white" for axes in figure.axes for text in texts_of(axes))
    assert_within(figure)
    for boxes in boxes_of(figure):
        for (one, box), (other, other_box) in combinations(boxes, 2):
            assert not box.padded(-1).overlaps(other_box.padded(-1)), (one, other)
    renderer = FigureCanvasAgg(figure).get_renderer()
    for text in (text for axes in figure.axes for text in axes.texts):  # turned ones, too
        corner = text.get_window_extent(renderer).max
        assert (corner <= figure.bbox.padded(1).max).all(), text
    figure.savefig(io.BytesIO(), format="svg")


def test_a_distribution_and_its_arrays_give_the_same_picture():
    _, solution = didyma.sparsemap(
        [1.0, 0.8, 0.0], didyma.structures.Choice(), return_solution=True
    )
    options = ["a", "b", "c"]
    pair = [0, 1], [0.6, 0.4]
    one, other = drawing.choices(solution[0], options), drawing.choices(pair, options)
    assert written(one.axes[0]) == written(other.axes[0]) == ["a", "60%", "b", "40%", "c", "0%"]


def test_structures_come_most_probable_first():
    figure = drawing.trees((HEADS[::-1], [0.2, 0.3, 0.5]), WORDS)
    assert titles(figure) == ["3 trees", "50%", "30%", "20%"]
    assert titles(drawing.trees((HEADS, [0.5, 0.3, 0.2]), WORDS, most=2)) == [
        "3 trees, 2 shown",
        "50%",
        "30%",
    ]
    assert titles(drawing.trees((HEADS[:1], [1.0]), WORDS)) == ["100%"]


def test_each_arc_is_drawn_once_and_common_ones_are_grey():
    figure = drawing.trees((HEADS, [0.5, 0.3, 0.2]), WORDS)
    together, *singles = figure.axes
    assert len(of_kind(together, FancyArrowPatch)) == len(
        {(m, h) for heads in HEADS for m, h in enumerate(heads) if m}
    )
    for axes in singles:
        colours = [to_hex(arrow.get_edgecolor()) for arrow in of_kind(axes, FancyArrowPatch)]
        assert len(colours) == len(WORDS)
        assert colours.count(QUIET) == 4  # they, ate, the, pizza
        assert colours.count(ACCENT) == 2  # with, anchovies
    assert sorted(text for text in written(together) if "%" in text) == sorted(
        ["50%", "30%", "20%", "80%", "20%"]
    )


def test_arcs_join_heads_to_words():
    figure = drawing.trees((HEADS[:1], [1.0]), WORDS)
    (axes,) = figure.axes
    centres = [text.get_position()[0] for text in axes.texts if text.get_text() in WORDS]

    def word_at(x):
        return 1 + int(np.argmin(np.abs(np.array(centres) - x)))

    drawn = set()
    for arrow in of_kind(axes, FancyArrowPatch):
        path = arrow._path_original.vertices
        straight = len(path) == 2
        drawn.add((word_at(path[-1, 0]), 0 if straight else word_at(path[0, 0])))
    assert drawn == {(m, h) for m, h in enumerate(HEADS[0]) if m}


def test_several_roots_have_their_probabilities():
    figure = drawing.trees(([[-1, 0, 1], [-1, 2, 0]], [0.7, 0.3]), ["dogs", "bark"])
    assert [text for text in written(figure.axes[0]) if text.startswith("root")] == [
        "root\n70%",
        "root\n30%",
    ]
    assert written(figure.axes[1]).count("root") == 1
    assert_within(figure)


def test_bands_are_as_wide_as_the_sequences_are_probable():
    axes = DRAWINGS["sequences"]().axes[0]
    bands = [band.get_linewidth() for band in of_kind(axes, PathPatch)]
    assert bands[0] / bands[1] == pytest.approx(0.55 / 0.45)
    boxes = [box.get_height() for box in of_kind(axes, Rectangle) if not box.get_fill()]
    full = max(boxes)
    shares = sorted(height / full for height in boxes)
    np.testing.assert_allclose(shares, [0.45, 0.45, 0.55, 0.55, 1, 1])


def test_rare_sequences_share_one_colour():
    paths = np.array(list(np.ndindex(2, 2, 2)))
    probabilities = np.arange(8, 0, -1) / 36
    figure = drawing.sequences((paths, probabilities), ["a", "b", "c"], ["x", "y"], most=3)
    bands = of_kind(figure.axes[0], PathPatch)
    assert [to_hex(band.get_edgecolor()) for band in bands].count(OTHERS) == 5
    assert "5 others 42%" in written(figure.axes[0])


def test_padding_is_not_drawn():
    words = ["dogs", "bark"]
    padded = drawing.trees(([[-1, 2, 0, -1, -1]], [1.0]), words)
    assert written(padded.axes[0]) == written(drawing.trees(([[-1, 2, 0]], [1.0]), words).axes[0])
    assert drawing.sequences(([[0, 1, -1]], [1.0]), words, ["x", "y"])
    wide = np.zeros((2, 6, 6), bool)
    wide[:, :4, :4] = LINKS
    assert titles(drawing.forests((wide, [0.6, 0.4]), NAMES)) == ["2 forests", "60%", "40%"]


def test_cells_have_their_marginals_and_dots_their_pairs():
    figure = DRAWINGS["matchings"]()
    assert titles(figure) == ["2 matchings", "70%", "30%"]
    shares = [text for text in written(figure.axes[0]) if "%" in text]
    assert shares == ["30%", "70%", "70%", "30%"]
    assert not figure.axes[0].lines
    assert [len(axes.lines[0].get_xdata()) for axes in figure.axes[1:]] == [2, 2]
    assert figure.axes[1].lines[0].get_linestyle() == "None"
    assert DRAWINGS["paths"]().axes[1].lines[0].get_linestyle() == "-"


def test_links_and_pies():
    together, first, second = DRAWINGS["forests"]().axes
    assert (len(together.lines), len(first.lines), len(second.lines)) == (4, 3, 3)
    assert sorted(text for text in written(together) if "%" in text) == ["40%", "60%"]
    together, first, second = DRAWINGS["factor graphs"]().axes
    assert len(of_kind(together, Wedge)) == 8
    assert len(of_kind(first, Wedge)) == len(of_kind(first, Circle)) == len(NAMES)
    angles = [wedge.theta2 - wedge.theta1 for wedge in of_kind(together, Wedge)]
    np.testing.assert_allclose(sorted(angles), [36] * 4 + [324] * 4)


def test_edges_that_are_not_taken_are_faint_and_arrows_point():
    together, first, _ = DRAWINGS["graphs"]().axes
    assert (len(together.lines), len(first.lines)) == (4 + 4, 4 + 2)
    assert titles(DRAWINGS["graphs"]()) == ["2 routes", "60%", "40%"]
    assert len(of_kind(DRAWINGS["directed graphs"]().axes[-1], FancyArrowPatch)) == 2


def test_segments_have_their_colours_and_cuts():
    (axes,) = DRAWINGS["segments"]().axes
    assert [text for text in written(axes) if "%" in text] == ["70%", "30%"]
    boxes = [box for box in of_kind(axes, Rectangle) if box.get_height() > 0.14]
    whole = [box for box in boxes if box.get_height() == max(b.get_height() for b in boxes)]
    shares = sorted(box.get_height() / whole[0].get_height() for box in boxes)
    np.testing.assert_allclose(shares, [0.7, *[1.0] * 9])  # and 0.3 of "New", which is low
    cuts = [line.get_linewidth() for line in axes.lines]
    np.testing.assert_allclose(np.array(cuts) / max(cuts), [0.3, 0.7, 1.0])


def test_spans_and_their_branches():
    together, first, second = DRAWINGS["constituents"]().axes
    assert titles(together.figure) == ["2 trees", "80%", "20%"]
    assert {"VP 80%", "S 20%"} <= set(written(together))
    assert [len(axes.lines) for axes in (together, first, second)] == [8 + 3, 4 + 3, 4 + 3]


def test_ways_go_through_their_cells():
    (axes,) = DRAWINGS["ways"]().axes
    assert [text for text in written(axes) if "%" in text] == ["60%", "40%"]
    other, best = axes.lines  # the best one on top
    assert best.get_linewidth() > other.get_linewidth()
    across = [np.round(np.diff(line.get_xdata()) / 0.42) for line in (best, other)]
    np.testing.assert_array_equal(across, [[1, 0, 1], [0, 1, 1]])


def test_words_are_not_formulas():
    figure = drawing.trees(([[-1, 2, 0]], [1.0]), ["$5_x$", "x^2$"])
    assert {"$5_x$", "x^2$"} <= set(written(figure.axes[0]))
    figure.savefig(io.BytesIO())
    assert not any(text.get_parse_math() for text in figure.axes[0].texts)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (0.004, "<1%"), (0.5, "50%"), (0.996, "99%"), (1.0, "100%"), (1 + 1e-15, "100%")],
)
def test_rounding_never_makes_certain(share, text):
    assert percent(share) == text


@st.composite
def sentences(draw):
    words = draw(
        st.lists(st.sampled_from(["a", "is", "hearing", "W" * 14]), min_size=1, max_size=9)
    )
    n, k = len(words), draw(st.integers(1, 4))
    return words, draw(
        st.lists(st.lists(st.integers(0, n), min_size=n, max_size=n), min_size=k, max_size=k)
    )


@settings(max_examples=30, deadline=None)
@given(sentences())
def test_any_heads_over_any_words_stay_on_the_page(sentence):
    words, heads = sentence
    heads = np.array(heads)
    heads[heads == np.arange(1, len(words) + 1)] = 0
    rows = np.column_stack([np.full(len(heads), -1), heads])
    assert_within(drawing.trees((rows, np.full(len(heads), 1 / len(heads))), words))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["a", "she", "the surgeon", "W" * 14]), min_size=1, max_size=8))
def test_any_names_around_a_graph_stay_on_the_page(names):
    n = len(names)
    links = np.triu(np.ones((1, n, n), bool), 1)
    assert_within(drawing.forests((links, [1.0]), names))
    line = [(i, 0) for i in range(n)]
    edges = [(i, i + 1) for i in range(n - 1)]
    states = np.zeros((1, n), int)
    assert_within(drawing.factor_graphs((states, [1.0]), edges, names, ["x"], positions=line))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: drawing.choices(([0, 3], [0.5, 0.5]), ["a", "b"]), "2 options, found index 3"),
        (lambda: drawing.choices(([0, 1], [1.0]), ["a", "b"]), "each of 2 structures"),
        (lambda: drawing.trees(([0, 1], [0.5, 0.5]), ["a"]), "2 axes in all"),
        (lambda: drawing.trees((HEADS, [0.5, 0.3, 0.2]), WORDS[:4]), "5 words and the root"),
        (lambda: drawing.trees(([[-1, 0, -1]], [1.0]), ["a", "b"]), "found index -1"),
        (lambda: drawing.alignments((LINKS, [0.6, 0.4]), "ab", "xy"), "2 x 2 rows and columns"),
        (lambda: drawing.forests((LINKS, [0.6, 0.4]), "abcde"), "5 x 5 nodes"),
        (lambda: drawing.paths(([[True]], [1.0]), [(0, 4)], [[1, 2]]), "edges between cells"),
        (
            lambda: drawing.forests((LINKS, [0.6, 0.4]), NAMES, positions=[(0, 0)]),
            r"positions: expected shape \(4, 2\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(draw, message):
    with pytest.raises(DataError, match=message):
        draw()


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\.\[report\]"):
        DRAWINGS["trees"]()


def test_the_gallery_shows_every_example():
    page = (ROOT / "docs" / "gallery.md").read_text()
    examples = sorted((ROOT / "examples").glob("gallery_*.py"))
    assert len(examples) == 25
    for path in examples:
        assert f"(../examples/{path.name})" in page
        picture = f"gallery/{path.stem.removeprefix('gallery_')}.svg"
        assert f"]({picture})" in page
        assert (ROOT / "docs" / picture).read_text().startswith("<?xml")
