"""The reproduction of Yu & Joachims (2009): precision@k in small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reproductions import latent_svm
from reproductions import latent_svm_precision as precision


def write_parts(folder: Path, signal: float, n_queries: int = 8, n_rows: int = 12) -> None:
    """Five files like those of MQ2008; the first feature tells relevant rows by ``signal``."""
    rng = np.random.default_rng(5)
    folder.mkdir(parents=True)
    for part in range(1, 6):
        lines = []
        for query in range(n_queries):
            grades = rng.permutation([2, 1, 1, *[0] * (n_rows - 3)])
            X = rng.normal(size=(n_rows, 4))
            X[:, 0] += signal * (grades > 0)
            for grade, row in zip(grades, X):
                values = " ".join(f"{j}:{value:.5f}" for j, value in enumerate(row, 1))
                lines.append(f"{grade} qid:{part}{query:02} {values}")
        (folder / f"S{part}.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_parts(folder / "mq2008", signal=2.0)
    return folder


def first_digits(part: precision.Part) -> str:
    return "".join(sorted({str(name)[0] for name in part.data.groups.names}))


def test_folds_are_those_of_the_collection(data: Path) -> None:
    folds = precision.read_folds(data / "mq2008")
    roles = [tuple(map(first_digits, (f.train, f.validation, f.test))) for f in folds]
    assert roles == [
        ("123", "4", "5"),
        ("234", "5", "1"),
        ("345", "1", "2"),
        ("145", "2", "3"),
        ("125", "3", "4"),
    ]


def test_precision_is_the_share_of_relevant_rows_at_the_top(data: Path) -> None:
    part = precision.Part.read(data / "mq2008" / "S1.txt", (1, 5, 20))
    scores = np.random.default_rng(0).normal(size=len(part.data))
    found = part.precision(scores)
    ends = np.cumsum(part.sizes)[:-1]
    for i, (s, y) in enumerate(zip(np.split(scores, ends), np.split(part.data.y, ends))):
        ranked = y[np.argsort(-s)] >= 1
        for k in (1, 5, 20):
            assert found[k][i] == pytest.approx(ranked[:k].sum() / k)


def test_random_completions_without_a_signal_end_at_zero(tmp_path: Path) -> None:
    write_parts(tmp_path / "mq2008", signal=0.0, n_queries=40)
    found = precision.run(tmp_path / "mq2008", ks=(1,), Cs=(100.0,), n_folds=1, n_random=2)
    norms = [fit["norm"] for fit in found["fits"] if fit["start"] == "random"]
    assert norms == [0.0, 0.0]
    assert "| 100 | 2 of 2 |" in precision.table(found)


def test_precision_in_small(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = {"ks": (1, 3), "Cs": (1.0, 100.0), "n_folds": 2, "n_random": 1}
    part = latent_svm.Part("latent_svm_precision", Path("mq2008"), small)
    monkeypatch.setitem(latent_svm.PARTS, "precision", part)
    command = ["--part", "precision", "--quick", "--data", str(data), "--json"]
    reports = []
    for name in ("first.json", "second.json"):
        assert latent_svm.main([*command, str(tmp_path / name)]) == 0
        reports.append(json.loads((tmp_path / name).read_text())["precision"])
        reports[-1].pop("seconds")
    assert reports[0] == reports[1]

    found = reports[0]
    assert list(found["judged"]) == list(precision.NAMES)
    for judged in found["judged"].values():
        assert all(0.5 < judged[k]["mean"] <= found["perfect"][k] for k in ("1", "3"))
    assert len(found["fits"]) == 2 * 2 * 2 * 2
    out, err = capsys.readouterr()
    assert "| perfect ranking " in out
    assert "fold 2, P@3" in err
