"""Learners on a cluster of processes learn what they learn on one machine."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("distributed")

import cloudpickle
import dask.array as da
import dask.bag as bag
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import didyma
from didyma import (
    AdditiveSVMRanker,
    DataError,
    LatentPerceptronRanker,
    LatentSVMRanker,
    Lists,
    NBestReranker,
    Reranker,
    Shards,
    StructuredPerceptron,
    StructuredSVM,
    SVMRanker,
    TextReranker,
)
from didyma.cli import app
from didyma.data.groups import Groups
from didyma.data.texts import json_lines as json_texts
from didyma.execution import n_cores
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from didyma.structured.task import Task
from didyma.text import SmallFeatures, TextFeatures
from tests.learning.problems import random_ranking
from tests.text.texts import made

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # for workers not to import it

pytestmark = [
    # Of distributed's own: files and sockets that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

N_QUERIES, N_ROWS, N_FEATURES = 20, 10, 4
TOL = 1e-3


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(  # without an address of the dashboard, its server would ask for port 8787
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _all_is_released(client):
    """Whatever a test does, nothing stays behind on the cluster."""
    yield
    for _ in range(100):  # releases travel
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.05)
    assert left == []
    assert set(client.run(_n_kept).values()) == {0}


def _n_kept():
    known = sys.modules.get("didyma.cluster.workers")  # which a new worker has not imported
    return 0 if known is None else len(known._CACHES)


@pytest.fixture(scope="module")
def lists():
    X, y, groups = random_ranking(5, N_QUERIES, N_ROWS, N_FEATURES)
    return Lists(X, y, groups.codes.copy())


def chunked(lists, rows=37, columns=3):
    """Chunks that split queries, and columns."""
    return (
        da.from_array(lists.X, chunks=(rows, columns)),
        da.from_array(lists.y, chunks=rows),
        da.from_array(lists.qid, chunks=rows + 1),
    )


def fit(ranker, collections):
    X, y, qid = collections
    return ranker.fit(X, y, qid=qid)


RANKERS = {
    "bcfw": lambda: SVMRanker(C=3.0),
    "one-slack": lambda: SVMRanker(C=3.0, solver="one-slack"),
    "additive": lambda: AdditiveSVMRanker(C=4.0, bins=6, line="quantile"),
    "monotone": lambda: AdditiveSVMRanker(
        C=4.0, bins=6, line="normal", increasing=[0], decreasing=[1]
    ),
}


@pytest.mark.parametrize("name", RANKERS)
def test_the_optimum_is_that_of_one_machine(client, lists, name):
    one = RANKERS[name]().fit(lists.X, lists.y, qid=lists.qid)
    many = fit(RANKERS[name](), chunked(lists))
    assert many.result_.converged
    assert many.result_.value == pytest.approx(one.result_.value, rel=2 * TOL)
    assert many.result_.dual <= one.result_.value
    assert many.n_queries_ == one.n_queries_
    scores = many.predict(lists.X)
    assert np.corrcoef(scores, one.predict(lists.X))[0, 1] > 0.999
    assert many.score(lists.X, lists.y, qid=lists.qid) > 0.6
    lazy = many.predict(chunked(lists)[0])
    np.testing.assert_allclose(lazy.compute(), scores, atol=1e-12)


@pytest.mark.parametrize("name", ["bcfw", "additive", "monotone"])
def test_a_ramp_on_a_cluster(client, lists, name):
    ranker = RANKERS[name]().set_params(C=30.0, bound="ramp", tol=0.01)
    many = fit(clone(ranker), chunked(lists))
    one = ranker.fit(lists.X, lists.y, qid=lists.qid)
    assert np.all(np.diff(many.objective_trace_) <= 1e-9)
    assert many.result_.value == pytest.approx(one.result_.value, rel=0.05)
    if name == "monotone":
        w = many.coef_.reshape(-1, N_FEATURES)[:-1]
        assert np.all(w[:, 0] >= 0.0)
        assert np.all(w[:, 1] <= 0.0)


def test_latent_rankers_on_a_cluster(client, lists):
    many = fit(LatentSVMRanker(C=10.0, ties=0, tol=0.01), chunked(lists))
    assert np.all(np.diff(many.objective_trace_) <= 1e-9)
    one = LatentSVMRanker(C=10.0, ties=0, tol=0.01).fit(lists.X, lists.y, qid=lists.qid)
    assert many.result_.value == pytest.approx(one.result_.value, rel=0.05)
    perceptron = fit(LatentPerceptronRanker(epochs=5), chunked(lists))
    assert len(perceptron.history_) == 5
    assert perceptron.score(lists.X, lists.y, qid=lists.qid) > 0.6


def test_others_say_that_they_cannot(client, lists):
    with pytest.raises(DataError, match="ClassificationRanker does not learn on a cluster"):
        fit(ClassificationRanker(), chunked(lists))


def test_texts_are_categories_of_scores_but_not_of_training(client, tmp_path):
    texts = np.array(["acme", "zoo"] * 12)
    frame = pd.DataFrame({"x": np.arange(24.0) % 5, "brand": texts})
    y, qid = (texts == "zoo").astype(float), np.repeat(np.arange(4), 6)
    ranker = AdditiveSVMRanker(C=4.0, categorical=["brand"]).fit(frame, y, qid=qid)
    table = dd.from_pandas(frame, npartitions=2)
    np.testing.assert_array_equal(ranker.predict(table).compute(), ranker.predict(frame))
    judged = dd.from_pandas(frame.assign(y=y, qid=qid), npartitions=2)
    with pytest.raises(DataError, match=r"partition \d, column 'brand': expected numbers"):
        AdditiveSVMRanker(categorical=["brand"]).fit(
            judged[["x", "brand"]], judged["y"], qid=judged["qid"]
        )
    frame.assign(label=y, qid=qid).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match=r"a\.csv, line 2, brand: .*not on a cluster"):
        AdditiveSVMRanker(categorical=["brand"]).fit(Shards(tmp_path))
    np.testing.assert_array_equal(ranker.predict(Shards(tmp_path)), ranker.predict(frame))


def test_data_frames_whose_queries_are_anywhere(client, lists):
    """Columns keep their names; rows of a query stand in many partitions, in no order."""
    order = np.random.default_rng(0).permutation(len(lists))
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(lists.X[order], columns=names)
    frame["y"], frame["qid"] = lists.y[order], [f"q{q}" for q in lists.qid[order]]
    table = dd.from_pandas(frame, npartitions=5)
    many = SVMRanker(C=3.0).fit(table[names], table["y"], qid=table["qid"])
    one = SVMRanker(C=3.0).fit(lists.X, lists.y, qid=lists.qid)
    assert many.result_.value == pytest.approx(one.result_.value, rel=2 * TOL)
    assert many.feature_names_in_.tolist() == names
    scores = many.predict(table[names]).compute()
    np.testing.assert_allclose(scores, lists.X[order] @ many.coef_, atol=1e-12)


def objective(lists, C, w):
    problem = RankingProblem(lists.X, lists.y, Groups.from_qid(lists.qid), AveragePrecision())
    return 0.5 * w @ w + C * problem.weights @ problem.risks(w)


@pytest.mark.parametrize("end", ["stopped", "interrupted"])
def test_a_run_that_is_ended_releases_the_cluster(client, lists, end):
    def stop(progress):
        if progress.n_iter == 3 and end == "interrupted":
            raise KeyboardInterrupt
        return progress.n_iter == 3

    many = fit(SVMRanker(C=3.0, tol=1e-9, callback=stop), chunked(lists))
    assert many.result_.status == end
    assert many.result_.value == pytest.approx(objective(lists, 3.0, many.coef_), rel=1e-9)


def test_an_error_on_a_worker_releases_the_cluster(client, lists):
    X, y, qid = chunked(lists)
    with pytest.raises(DataError, match="found NaN in row"):
        SVMRanker().fit(X * np.nan, y, qid=qid)


def test_a_folder_of_shards(client, lists, tmp_path):
    """Files of different widths, as LETOR's are, with a query that stands in two of them."""
    cuts = [0, 55, 130, len(lists)]
    for k, (first, last) in enumerate(pairwise(cuts)):
        X = lists.X[first:last].copy()
        X[:, -1] *= k > 0  # so that the first file seems to have a column less
        part = Lists(X, lists.y[first:last], lists.qid[first:last], zero_based=False)
        didyma.write(part, tmp_path / f"{k}.txt")
    whole = lists.X.copy()
    whole[:55, -1] = 0.0
    path = SVMRanker().path(Shards(tmp_path), None, [1.0, 3.0])
    alone = SVMRanker().path(whole, lists.y, [1.0, 3.0], qid=lists.qid)
    for many, one in zip(path, alone):
        assert many.result_.value == pytest.approx(one.result_.value, rel=2 * TOL)
    scores = path[-1].predict(Shards(tmp_path))
    np.testing.assert_allclose(scores, whole @ path[-1].coef_, atol=1e-9)


