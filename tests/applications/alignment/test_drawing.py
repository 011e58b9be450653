"""Heat maps of alignments show weights, structures and probabilities."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from didyma.applications.alignment import drawing
from didyma.applications.alignment.esim import Alignment, Selected
from didyma.errors import DataError, MissingExtraError

PREMISE, HYPOTHESIS = ("a", "gentleman", "sings"), ("a", "<man>", "performs", "$x$")


def matching():
    structures = np.zeros((2, 3, 4), bool)
    structures[0, [0, 1, 2], [0, 1, 2]] = structures[1, [0, 1, 2], [0, 1, 3]] = True
    shares = np.array([0.75, 0.25])
    weights = np.tensordot(shares, structures.astype(float), 1)
    return Alignment(
        PREMISE, HYPOTHESIS, weights, weights, {"matching": Selected(structures, shares)}
    )


def sequential():
    first, second = np.zeros((1, 3, 4), bool), np.zeros((1, 3, 4), bool)
    first[0, [0, 1, 2], [0, 0, 2]] = True
    second[0, [0, 1, 2, 1], [0, 1, 2, 3]] = True
    selected = {
        "premise to hypothesis": Selected(first, np.ones(1)),
        "hypothesis to premise": Selected(second, np.ones(1)),
    }
    return Alignment(PREMISE, HYPOTHESIS, first[0] * 1.0, second[0] * 1.0, selected)


def softmax():
    rows, columns = np.full((3, 4), 0.25), np.full((3, 4), 1 / 3)
    return Alignment(PREMISE, HYPOTHESIS, rows, columns, {})


def captions(figure):
    return [axes.get_xlabel() for axes in figure.axes]


def test_a_panel_for_the_weights_and_one_for_each_structure():
    assert captions(drawing.heat_maps([matching()])) == ["matching\n2 structures", "75%", "25%"]
    assert captions(drawing.heat_maps([matching()], most=1)) == ["matching\n2 structures", "75%"]
    assert captions(drawing.heat_maps([sequential()])) == [
        *("premise to hypothesis\n1 structure", "100%"),
        *("hypothesis to premise\n1 structure", "100%"),
    ]
    found = captions(drawing.heat_maps([softmax(), matching()]))
    assert found[:2] == [
        "premise to hypothesis\nrows sum to 1",
        "hypothesis to premise\ncolumns sum to 1",
    ]
    assert len(found) == 5


def test_weights_above_zero_are_framed_and_written():
    weights, first, _ = drawing.heat_maps([matching()]).axes
    assert [text.get_text() for text in weights.texts] == ["100", "100", "75", "25"]
    assert len(weights.patches) == 4
    (line,) = first.lines
    assert line.get_linestyle() == "None"
    assert line.get_xydata().tolist() == [[0.5, 0.5], [1.5, 1.5], [2.5, 2.5]]


def test_paths_follow_the_words_of_their_own_sentence():
    axes = drawing.heat_maps([sequential()]).axes
    (down,), (across,) = axes[1].lines, axes[3].lines
    assert down.get_linestyle() == across.get_linestyle() == "-"
    assert down.get_xydata().tolist() == [[0.5, 0.5], [0.5, 1.5], [2.5, 2.5]]
    assert across.get_xydata().tolist() == [[0.5, 0.5], [1.5, 1.5], [2.5, 2.5], [3.5, 1.5]]


def test_nothing_is_cut_off_and_titles_stand_apart():
    figure = drawing.heat_maps([softmax(), sequential(), matching()], ["one", "two", "three"])
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    page = figure.bbox
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
        names = [label.get_text() for label in axes.get_xticklabels()]
        assert names == list(HYPOTHESIS)
        for part in figure.subfigs:
            assert not box.overlaps(part._suptitle.get_window_extent())


def test_a_page_has_the_words_as_they_are(tmp_path):
    path = tmp_path / "page.html"
    drawing.write([matching(), softmax()], ["neutral <60%>", "b"], path)
    text = path.read_text(encoding="utf-8")
    assert "<h2>neutral &lt;60%&gt;</h2>" in text
    assert "<p>a &lt;man&gt; performs $x$</p>" in text
    assert text.count("<svg") == text.count("<h2>") == 2
    assert "<image" not in text
    again = tmp_path / "again.html"
    drawing.write([matching(), softmax()], ["neutral <60%>", "b"], again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG")])
def test_pictures(tmp_path, name, start):
    drawing.write([matching()], ["entailment"], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_what_cannot_be_drawn(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"ends in \.html"):
        drawing.write([matching()], [""], tmp_path / "a.txt")
    with pytest.raises(DataError, match="expected one at least"):
        drawing.heat_maps([])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\.\[report\]"):
        drawing.heat_maps([matching()])
    assert list(tmp_path.iterdir()) == []
