from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import ArrayLike

from didyma.errors import DataError
from didyma.metrics import Evaluation, parse, t_test, wilcoxon
from didyma.metrics.significance import holm
from didyma.report.table import comparison

QUERIES = [f"q{i}" for i in range(8)]
OLD = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
NEW = OLD + np.array([0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17, 0.0])


def evaluation(values: ArrayLike, queries: list[str] = QUERIES, **more: ArrayLike) -> Evaluation:
    columns = {"AP": values, **more}
    return Evaluation(
        np.array(queries),
        {parse(name): np.asarray(column, np.float64) for name, column in columns.items()},
    )


def test_each_system_is_compared_with_the_first() -> None:
    table = comparison({"old": evaluation(OLD), "new": evaluation(NEW)})
    old, new = table.rows
    assert (table.baseline, table.measure, table.n_queries) == ("old", "AP", 8)
    assert (old.p_value, old.difference, old.wins, old.star) == (None, None, None, False)
    assert old.means == {"AP": pytest.approx(0.45)}
    assert (new.wins, new.losses, new.ties) == (7, 0, 1)
    assert new.difference == pytest.approx(0.1225)
    assert new.p_value == wilcoxon(NEW, OLD) == pytest.approx(2 / 2**7)
    assert new.star


def test_baseline_test_and_correction_are_chosen() -> None:
    third = OLD[::-1].copy()
    systems = {"old": evaluation(OLD), "new": evaluation(NEW), "third": evaluation(third)}
    table = comparison(systems, baseline="new", test="t-test", correct=True)
    p_values = holm([t_test(OLD, NEW), t_test(third, NEW)])
    assert [row.p_value for row in table.rows] == [
        pytest.approx(p_values[0]),
        None,
        pytest.approx(p_values[1]),
    ]
    assert table.rows[0].losses == 7
    assert "t-test" in table.caption
    assert "Holm" in table.caption
    assert comparison(systems, test="randomisation").rows[2].p_value == pytest.approx(1, abs=0.01)


def test_queries_are_matched_by_name() -> None:
    straight = comparison({"old": evaluation(OLD), "new": evaluation(NEW)})
    turned = comparison({"old": evaluation(OLD), "new": evaluation(NEW[::-1], QUERIES[::-1])})
    assert turned == straight


def test_numbered_and_named_queries_meet() -> None:
    numbered = Evaluation(np.array([2, 1]), {parse("AP"): np.array([0.5, 1.0])})
    table = comparison({"a": numbered, "b": evaluation([1.0, 0.5], ["1", "2"])})
    assert table.rows[1].ties == 2


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([*QUERIES[:7], "other"], "new lacks 1: q7"),
        ([*QUERIES, "other"], "old lacks 1: other"),
        ([f"r{i}" for i in range(8)], "new lacks 8: q0, q1, q2, q3, q4, …"),
    ],
)
def test_queries_that_only_one_system_has_are_named(queries: list[str], message: str) -> None:
    new = evaluation(np.zeros(len(queries)), queries)
    with pytest.raises(DataError, match=message):
        comparison({"old": evaluation(OLD), "new": new})


def test_wrong_choices_name_the_right_ones() -> None:
    systems = {"old": evaluation(OLD), "new": evaluation(NEW)}
    with pytest.raises(DataError, match="expected one of old, new, found 'nwe'"):
        comparison(systems, baseline="nwe")
    with pytest.raises(DataError, match=r"wilcoxon, t-test or randomisation, found 'z'"):
        comparison(systems, test="z")
    with pytest.raises(DataError, match=r"old was not evaluated by P@5"):
        comparison(systems, measure="P@5")
    with pytest.raises(DataError, match=r"new was not evaluated by RR"):
        comparison({"old": evaluation(OLD, RR=OLD), "new": evaluation(NEW)})
    with pytest.raises(DataError, match="no systems"):
        comparison({})


def test_dictionary_is_json_with_null_for_what_is_missing() -> None:
    nothing = np.full(8, np.nan)
    table = comparison({"old": evaluation(OLD, RR=nothing), "new": evaluation(NEW, RR=nothing)})
    found = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert found["systems"][0]["means"] == {"AP": pytest.approx(0.45), "RR": None}
    assert found["systems"][0]["p_value"] is None
    assert found["systems"][1]["significant"] is True
    assert found["test"] == "wilcoxon"
    assert " - " in table.text()


def test_text_has_aligned_columns() -> None:
    table = comparison({"old": evaluation(OLD, RR=OLD), "a longer name": evaluation(NEW, RR=NEW)})
    head, old, new, caption = table.text().splitlines()
    assert head.split() == ["system", "AP", "RR", "diff", "AP", "W/L/T", "p"]
    assert old.split() == ["old", ".4500", ".4500"]
    assert new.split() == ["a", "longer", "name", ".5725", ".5725", "+.1225*", "7/0/1", ".0156"]
    assert head.index("p") == len(new) - 1
    assert old.index(".4500") == new.index(".5725")
    assert caption.startswith("* p < .05: two-tailed Wilcoxon test of AP against old over 8")


def test_latex_is_a_tabular_with_escaped_names() -> None:
    names = ["50% & more_{x}^2~\\", "b<a>#$"]
    far = dict(zip(names, (evaluation(np.linspace(0.4, 0.6, 8)), evaluation(np.zeros(8)))))
    lines = comparison(far).latex().splitlines()
    assert lines[1] == r"\begin{tabular}{lrrrr}"
    assert [lines[2], lines[4], lines[-2], lines[-1]] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert lines[3] == r"system & AP & $\Delta$ AP & W/L/T & p \\"
    escaped = r"50\% \& more\_\{x\}\textasciicircum{}2\textasciitilde{}\textbackslash{}"
    assert lines[5].startswith(escaped + " & ")
    assert lines[6] == r"b$<$a$>$\#\$ & .0000 & $-$.5000$^{*}$ & 0/8/0 & .0078 \\"
    assert all(line.count(" & ") == 4 for line in (lines[3], lines[6]))


def test_small_p_values_are_not_shown_as_zero() -> None:
    queries = [str(i) for i in range(60)]
    better = evaluation(np.linspace(0.5, 0.9, 60), queries)
    table = comparison({"zero": evaluation(np.zeros(60), queries), "better": better})
    assert "<.0001" in table.text()
    assert "$<$.0001" in table.latex()


def test_rich_table_shows_names_as_they_are() -> None:
    from rich.console import Console

    screen = io.StringIO()
    systems = {"[bold]old[/bold]": evaluation(OLD), "new": evaluation(NEW)}
    Console(file=screen, width=120).print(comparison(systems).rich())
    for text in ("[bold]old[/bold]", "+.1225*", "7/0/1", ".0156", "Δ AP", "two-tailed"):
        assert text in screen.getvalue()


def test_importing_the_table_is_cheap() -> None:
    code = (
        "import sys, didyma.report.table; "
        "print(sorted({'numpy', 'rich', 'ir_measures'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
