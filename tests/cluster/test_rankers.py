"""Rankers on a cluster of processes learn what they learn on one machine."""

from __future__ import annotations

import os
import re
import signal
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster
from typer.testing import CliRunner

import didyma
from didyma import (
    AdditiveSVMRanker,
    DataError,
    LatentPerceptronRanker,
    LatentSVMRanker,
    Lists,
    Shards,
    SVMRanker,
)
from didyma.cli import app
from didyma.data import Groups
from didyma.estimators.classification import ClassificationRanker
from didyma.tasks.losses import AveragePrecision
from didyma.tasks.ranking import RankingProblem
from tests.learning.problems import random_ranking

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
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
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
    from didyma.distributed import workers

    return len(workers._KEPT)


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
    "additive": lambda: AdditiveSVMRanker(bins=6),
    "monotone": lambda: AdditiveSVMRanker(bins=6, increasing=[0], decreasing=[1]),
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


def test_a_ramp_on_a_cluster(client, lists):
    many = fit(SVMRanker("ap", 30.0, bound="ramp"), chunked(lists))
    one = SVMRanker("ap", 30.0, bound="ramp").fit(lists.X, lists.y, qid=lists.qid)
    assert np.all(np.diff(many.objective_trace_) <= 1e-9)
    assert many.result_.value == pytest.approx(one.result_.value, rel=0.05)


def test_latent_rankers_on_a_cluster(client, lists):
    many = fit(LatentSVMRanker(C=10.0, ties=0), chunked(lists))
    assert np.all(np.diff(many.objective_trace_) <= 1e-9)
    one = LatentSVMRanker(C=10.0, ties=0).fit(lists.X, lists.y, qid=lists.qid)
    assert many.result_.value == pytest.approx(one.result_.value, rel=0.05)
    perceptron = fit(LatentPerceptronRanker(epochs=5), chunked(lists))
    assert len(perceptron.history_) == 5
    assert perceptron.score(lists.X, lists.y, qid=lists.qid) > 0.6


def test_others_say_that_they_cannot(client, lists):
    with pytest.raises(DataError, match="ClassificationRanker does not learn on a cluster"):
        fit(ClassificationRanker(), chunked(lists))


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


@pytest.mark.parametrize("solver", ["bcfw", "one-slack"])
def test_a_worker_that_dies_is_survived(client, lists, solver):
    killed = []

    def kill(progress):
        if not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    many = fit(SVMRanker(C=3.0, solver=solver, tol=1e-4, callback=kill), chunked(lists))
    one = SVMRanker(C=3.0, tol=1e-4).fit(lists.X, lists.y, qid=lists.qid)
    assert killed
    assert many.result_.converged
    assert many.result_.value == pytest.approx(objective(lists, 3.0, many.coef_), rel=1e-9)
    assert many.result_.value == pytest.approx(one.result_.value, rel=2e-4)
    client.wait_for_workers(2)


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
    with pytest.raises(DataError, match="X contains NaN"):
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


def test_the_page_runs(client, tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "SCALING.md").read_text()
    names = {"address": client.scheduler.address, "folder": tmp_path}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    assert names["ranker"].result_.converged
    expected = names["lists"].X @ names["ranker"].coef_
    np.testing.assert_allclose(names["scores"].compute(), expected, atol=0.1)
    names["client"].close()


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
