"""The demonstration from end to end, on a part of its topics."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import didyma
from didyma.applications.demo.corpus import Corpus, language_reference
from didyma.applications.demo.demonstration import FIRST_STAGE, OURS, run
from didyma.cli import app
from didyma.data.texts import reader as texts
from didyma.metrics import evaluate


@pytest.fixture(scope="module", autouse=True)
def date():
    """Models have one: the same, so that files are equal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        yield


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


def test_the_reranker_is_compared_with_the_first_stage(result):
    assert [row.name for row in result.table.rows] == [FIRST_STAGE, OURS]
    assert result.table.baseline == FIRST_STAGE
    assert list(result.table.rows[0].means) == ["AP", "RR", "P@1"]
    assert result.table.n_queries == len(result.lists["test"].groups)


def test_the_first_stage_is_evaluated_in_its_own_order(result):
    test = result.lists["test"]
    descending = -np.arange(len(test), dtype=np.float64)  # candidates come best first
    expected = evaluate(descending, test.y, test.groups, "AP")["AP"]
    np.testing.assert_allclose(result.evaluations[FIRST_STAGE]["AP"], expected, atol=0.05)


def test_files_hold_what_was_evaluated(result, folder, corpus):
    assert {path.parent for path in result.files.values()} == {folder}
    test = texts.read(result.files["test"])
    reranker = didyma.load(result.files["reranker"])
    found = evaluate(reranker.predict(test), test.y, test.groups, "AP", docid=test.docid)
    np.testing.assert_array_equal(found["AP"], result.evaluations[OURS]["AP"])
    passages = result.files["passages"].read_text(encoding="utf-8").splitlines()
    assert passages == list(corpus.passages.values())


def test_progress_says_what_was_decided(result, lines):
    assert f"40 topics, {len(language_reference().passages)} passages" in lines[0]
    assert lines[-1] == str(result.reranker.gate_)


def test_next_steps_run(result):
    for step in result.next_steps:
        program, *arguments = shlex.split(step)
        assert program == "didyma"
        more = ["--quick"] if "fit" in arguments else ["--help"] if "serve" in arguments else []
        found = CliRunner().invoke(app, [*arguments, *more])
        assert found.exit_code == 0, found.output


def test_the_file_can_be_inspected(result):
    found = CliRunner().invoke(app, ["inspect", str(result.files["reranker"])])
    assert str(result.reranker.gate_)[:40] in found.output
    name, weight = max(result.reranker.model_.weights.items(), key=lambda item: abs(item[1]))
    assert f"{name} " in found.output
    assert f"{weight:+.4f}" in found.output


def test_the_report_shows_the_numbers(result):
    page = result.files["report"].read_text()
    for row in result.table.rows:
        assert f"{row.means['AP']:.4f}".removeprefix("0") in page
    assert all(answer.query in page for answer in result.answers)


def test_the_same_seed_writes_the_same_files(result, corpus, tmp_path):
    again = run(tmp_path, corpus=corpus)
    for name, path in result.files.items():
        assert again.files[name].read_bytes() == path.read_bytes(), name