def test_a_folder_of_lists(client, lists, tmp_path):
    """Each worker reads a range of whole queries."""
    didyma.write(lists, tmp_path / "train.lists")
    many = SVMRanker(C=3.0).fit(Shards(tmp_path / "train.lists"))
    one = SVMRanker(C=3.0).fit(lists)
    assert many.n_queries_ == one.n_queries_
    assert many.result_.value == pytest.approx(one.result_.value, rel=2 * TOL)


def test_the_command_line(client, lists, tmp_path):
    """The model is that of the estimator; options that mean nothing there are refused."""
    (tmp_path / "shards").mkdir()
    for k in range(2):
        didyma.write(lists.select(lists.qid % 2 == k), tmp_path / "shards" / f"{k}.csv")
    didyma.write(lists, tmp_path / "dev.csv")
    address = client.scheduler.address
    command = ["fit", tmp_path / "shards", "--dask", address, "--dev", tmp_path / "dev.csv"]
    command = [str(word) for word in [*command, "-o", tmp_path / "m.safetensors"]]
    done = CliRunner().invoke(app, [*command, "--C", "0.3,3"])
    assert done.exit_code == 0, done.output
    ranker = didyma.load(tmp_path / "m.safetensors")
    one = SVMRanker(C=ranker.C).fit(lists)
    assert np.corrcoef(ranker.coef_, one.coef_)[0, 1] > 0.99
    refused = CliRunner().invoke(app, [*command, "--scale", "standard"])
    assert refused.exit_code == 2
    assert "is not for --dask" in refused.output


