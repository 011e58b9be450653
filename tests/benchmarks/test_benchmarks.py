"""Benchmarks in small: each has figures and targets, and what is compared computes the same."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.row import Row
from benchmarks.timing import interleave, stopwatch

import didyma.structures
from benchmarks import (
    document,
    large_data,
    low_rank,
    lp_sparsemap,
    memory,
    oracle,
    parser,
    passage,
    peers,
    startup,
    structure_kernels,
    structures,
    threads,
    whole,
)
from didyma.cli.commands import COMMANDS
from didyma.data import conll
from didyma.nbest.low_rank import LowRankReranker
from didyma.structures import FactorGraph
from didyma.structures.compiled import CompiledStructure

TINY = 0.005
# Those with a process or a commit of its own for each row.
ELSEWHERE = {"before", "cluster", "local"}
WITHOUT_TARGETS = {
    "structures",
    "structure_kernels",
    "layers",
    "lp_sparsemap",
    "tagger",
    "peers",
    "equal_measure",
    "whole",
}


@pytest.fixture
def alone(monkeypatch):
    """No library is installed for comparison, all runs here, and each thing is timed once."""
    for name in (*BENCHMARKS, "timing"):
        module = import_module(f"benchmarks.{name}")
        if hasattr(module, "environment"):
            monkeypatch.setattr(module, "environment", lambda package, *interpreters: None)
        if hasattr(module, "interleave"):
            monkeypatch.setattr(module, "interleave", lambda timers, times: interleave(timers, 1))
        if hasattr(module, "fastest"):
            monkeypatch.setattr(module, "fastest", lambda function, *_: stopwatch(function)())
    measured = {"fit": memory.fit, "predict": memory.predict, "read": memory.read}
    measured["stream"] = memory.stream
    monkeypatch.setattr(memory, "_measured", lambda what, *data: measured[what](*data))
    monkeypatch.setattr(large_data, "_measured", lambda step, folder: large_data.do(step, folder))
    monkeypatch.setattr(large_data, "_limit", lambda room: None)  # which would hold for other tests
    monkeypatch.setattr(low_rank, "FACTOR", 2)
    monkeypatch.setattr(low_rank, "_measure", low_rank.fit)
    once = cache(lambda: threads.measure(TINY))
    monkeypatch.setattr(threads, "_measured", lambda scale, variables: once())
    few = {command: startup.COMMANDS[command] for command in ("--help", "eval MODEL DATA")}
    monkeypatch.setattr(startup, "COMMANDS", few)
    monkeypatch.setitem(peers.PEERS, peers.BOOSTER, lambda train, test: None)
    monkeypatch.setattr(whole, "_start", lambda command, **options: lambda: 1.0)
    monkeypatch.setattr(whole, "_output", lambda command: '{"seconds": 1.0, "extra": 2e6}')


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in ELSEWHERE])
@pytest.mark.usefixtures("alone")
def test_a_benchmark_returns_figures(name):
    rows = import_module(f"benchmarks.{name}").run(TINY / 10 if name == "search" else TINY)
    present = [row for row in rows if row.figure != "absent"]
    assert present
    assert all(math.isfinite(row.value) and row.value >= 0 for row in present)
    assert all((row.ok is None) == (row.target == "") for row in present)
    assert any(row.target for row in rows) or name in WITHOUT_TARGETS


def test_every_command_is_started():
    started = {command.split()[0] for command in startup.COMMANDS}
    assert COMMANDS.keys() - started <= {"demo"}  # whose time is their work


def test_every_structure_is_measured():
    measured = {type(case.structure) for case in structures.cases()}
    every = [getattr(didyma.structures, name) for name in didyma.structures.__all__]
    written = {
        one for one in every if isinstance(one, type) and issubclass(one, CompiledStructure)
    } - {didyma.structures.Planned, didyma.structures.Recurrence}
    assert written <= measured


def test_rows_judge_themselves():
    assert Row.at_most("a", 1.2, "x", 1.2).ok
    assert not Row.at_most("a", 1.21, "x", 1.2).ok
    assert Row.at_least("a", 100.0, "x", 100).ok
    assert not Row.at_least("a", 99.0, "x", 100).ok
    assert Row("a", 1.0, "x").ok is None


def test_the_document_has_a_place_for_every_benchmark_and_keeps_the_others(tmp_path, monkeypatch):
    text = document.DOCUMENT.read_text(encoding="utf-8")
    for name in BENCHMARKS:
        page = document.CROSSED[name].read_text() if name in document.CROSSED else text
        assert page.count(f"<!-- {name}: begin -->") == page.count(f"<!-- {name}: end -->") == 1
    path, crossed = tmp_path / "BENCHMARKS.md", tmp_path / "structures.md"
    path.write_text("".join(f"<!-- {n}: begin -->\nold {n}\n<!-- {n}: end -->\n" for n in "ab"))
    crossed.write_text("<!-- c: begin -->\n<!-- c: end -->\n")
    monkeypatch.setattr(document, "CROSSED", {"c": crossed})
    rows = [Row("`Chain`: argmax", 1.0, "µs"), Row.absent("`Matching`: argmax")]
    document.write({"a": [Row.at_most("name", 1.0, "x", 2.0)], "c": rows}, path)
    assert "| name | 1 | x | ≤ 2 | met |" in path.read_text()
    assert "old a" not in path.read_text()
    assert "old b" in path.read_text()
    assert "| `Matching` | no |" in crossed.read_text()


def test_the_command_writes_json(tmp_path, monkeypatch, capsys):
    rows = [Row("kept", 1.0, "x", "≤ 2", True), Row.absent("gone")]
    monkeypatch.setattr(oracle, "run", lambda: rows)
    main(["--only", "oracle", "--json", str(tmp_path / "out.json")])
    assert "1 of 1 targets met" in capsys.readouterr().out
    written = json.loads(Path(tmp_path, "out.json").read_text())["oracle"]
    assert [row["value"] for row in written] == [1.0, None]


def test_what_is_compared_computes_the_same():
    rng = np.random.default_rng(0)
    scores, transitions = rng.standard_normal((4, 6, 3)), rng.standard_normal((3, 3))
    best = didyma.structures.Chain().predict(scores, transitions=transitions)
    np.testing.assert_array_equal(structure_kernels.viterbi(scores, transitions), best)
    values = torch.tensor(rng.standard_normal((2, 7)))
    relevant = torch.arange(7).expand(2, 7) < 3
    whole_list = passage.smooth_ap(values, relevant)
    assert float(passage.smooth_ap(values, relevant, 3)) == pytest.approx(float(whole_list))
    X, Y = rng.standard_normal((40, 6)), rng.standard_normal((40, 4))
    model = LowRankReranker("generative", 2, 0.5).fit(X, Y)
    A, B = low_rank.two_factors(X, Y, 2, 0.5)
    own = low_rank._correlations(X, Y, 0.5, model.A_, model.B_)
    assert low_rank._correlations(X, Y, 0.5, A, B) == pytest.approx(own)
    # Where ½‖u‖² is all that there is besides scores, marginals are scores within [0, 1].
    given = lp_sparsemap._graph(FactorGraph(5), 4).arrays
    np.testing.assert_allclose(given["marginals"], given["scores"].clip(0, 1), atol=1e-9)
    trees = conll.read(parser.DATA, trees=True)[:3]
    parser.joined(trees).check_tree()


def test_speed_counts_only_where_the_result_is_as_good(monkeypatch):
    with pytest.raises(AssertionError):
        oracle._seconds(lambda scores, positives, negatives, coef: 0.0, 3, 7)
    X = np.random.default_rng(0).normal(size=(50, 6))
    peer = (np.eye(6)[:, :2], np.eye(6)[:, :2])
    assert next(low_rank._compare("peer", X, X, 2, 1e-6, lambda: peer, seconds=1e9)).ok
    sums = iter([2.0, 1.9])  # the peer's, and ours
    monkeypatch.setattr(low_rank, "_correlations", lambda *_: next(sums))
    assert not next(low_rank._compare("peer", X, X, 2, 1e-6, lambda: peer, seconds=1e9)).ok
