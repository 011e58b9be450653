"""The demonstration from end to end, on a part of its topics."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from didyma import model
from didyma.demo import FIRST_STAGE, run
from didyma.demo.corpus import Corpus, language_reference
from didyma.demo.experiment import CS, RANKERS
from didyma.formats import letor
from didyma.metrics import evaluate


@pytest.fixture(scope="module")
def corpus():
    reference = language_reference()
    return Corpus(reference.topics[:40], reference.passages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo run")


@pytest.fixture(scope="module")
def lines():
    return []


@pytest.fixture(scope="module")
def result(folder, corpus, lines):
    return run(folder, report=lines.append, corpus=corpus)


def test_all_systems_are_compared_with_the_first_stage(result):
    assert [row.name for row in result.table.rows] == [FIRST_STAGE, *RANKERS]
    assert result.table.baseline == FIRST_STAGE
    assert list(result.table.rows[0].means) == ["AP", "RR", "P@1"]
    assert result.table.n_queries == len(result.data["test"].groups)


def test_the_first_stage_is_evaluated_in_its_own_order(result):
    test = result.data["test"]
    descending = -np.arange(len(test), dtype=np.float64)  # candidates come best first
    expected = evaluate(descending, test.y, test.groups, "AP")["AP"]
    np.testing.assert_allclose(result.evaluations[FIRST_STAGE]["AP"], expected, atol=0.05)
    assert result.evaluations[FIRST_STAGE].mean("AP") == pytest.approx(expected.mean(), abs=0.01)


def test_files_hold_what_was_evaluated(result, folder):
    assert {path.parent for path in result.files.values()} == {folder}
    test = letor.read(result.files["test"])
    for name in RANKERS:
        ranker = model.load(result.files[name])
        with pytest.warns(UserWarning, match="feature names"):
            scores = ranker.predict(test.X)
        found = evaluate(scores, test.y, test.groups, "AP", docid=test.docid)
        assert found.mean("AP") == pytest.approx(result.evaluations[name].mean("AP"))
        assert tuple(ranker.feature_names_in_) == result.data["test"].feature_names
        assert ranker.C in CS


def test_ids_are_explained(result, corpus):
    pairs = dict(line.split("\t") for line in result.files["passages"].read_text().splitlines())
    assert pairs == corpus.passages
    queries = dict(line.split("\t") for line in result.files["queries"].read_text().splitlines())
    assert set(result.data["test"].qid) <= set(queries)


def test_progress_and_next_steps_name_what_happened(result, lines, folder):
    assert f"40 topics, {len(language_reference().passages)} passages" in lines[0]
    assert [name for name in RANKERS for line in lines if line.startswith(name)] == list(RANKERS)
    for step in result.next_steps:
        program, *arguments = shlex.split(step)
        assert program == "didyma"
        assert any(argument.startswith(str(folder)) for argument in arguments)


def test_the_report_shows_the_numbers(result):
    page = result.files["report"].read_text()
    for row in result.table.rows:
        assert f"{row.means['AP']:.4f}".removeprefix("0") in page
    assert all(name in page for name in result.data["test"].feature_names)


def test_the_same_seed_writes_the_same_files(result, corpus, tmp_path):
    again = run(tmp_path, corpus=corpus)
    for name in ("train", "dev", "test", "queries", "passages", "report"):
        assert again.files[name].read_bytes() == result.files[name].read_bytes(), name
    for name in RANKERS:
        np.testing.assert_array_equal(again.models[name].coef_, result.models[name].coef_)
