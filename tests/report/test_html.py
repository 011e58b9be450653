"""The report: one file that needs no other, says what the numbers say and escapes what is text."""

from __future__ import annotations

import re
import sys
from functools import cache
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from didyma.data.groups import Groups
from didyma.errors import MissingExtraError
from didyma.metrics import evaluate
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.report import plots
from didyma.report.functions import terms
from didyma.report.html import Example, RankedPassage, require_extra, write_report
from didyma.report.table import comparison
from didyma.text.calibration import Calibration, Reliability
from didyma.text.drift import Ranges

VOID = {"meta", "br", "hr", "img", "link", "input", "path", "use", "rect"}


class Page(HTMLParser):
    """The elements of a page, checked for balance, and its visible text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def evaluations():
    random = np.random.default_rng(0)
    groups = Groups.from_sizes([10] * 12, 120)
    y = np.tile([1, 0, 0, 1, 0, 0, 0, 0, 0, 0], 12)
    mixed = np.repeat([3.0, -3.0], [90, 30])  # better on most queries, and worse on some
    systems = {"old": 0.5, "new & <better>": mixed, "worse": -3.0}
    return {
        name: evaluate(slope * y + random.normal(size=120), y, groups, "AP RR P@1")
        for name, slope in systems.items()
    }


@cache
def additive_terms():
    """A number, one with missing values, categories, and a pair."""
    random = np.random.default_rng(2)
    X = random.normal(size=(120, 3))
    y = (X[:, 0] * X[:, 1] + X[:, 0] > 0.5).astype(int)
    X[::7, 1] = np.nan
    X[:, 2] = random.integers(3, size=120)
    groups = np.repeat(np.arange(12), 10)
    ranker = AdditiveSVMRanker(bins=8, categorical=[2], interactions=1).fit(X, y, qid=groups)
    return terms(ranker, ["a < b", "with holes", "kind"], ranker.changed_orders(X, groups))


@pytest.fixture(scope="module")
def contents(evaluations):
    history = [
        {"C": C, "passes": p, "value": 2.0, "dual": 2.0 - gap}
        for C, p, gap in ((1.0, 1, 1.0), (1.0, 2, 0.1), (10.0, 3, 0.5), (10.0, 4.25, 0.001))
    ]
    random = np.random.default_rng(1)
    groups, scores = Groups.from_sizes([10] * 12, 120), random.normal(size=120)
    calibration = Calibration.fit(scores, scores + random.normal(size=120) > 1, groups)
    ranges = Ranges.fit(random.normal(size=(120, 2)), groups, ["bm25 & <more>", "length"])
    drift = ranges.compare(random.normal([9.0, 0.0], size=(120, 2)), groups)
    passage = RankedPassage(1, 7, 'if a < b: print("&")', True)
    return {
        "title": "Old <and> new",
        "lead": "What is compared & why.",
        "table": comparison(evaluations),
        "evaluations": evaluations,
        "queries": {"3": "the <third> query"},
        "histories": {"new & <better>": history, "worse": []},
        "curves": {"new & <better>": [(0.1, 0.31), (1.0, 0.47), (10.0, 0.4)]},
        "weights": {"new & <better>": {"bm25": 0.5, "length": -0.75, "a<b": 0.0}},
        "functions": {"new & <better>": additive_terms()},
        "calibrations": {"new & <better>": calibration},
        "drifts": {"new & <better>": drift},
        "examples": [Example("a query & more", "The <best>.", {"old": [passage], "new": []})],
        "notes": ["A note on x < y."],
    }


@pytest.fixture(scope="module")
def text(contents, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, **contents)
    return path.read_text()


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_nothing_is_loaded(page, text):
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("img")
    for _, attributes in page.elements:
        assert not {"src", "data", "srcset"} & set(attributes)
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    links = set(re.findall(r"https?://[^\"'\s<>]+", text))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in text
    assert "url(http" not in text


def test_the_table_is_there(page, contents):
    table = contents["table"]
    for row in table.rows:
        assert row.name in page.text
        for mean in row.means.values():
            assert f"{mean:.4f}".removeprefix("0") in page.text
    for row in table.rows[1:]:
        assert f"{row.wins}/{row.losses}/{row.ties}" in page.text
    assert table.caption in page.text


def test_the_best_mean_of_each_column_is_marked(text, contents):
    rows = contents["table"].rows
    best = {f"{max(row.means[name] for row in rows):.4f}" for name in rows[0].means}
    marked = re.findall(r'<td class="best">([\d.]+)</td>', text)
    assert {value.zfill(6) if value[0] == "." else value for value in marked} == best


def test_texts_are_escaped(page, text):
    assert "<better>" not in text
    assert "<third>" not in text
    assert "<best>" not in text
    for words in ("Old <and> new", 'if a < b: print("&")', "a query & more", "x < y", "a<b"):
        assert words in page.text


def test_queries_that_moved_are_listed(text, contents, evaluations):
    old, new = evaluations["old"], evaluations["new & <better>"]
    gain = new["AP"] - old["AP"]
    for heading, place in (("Most gained", gain.argmax()), ("Most lost", gain.argmin())):
        rows = text.split(heading)[1].split("<tbody>")[1].split("</tr>")
        query, before, after = (
            unescape(cell) for cell in re.findall(r">([^<>]+)</t[hd]>", rows[0])
        )
        name = str(old.queries[place])
        assert query == contents["queries"].get(name, name)
        assert float(before) == pytest.approx(old["AP"][place], abs=1e-4)
        assert float(after) == pytest.approx(new["AP"][place], abs=1e-4)


def test_plots_are_described(page):
    drawings = page.all("svg")
    # two differences, one convergence, one curve, weights, four functions, reliability
    assert len(drawings) == 10
    assert all(drawing["role"] == "img" and drawing["aria-label"] for drawing in drawings)
    assert "The greatest weight is that of length, -0.75." in page.text
    assert "Best: new & <better> C = 1 (.4700)." in page.text
    assert "Passes in all: new & <better> 4.25." in page.text
    assert "Faint: smaller values of C" in page.text
    assert re.search(r"distance of score and share is \.\d{4} over 120 passages\.", page.text)


def test_of_many_weights_the_great_ones_are_drawn(contents, tmp_path):
    """Those that are great for any of the systems."""
    names = [f"feature {n}" for n in range(100)]
    weights = {
        "old": {name: 1.0 / (1 + n) for n, name in enumerate(names)},
        "new": {name: float(n == 99) for n, name in enumerate(names)},
    }
    path = tmp_path / "report.html"
    write_report(path, **{**contents, "weights": weights})
    text = path.read_text()
    assert "The greatest weight is that of feature 99, +1. Not drawn: 76 features" in text
    drawn = text.split("Feature weights")[1].split("</figure>")
    assert [">feature 99<" in own and ">feature 0<" in own for own in drawn[:2]] == [True, True]
    assert ">feature 90<" not in text


def test_functions_of_an_additive_ranker_are_drawn(page, text):
    found = additive_terms()
    assert found[0].importance == max(term.importance for term in found)
    for term in found:
        sentence = (
            f"What it adds has a deviation of {term.importance:.3g}. "
            f"It changes the order of {term.changed:.0%} of the queries."
        )
        assert sentence in page.text
    assert {term.title for term in found} == {"a < b", "with holes", "kind", "a < b × with holes"}
    assert "added to the score" in page.text
    assert "missing" in page.text
    assert "level of a &lt; b" in text


def test_drift_is_told(page, text, contents):
    drift = contents["drifts"]["new & <better>"]
    assert f"{drift.verdict}." in page.text
    assert drift.verdict.startswith("far: bm25 & <more> is higher (distance 1.00, 100% outside")
    assert re.findall(r'<th scope="row">(\S+).*</th><td class="much">(\S+?)<', text) == [
        ("bm25", "1.0000")
    ]


def test_ids_are_unique_and_references_resolve(page, text):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    used = re.findall(r"url\(#([^)]+)\)", text) + re.findall(r'href="#([^"]+)"', text)
    assert used
    assert set(used) <= set(ids)


def test_colours_are_those_of_the_page(text):
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    defined = set(re.findall(r"(--[\w-]+):", text))
    for drawing in drawings:
        assert not re.findall(r"#[0-9a-f]{6}\b", drawing.replace("url(#", "url("))
        assert set(re.findall(r"var\((--[\w-]+)\)", drawing)) <= defined


def test_sections_without_contents_are_left_out(contents, evaluations, tmp_path):
    path = tmp_path / "report.html"
    write_report(path, title="Bare", table=contents["table"], evaluations=evaluations)
    page = Page(path.read_text())
    assert len(page.all("h2")) == 1
    assert "Query by query" in page.text
    alone = {"old": evaluations["old"]}
    write_report(path, title="Alone", table=comparison(alone), evaluations=alone)
    assert not Page(path.read_text()).all("h2")


def test_the_same_input_gives_the_same_bytes(contents, text, tmp_path):
    path = tmp_path / "again.html"
    write_report(path, **contents)
    assert path.read_text() == text


def test_drawing_leaves_the_settings_of_matplotlib_alone():
    import matplotlib

    before = {name: matplotlib.rcParams[name] for name in plots.STYLE}
    plots.signed_bars({"a": 1.0}, "bars")
    assert {name: matplotlib.rcParams[name] for name in plots.STYLE} == before


def test_bars_show_sign_and_size():
    drawing = plots.signed_bars({"up": 2.0, "down": -1.0}, "bars")
    assert drawing.count("fill: var(--win)") == 1
    assert drawing.count("fill: var(--loss)") == 1


def test_reliability_shows_a_point_for_each_bin():
    few, many = (
        plots.reliability([Reliability(9, s, s, s - 0.1, s + 0.1) for s in scores], "points")
        for scores in ([0.2], [0.2, 0.5, 0.8])
    )
    assert many.count("<use") > few.count("<use")


def test_no_file_is_left_when_writing_fails(contents, tmp_path):
    with pytest.raises(KeyError):
        write_report(tmp_path / "report.html", **contents | {"evaluations": {}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_a_missing_library_names_the_extra(monkeypatch, missing):
    require_extra()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"^drawing the report needs .*\.\[report\]"):
        require_extra()
