"""The reproduction of Yue et al. (2007): its protocol, its features, and a run of it in small."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data import trec
from didyma.metrics import evaluate_run
from didyma.ranking.classification import ClassificationRanker
from reproductions import study, svmmap, svmmap_models, svmmap_mq2008, svmmap_trials

OLD, NEW = range(301, 351), range(601, 651)


def write_track(folder: Path, n_documents: int = 12) -> None:
    """Three runs over 100 topics; the first is the best, the last is noise."""
    random = np.random.default_rng(3)
    (folder / "runs").mkdir(parents=True)
    judged, runs = [], {"good": [], "fair": [], "noise": []}
    for topic in (*OLD, *NEW):
        relevance = np.zeros(n_documents, dtype=int)
        relevance[random.permutation(n_documents)[:3]] = [1, 1, 2]
        judged += [f"{topic} 0 d{k} {grade}" for k, grade in enumerate(relevance)]
        judged.append(f"{topic} 0 never-retrieved 1")
        for (tag, lines), signal in zip(runs.items(), (2.0, 1.0, 0.0)):
            score = signal * (relevance > 0) + random.normal(size=n_documents)
            for rank, k in enumerate(np.argsort(-score)[:9]):
                lines.append(f"{topic} Q0 d{k} {rank + 1} {score[k]:.6f} {tag}")
    (folder / "qrels.txt").write_text("\n".join(judged) + "\n")
    for tag, lines in runs.items():
        with gzip.open(folder / "runs" / f"input.{tag}.gz", "wt") as file:
            file.write("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_track(folder / "robust03")
    return folder


def test_documents_that_were_not_retrieved_come_last_among_all_candidates() -> None:
    scores, sizes = np.array([[5.0, -2.0], [3.0, np.nan], [np.nan, np.nan]]), np.array([2, 1])
    np.testing.assert_array_equal(
        svmmap_models.completed(scores, sizes), [[5.0, -2.0], [3.0, -2.0], [0.0, 0.0]]
    )


def test_every_topic_plays_each_role_equally_often() -> None:
    roles = np.zeros((3, 50), dtype=int)
    for split in svmmap_trials.splits(50, seed=4):
        assert [len(topics) for topics in split] == [10, 5, 35]
        assert sorted(np.concatenate(split)) == list(range(50))
        for role, topics in zip(roles, split):
            role[topics] += 1
    assert (roles == [[10], [5], [35]]).all()


def test_thresholds_are_even_in_the_logarithm_of_rank() -> None:
    rank = np.arange(1, 998)
    scores = np.column_stack([-(rank**3.0), np.where(rank <= 10, 1.0 / rank, np.nan)])
    features = svmmap_models.indicators(svmmap_models.sensitive_region(scores, 1)).toarray()
    levels = np.arange(1, 51) / 51
    above = rank[:, None] < 997 ** (1 - levels)
    np.testing.assert_array_equal(features[:, :50], above)
    assert features[9:, 50:].sum() == 0, "a document that was not retrieved is above no threshold"
    assert features[0].all()


def test_average_precision_is_that_of_a_submission(data: Path) -> None:
    runs = [trec.read_run(path) for path in sorted((data / "robust03" / "runs").glob("*.gz"))]
    qrels = trec.read_qrels(data / "robust03" / "qrels.txt")
    collection = svmmap_trials.Collection.join("topics", runs, qrels)
    topics = np.array([7, 2, 99])
    rows = collection.rows(topics)
    scores = np.random.default_rng(0).normal(size=len(rows)).round(1)
    part = collection.data.select(rows)
    found = collection.average_precision(topics, scores)
    expected = evaluate_run(trec.Run(part.qid, part.docid, scores, "x"), qrels, "AP")["AP"]
    np.testing.assert_allclose(found, expected[topics], rtol=1e-12)
    assert collection.best == ["good", "fair", "noise"]
    assert (collection.n_relevant == 4).all()


@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_intercept_is_hardly_penalised(loss: str, sparse: bool) -> None:
    X = (np.arange(400) % 4 == 0).astype(float)[:, None]
    y = np.zeros(400)
    y[:40:4] = 1  # 10 of the 100 rows that have the feature, and none of the others
    rows = sp.csr_array(X) if sparse else X
    weights = svmmap_models.classification(loss=loss)(rows, y, np.array([400]), (1.0, 10.0))
    assert weights.shape == (2, 1)
    assert (weights > 0).all()
    penalised = ClassificationRanker(1.0, loss=loss).fit(X, y)
    assert penalised.coef_[0] < 0, "the feature has to stand in for the intercept"


def test_a_trial_in_small(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text("<!-- robust: begin -->\n<!-- robust: end -->\n")
    monkeypatch.setattr(study, "RESULTS", page)
    monkeypatch.setattr(svmmap_trials, "CS", (0.1, 10.0))
    command = ["--part", "robust", "--trials", "1", "--data", str(data), "--write", "--json"]
    reports = []
    for name in ("first.json", "second.json"):
        assert svmmap.main([*command, str(tmp_path / name)]) == 0
        reports.append(json.loads((tmp_path / name).read_text()))
        for setting in reports[-1]["robust"]["settings"]:
            for collection in setting["collections"].values():
                assert min(collection["fits"].pop("seconds").values()) > 0
    assert reports[0] == reports[1]

    everything, without_best = reports[0]["robust"]["settings"]
    for collection in ("old topics", "new topics"):
        found = everything["collections"][collection]
        names = [model.name for model in svmmap_models.ROBUST_MODELS] + ["good", "fair", "noise"]
        assert list(found["judged"]) == names
        assert {len(values) for values in found["AP"].values()} == {35}
        fewer = without_best["collections"][collection]
        assert fewer["judged"]["SVMmap"]["MAP"] < found["judged"]["SVMmap"]["MAP"]
        assert found["judged"]["SVMmap"]["MAP"] > found["judged"]["noise"]["MAP"]

    out, err = capsys.readouterr()
    assert "best function: good" in out
    assert "trial 1" in err
    assert out.splitlines()[-2] in page.read_text()


def test_mq2008_in_short(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(svmmap_mq2008, "CS_OF_FEATURES", (0.1, 10.0))
    report = tmp_path / "report.json"
    command = ["--part", "mq2008", "--models", "SVMacc2", "--json", str(report)]
    assert svmmap.main([*command, "--data", str(shared_data)]) == 0
    found = json.loads(report.read_text())["mq2008"]
    assert (found["queries"], found["answerable"]) == (784, 564)
    judged = found["judged"]
    assert list(judged)[:2] == ["SVMmap", "SVMacc2"]
    assert len(judged) == 5
    assert 0.44 < judged["SVMmap"]["MAP"] < 0.52
    assert judged["SVMmap"]["MAP of answerable"] > judged["SVMmap"]["MAP"]
