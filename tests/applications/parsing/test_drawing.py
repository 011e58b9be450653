"""Ambiguous sentences as pictures and pages."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from didyma.applications.parsing.drawing import Ambiguity, write
from didyma.errors import DataError

SENTENCE = Ambiguity(
    "s1",
    ["saw", "<men>", "with", "hats"],
    np.array([[0, 1, 4, 2], [0, 1, 4, 1]]),
    [["root", "obj", "case", "nmod"], ["root", "obj", "case", "obl"]],
    np.array([0.75, 0.25]),
)
SURE = Ambiguity("s2", ["go"], np.array([[0]]), [["root"]], np.array([1.0]))


def test_differences_are_told_in_words():
    assert list(SENTENCE.differences()) == [
        (0.75, ["hats is nmod of <men>"]),
        (0.25, ["hats is obl of saw"]),
    ]
    assert list(SURE.differences()) == [(1.0, [])]


def test_a_page_has_a_picture_of_each_sentence(tmp_path):
    write([SENTENCE, SURE], "A & B", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.count("<svg") == 2
    assert "A &amp; B" in page
    assert "<b>75.0%</b> hats is nmod of &lt;men&gt;" in page
    write([SENTENCE, SURE], "A & B", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == page


def test_a_page_shows_a_handful_of_trees_and_says_how_many_there_are(tmp_path):
    heads = np.array([[0, 1, 1 + k % 2] for k in range(12)])
    shares = np.array([0.2, *[0.1] * 5, *[0.05] * 6])
    many = Ambiguity("s", ["a", "b", "c"], heads, [["x"] * 3] * 12, shares)
    write([many, SENTENCE], "", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.count("<li>") == 5 + 2
    assert "12 trees</span>" in page
    assert "and 7 more, 40.0% together" in page
    assert page.count("more, ") == 1


def test_pictures_stand_below_each_other(tmp_path):
    write([SENTENCE, SURE], "", tmp_path / "p.svg")
    outer = ElementTree.parse(tmp_path / "p.svg").getroot()
    inner = outer.findall("{http://www.w3.org/2000/svg}svg")
    places = [(float(svg.get("y")), float(svg.get("height"))) for svg in inner]
    assert places[0][0] == 0.0
    assert places[1][0] >= places[0][1]
    assert float(outer.get("height").removesuffix("pt")) >= places[1][0] + places[1][1] - 1e-6


def test_no_ambiguous_sentences_make_an_empty_picture(tmp_path):
    write([], "", tmp_path / "p.svg")
    assert ElementTree.parse(tmp_path / "p.svg").getroot().tag.endswith("svg")


def test_other_kinds_of_files_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"expected a name that ends in \.svg or \.html"):
        write([SENTENCE], "", tmp_path / "p.png")
