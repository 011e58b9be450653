"""One measure and one tie rule: `score`, scorers, `evaluate` and the command line agree."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from typer.testing import CliRunner

import didyma
from didyma.cli import app
from didyma.errors import DataError

RNG = np.random.default_rng(11)
QID = np.repeat(np.arange(8), 6)
X = RNG.integers(0, 2, size=(48, 2)).astype(float)  # many rows with equal features: ties
Y = ((X[:, 0] + RNG.random(48)) > 0.9).astype(float)
Y[::6], Y[1::6] = 1.0, 0.0
DOCID = np.array([f"d{i:02}" for i in RNG.permutation(48)])


@pytest.mark.parametrize("measure", ["AP", "nDCG@3", "RR"])
def test_score_is_evaluate_and_the_command_line(tmp_path: Path, measure: str) -> None:
    ranker = didyma.SVMRanker(C=1.0, measure=measure).fit(X, Y, qid=QID)
    scores = ranker.predict(X)
    assert len(np.unique(scores[:6])) < 6
    told = ranker.score(X, Y, qid=QID, docid=DOCID)
    assert told == didyma.evaluate(scores, Y, qid=QID, measures=measure, docid=DOCID).mean(measure)
    data = didyma.Lists(X, Y, QID, docid=DOCID)
    assert ranker.score(data) == told
    didyma.write(data, tmp_path / "test.txt")
    ranker.save(tmp_path / "model.safetensors")
    found = CliRunner().invoke(
        app,
        [
            *("eval", str(tmp_path / "model.safetensors"), str(tmp_path / "test.txt")),
            *("--measures", measure, "--json"),
        ],
    )
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["mean"][measure] == pytest.approx(told, abs=1e-12)


def test_a_scorer_in_a_grid_search() -> None:
    folds = list(GroupKFold(2).split(X, Y, QID))
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            didyma.SVMRanker(), {"C": [0.1, 10.0]}, scoring=didyma.scorer("nDCG@3"), cv=folds
        ).fit(X, Y, qid=QID, docid=DOCID)
    for k, (train, test) in enumerate(folds):
        for c, C in enumerate([0.1, 10.0]):
            ranker = didyma.SVMRanker(C=C).fit(X[train], Y[train], qid=QID[train])
            expected = didyma.evaluate(
                *(ranker.predict(X[test]), Y[test]),
                qid=QID[test],
                docid=DOCID[test],
                measures="nDCG@3",
            ).mean("nDCG@3")
            assert search.cv_results_[f"split{k}_test_score"][c] == expected


def test_evaluate_takes_queries_as_everything_else_does() -> None:
    by_qid = didyma.evaluate(X[:, 0], Y, qid=QID, measures="AP, nDCG@10")
    by_group = didyma.evaluate(X[:, 0], Y, group=np.full(8, 6), measures=["AP", "nDCG@10"])
    for measure in ("AP", "nDCG@10"):
        np.testing.assert_array_equal(by_qid[measure], by_group[measure])
    for wrong in (
        lambda: didyma.evaluate([1.0, 2.0], [1, 0], ["a", "a"], "AP"),  # type: ignore[arg-type]
        lambda: didyma.evaluate([1.0, 2.0], [1, 0], qid=["a", "a"], group=[2]),
    ):
        with pytest.raises(DataError, match="qid"):
            wrong()


# What pages and examples may import from; everything else is an inner path.
PUBLIC = (
    r"didyma(\.(structures|nn|metrics|data(\.texts)?|ranking|text(\.retrieval)?|nbest|structured|report|jax"
    r"|integrations|judgements|learning|solvers|testing|applications(\.\w+)?))?"
)


@pytest.mark.parametrize(
    "page",
    [*Path("docs").rglob("*.md"), Path("README.md"), *Path("examples").glob("*.py")],
    ids=str,
)
def test_pages_teach_no_inner_path(page: Path) -> None:
    imports = r"^\s*(?:>>> )?(?:from|import) (didyma[\w.]*)"
    for module in re.findall(imports, page.read_text(), re.M):
        assert re.fullmatch(PUBLIC, module), f"{page}: {module}"


LOWER = {"didyma.report.decimal": "didyma.values."}  # where packages below reports need it


@pytest.mark.parametrize(
    "package", ["data", "learning", "nbest", "ranking", "report", "structured", "text"]
)
def test_packages_import_their_names_when_they_are_used(package: str) -> None:
    found = importlib.import_module(f"didyma.{package}")
    for name in found.__all__:
        value = getattr(found, name)
        home = value.__name__ if isinstance(value, ModuleType) else value.__module__
        expected = LOWER.get(f"didyma.{package}.{name}", f"didyma.{package}.")
        assert f"{home}.".startswith(expected)
    with pytest.raises(AttributeError, match=f"'didyma.{package}' has no attribute 'nothing'"):
        found.nothing  # noqa: B018
    code = f"import sys, didyma.{package}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"didyma.{package}" in loaded.stdout.split()
    assert not {"numpy", "sklearn"} & set(loaded.stdout.split())