def test_a_shard_that_cannot_be_read_names_itself(client, lists, tmp_path):
    didyma.write(lists, tmp_path / "good.txt")
    (tmp_path / "worse.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:abc\n")
    with pytest.raises(DataError, match=r"worse\.txt, line 2.*abc"):
        SVMRanker().fit(Shards(tmp_path))


def test_refusals(client, lists):
    X, y, qid = chunked(lists)
    with pytest.raises(DataError, match="qid"):
        SVMRanker().fit(X, y)
    with pytest.raises(DataError, match="sample_weight"):
        SVMRanker().fit(X, y, qid=qid, sample_weight=y)
    with pytest.raises(DataError, match="no such file or folder"):
        SVMRanker().fit(Shards("nowhere"))
    with pytest.raises(DataError, match="interactions"):
        AdditiveSVMRanker(interactions=2).fit(X, y, qid=qid)


def test_what_a_task_learns_has_the_bits_of_here_on_one_thread(client, lists):
    """Dask tells its workers their share of the cores."""
    assert set(client.run(n_cores).values()) == {1}
    alone = SVMRanker(tol=0.1).fit(lists).coef_
    tasks = [
        client.submit(lambda own: SVMRanker(tol=0.1).fit(own).coef_, lists, pure=False)
        for _ in range(2)
    ]
    for found in client.gather(tasks):
        assert np.array_equal(found, alone)


def test_scores_are_measured_where_the_rows_are(client, lists, tmp_path):
    ranker = SVMRanker(C=3.0).fit(lists)
    X, y, qid = chunked(lists)
    expected = ranker.score(lists)
    assert ranker.score(X, y, qid=qid) == pytest.approx(expected, abs=1e-12)
    didyma.write(lists, tmp_path / "a.lists")
    assert ranker.score(Shards(tmp_path / "a.lists")) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(DataError, match="docid"):
        ranker.score(X, y, qid=qid, docid=y)


