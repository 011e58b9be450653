from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.row import Row
from benchmarks.timing import interleave, ratio

import didyma.structures
from benchmarks import (
    additive,
    boosting,
    certified,
    document,
    esim,
    fits,
    hypergraph,
    large_data,
    latent,
    layers,
    letor_reader,
    low_rank,
    lp_sparsemap,
    memory,
    oracle,
    passage,
    passes,
    peers,
    rerank,
    scaling,
    search,
    serve,
    sparsemap,
    startup,
    structure_kernels,
    structures,
    synthetic,
    tagger,
    text_features,
    threads,
    whole,
)
from didyma.cli.commands import COMMANDS
from didyma.nbest.low_rank import LowRankReranker
from didyma.structures import FactorGraph
from didyma.structures.compiled import CompiledStructure

TINY = 0.005


MODULES = [
    *(passes, fits, additive, oracle, scaling, letor_reader, sparsemap, latent, boosting),
    *(esim, passage, text_features, rerank, serve, hypergraph, certified),
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_benchmark_returns_figures(module):
    rows = module.run(TINY)
    assert all(math.isfinite(row.value) and row.value >= 0 for row in rows)
    assert any(row.target for row in rows)
    assert all((row.ok is None) == (row.target == "") for row in rows)


def test_gains_of_threads_are_ratios_to_one(monkeypatch):
    alone = threads.measure(TINY)

    def measured(scale, variables):
        share = 1.0 if "OMP_NUM_THREADS" in variables else 2.0
        return {name: seconds / share for name, seconds in alone.items()}

    monkeypatch.setattr(threads, "_measured", measured)
    rows = threads.run(TINY)
    assert len(rows) == 2 * len(alone)
    assert all(row.value == pytest.approx(2.0) for row in rows)
    assert sum(row.ok is True for row in rows) == 2 * len(threads.SHARED)


def test_memory_is_measured(monkeypatch):
    here = {"fit": memory.fit, "predict": memory.predict, "read": memory.read}
    here["stream"] = memory.stream
    monkeypatch.setattr(memory, "_measured", lambda what, *data: here[what](*data))
    monkeypatch.setattr(large_data, "_measured", lambda step, folder: large_data.do(step, folder))
    monkeypatch.setattr(large_data, "_limit", lambda room: None)  # which would hold for other tests
    rows = memory.run(TINY)
    kinds = 2 * len(memory.KINDS) + len(memory.FILES)
    assert [row.ok is None for row in rows[: kinds + 2]] == [False] * kinds + [True, True]
    assert [row.unit for row in rows[kinds + 2 :]] == ["x", "x", "x", "MB/s"]
    assert all(math.isfinite(row.value) for row in rows)


def test_every_command_is_started(monkeypatch):
    few = {command: startup.COMMANDS[command] for command in ("--help", "eval MODEL DATA")}
    monkeypatch.setattr(startup, "COMMANDS", few)
    rows = startup.run(TINY)
    assert [row.name for row in rows] == ["didyma --help", "didyma eval MODEL DATA"]
    assert all(row.value > 0 and row.ok is not None for row in rows)


def test_every_command_has_a_row():
    started = {command.split()[0] for command in startup.COMMANDS}
    assert COMMANDS.keys() - started <= {"demo"}  # whose time is their work


def test_peers_that_cannot_be_installed_are_absent(monkeypatch):
    monkeypatch.setattr(peers, "environment", lambda package: None)
    rows = peers.run(TINY)
    absent = [row.name for row in rows if row.figure == "absent"]
    assert absent == [name for name in peers.PEERS if "LightGBM" in name or "XGBoost" in name]
    assert all(row.ok is None for row in rows if row.name in absent)
    assert sum(row.unit == "MAP" for row in rows) == 1 + len(peers.PEERS) - len(absent)


def test_searches_are_compared_with_what_is_installed(monkeypatch):
    monkeypatch.setattr(search, "environment", lambda package: None)
    rows = search.run(TINY / 10)
    assert [row.name for row in rows if row.figure == "absent"] == ["bm25s", "tantivy"]
    assert all(row.value > 0 for row in rows if row.figure != "absent")
    assert any(row.target for row in rows)


def test_structures_are_compared_with_what_is_installed(monkeypatch):
    monkeypatch.setattr(peers, "environment", lambda package: None)
    rows = structure_kernels.run(TINY)
    assert [row.name for row in rows if row.figure == "absent"] == [
        "assignment 10: lap over ours",
        "Viterbi 25x5: torch-struct over ours",
    ]
    assert any("SciPy" in row.name and row.value > 0 for row in rows)


def test_layers_are_compared_with_what_is_installed(monkeypatch):
    monkeypatch.setattr(peers, "environment", lambda package: None)
    rows = layers.run(TINY)
    assert [row.name for row in rows if row.figure == "absent"] == [
        "sequence 25x5: sparsemax",
        "sequence 25x5: entmax15",
        "sequence 25x5: torch-struct's LinearChainCRF",
    ]
    assert sum(row.value > 0 for row in rows) == 3


def test_lp_sparsemap_is_compared_where_its_python_is(monkeypatch):
    monkeypatch.setattr(peers, "environment", lambda package, *interpreters: None)
    rows = lp_sparsemap.run(TINY)
    assert [row.name for row in rows if row.figure == "absent"] == [
        f"{name}: lp-sparsemap, which needs Python 3.8 or 3.9"
        for name in ("sequence 25x5", "tree 10", "8 variables, logic")
    ]
    assert sum(row.value > 0 for row in rows) == 3


def test_an_interpreter_that_is_not_there_has_no_environment():
    assert peers.environment("lp-sparsemap", "no-such-python") is None


def test_variables_without_factors_are_those_of_lp_sparsemap():
    """Where ½‖u‖² is all that there is besides scores, marginals are scores within [0, 1]."""
    given = lp_sparsemap._graph(FactorGraph(5), 4).arrays
    np.testing.assert_allclose(given["marginals"], given["scores"].clip(0, 1), atol=1e-9)
    inside = (given["scores"] > 0) & (given["scores"] < 1)
    np.testing.assert_allclose(given["gradients"], given["directions"] * inside, atol=1e-9)


def test_structures_have_a_table_of_their_own(monkeypatch, tmp_path):
    rows = structures.run(TINY)
    assert [row.name.split(": ")[1] for row in rows] == [
        *("argmax", "4 best", "10 samples", "sums", "torch", "SparseMAP")
    ]
    page = tmp_path / "structures.md"
    page.write_text("<!-- structures: begin -->\nold\n<!-- structures: end -->\n")
    other = tmp_path / "BENCHMARKS.md"
    other.write_text("")
    monkeypatch.setattr(document, "CROSSED", {"structures": page})
    document.write({"structures": [*rows[:1], Row.absent("`Matching`: argmax")]}, other)
    assert "| | argmax |" in page.read_text()
    assert "| `Matching` | no |" in page.read_text()
    assert other.read_text() == ""
    measured = {type(case.structure) for case in structures.cases()}
    every = [getattr(didyma.structures, name) for name in didyma.structures.__all__]
    written = {
        one for one in every if isinstance(one, type) and issubclass(one, CompiledStructure)
    } - {didyma.structures.Planned, didyma.structures.Recurrence}
    assert written <= measured


def test_taggers_are_compared_with_what_is_installed(monkeypatch):
    monkeypatch.setattr(tagger, "environment", lambda package: None)
    rows = tagger.run(TINY)
    absent = [row.name for row in rows if row.figure == "absent"]
    assert any("TnT" in name for name in absent)
    assert any("CRFsuite" in name for name in absent)
    assert any("words" in row.unit and row.value > 0 for row in rows)


def test_rows_judge_themselves():
    assert Row.at_most("a", 1.2, "x", 1.2).ok
    assert not Row.at_most("a", 1.21, "x", 1.2).ok
    assert Row.at_least("a", 100.0, "x", 100).ok
    assert not Row.at_least("a", 99.0, "x", 100).ok
    assert Row("a", 1.0, "x").ok is None


def test_timers_are_called_in_turns():
    calls = []
    timers = {name: lambda name=name: calls.append(name) or 1.0 for name in "ab"}
    assert interleave(timers, 2) == {"a": [1.0, 1.0], "b": [1.0, 1.0]}
    assert calls == ["a", "b", "a", "b"]
    assert ratio([2.0, 9.0, 1.0], [1.0, 3.0, 1.0]) == 2.0


def test_the_same_hidden_score_makes_training_and_test_data():
    train, test = synthetic.dense(100, features=8), synthetic.dense(100, features=8, seed=1)
    weights = [np.linalg.lstsq(data.X - 0.5, data.y)[0] for data in (train, test)]
    assert np.corrcoef(weights)[0, 1] > 0.9
    assert np.all(np.bincount(train.qid, train.y) >= 3)


def test_algorithm_2_is_compared_at_equal_maxima():
    """The benchmark must notice an oracle that is fast because it is wrong."""

    def wrong(scores, positives, negatives, coef):
        return 0.0

    with pytest.raises(AssertionError):
        oracle._seconds(wrong, 3, 7)


def test_the_document_keeps_sections_that_were_not_run(tmp_path):
    path = tmp_path / "BENCHMARKS.md"
    path.write_text(
        "<!-- a: begin -->\nold a\n<!-- a: end -->\n<!-- b: begin -->\nold b\n<!-- b: end -->\n"
    )
    document.write({"a": [Row.at_most("name", 1.0, "x", 2.0)]}, path)
    text = path.read_text()
    assert "| name | 1 | x | ≤ 2 | met |" in text
    assert "old a" not in text
    assert "old b" in text
    with pytest.raises(ValueError, match="expected the marks"):
        document.write({"c": []}, path)


def test_the_document_has_a_place_for_every_benchmark():
    text = document.DOCUMENT.read_text(encoding="utf-8")
    for name in BENCHMARKS:
        page = document.CROSSED[name].read_text() if name in document.CROSSED else text
        assert page.count(f"<!-- {name}: begin -->") == page.count(f"<!-- {name}: end -->") == 1


def test_the_command_writes_json(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        oracle, "run", lambda: [Row("kept", 1.0, "x", "≤ 2", True), Row.absent("gone")]
    )
    main(["--only", "oracle", "--json", str(tmp_path / "out.json")])
    assert "1 of 1 targets met" in capsys.readouterr().out
    written = json.loads(Path(tmp_path, "out.json").read_text())
    assert written["oracle"][0] == {
        "name": "kept",
        "value": 1.0,
        "unit": "x",
        "target": "≤ 2",
        "ok": True,
    }
    assert written["oracle"][1]["value"] is None


def test_a_sceptic_gets_his_figures(monkeypatch):
    monkeypatch.setattr(whole, "environment", lambda package: None)
    monkeypatch.setitem(peers.PEERS, peers.BOOSTER, lambda train, test: None)
    seen = []
    monkeypatch.setattr(whole, "_start", lambda command, **options: lambda: seen.append(1) or 1.0)
    monkeypatch.setattr(whole, "_output", lambda command: '{"seconds": 1.0, "extra": 2e6}')
    rows = whole.run(TINY)
    absent = [row.name for row in rows if row.figure == "absent"]
    assert "LightGBM" in absent[0]
    assert len(absent) == 3
    assert len(seen) == 1
    assert sum(row.unit == "MAP" for row in rows) == 3
    assert [row.value for row in rows if row.unit == "MB"] == [2.0, 2.0]


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