def reranker():
    return Reranker(TextFeatures([SmallFeatures()]), SVMRanker(C=10.0))


def test_rerankers_learn_from_texts_on_a_cluster(client, tmp_path, monkeypatch):
    """A query that stands in two files is one, and without ids it is known by its text."""
    texts = made(24)
    row = np.arange(len(texts))
    for k, own in enumerate((row < 69, row >= 69)):
        json_texts.write(replace(texts.select(own), qid=None), tmp_path / f"{k}.jsonl")
    many, one = reranker().fit(Shards(tmp_path)), reranker().fit(texts)
    assert many.ranker.result_.value == pytest.approx(one.ranker.result_.value, rel=2 * TOL)
    np.testing.assert_allclose(many.predict(texts), one.predict(texts), atol=0.2)
    found = many.evaluate(Shards(tmp_path), "AP")
    assert len(found.queries) == 24
    assert found.mean("AP") == pytest.approx(many.evaluate(texts, "AP").mean("AP"), abs=1e-12)
    scores = many.predict(Shards(tmp_path))
    np.testing.assert_allclose(scores, many.predict(texts), atol=1e-9)
    frame = pd.DataFrame({"passage": texts.texts, "label": texts.y})
    frame["query"] = [texts.queries[q] for q in texts.groups.codes]
    shuffled = frame.sample(frac=1.0, random_state=0)
    monkeypatch.setattr("didyma.text.cluster.SAMPLE", 100)
    again = reranker().fit(dd.from_pandas(shuffled, npartitions=3, sort=False))
    assert again.evaluate(texts, "AP").mean("AP") > 0.8
    scaled = make_pipeline(StandardScaler(), SVMRanker())
    for searching in (TextReranker(), NBestReranker(), Reranker(SmallFeatures(), scaled)):
        with pytest.raises(DataError, match="does not learn on a cluster"):
            searching.fit(Shards(tmp_path))


class Classes(Task):
    """Three classes, each with weights of its own."""

    n_features = 6

    def features(self, x, output):
        return np.kron(np.eye(3)[output], x)

    def argmax(self, w, x):
        return int(np.argmax(w.reshape(3, 2) @ x))

    def loss(self, y, output):
        return float(y != output)


def test_structured_perceptrons_on_a_cluster(client):
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 60).tolist()
    corners = np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]])
    examples = list(corners[labels] + 0.1 * random.normal(size=(60, 2)))
    X, y = (bag.from_sequence(own, npartitions=4) for own in (examples, labels))
    model = StructuredPerceptron(Classes(), epochs=5).fit(X, y)
    assert len(model.history_) == 5
    assert model.score(X, y) == model.score(examples, labels) == 0.0
    assert model.predict(X).compute() == labels
    with pytest.raises(DataError, match="sample_weight"):
        StructuredPerceptron(Classes()).fit(X, y, sample_weight=np.ones(60))
    with pytest.raises(DataError, match="StructuredSVM does not learn on a cluster"):
        StructuredSVM(Classes()).fit(X, y)
    fewer = bag.from_sequence(labels[:40], npartitions=4)
    with pytest.raises(DataError, match=r"partition \d: 10 labels for 15 examples"):
        StructuredPerceptron(Classes()).fit(X, fewer)


def test_a_worker_that_dies_is_survived(client, lists):
    """Last, for no other test to wait for a new one. `test_solvers` loses shards of all solvers."""
    killed = []

    def kill(progress):
        if not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    many = fit(SVMRanker(C=3.0, tol=1e-4, callback=kill), chunked(lists))
    one = SVMRanker(C=3.0, tol=1e-4).fit(lists.X, lists.y, qid=lists.qid)
    assert killed
    assert many.result_.converged
    assert many.result_.value == pytest.approx(objective(lists, 3.0, many.coef_), rel=1e-9)
    assert many.result_.value == pytest.approx(one.result_.value, rel=2e-4)
