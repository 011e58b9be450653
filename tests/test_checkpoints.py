"""Training that dies and goes on ends with the bits of training that was left alone."""

from __future__ import annotations

import functools
import json
import operator
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import didyma
from didyma.applications.coreference.mentions import FEATURES
from didyma.applications.coreference.task import MentionPairs
from didyma.checkpoints import Checkpoint, check_same, checkpoint, fingerprint, remember
from didyma.data.lists import Lists
from didyma.errors import CheckpointWarning, ModelFileError
from didyma.nbest.formats import of_outputs
from didyma.stateful import Stateful


class Died(BaseException):
    """What nothing catches, as nothing catches the death of a process."""


def judged(seed: int = 0, n_queries: int = 10) -> Lists:
    random = np.random.default_rng(seed)
    X = random.normal(size=(8 * n_queries, 3))
    y = np.zeros(len(X))
    noisy = X[:, 0] - 0.5 * X[:, 1] + random.normal(size=len(X))
    for rows in np.arange(len(X)).reshape(n_queries, 8):
        y[rows[np.argsort(-noisy[rows])[:3]]] = [2, 1, 1]
    return Lists(X, y, np.repeat(np.arange(n_queries), 8))


def lives(train: Callable[[], Any], folder: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What training returns if it dies at every ``at``-th checkpoint, and how often it died."""
    save, saved = Checkpoint.save, 0

    def save_and_die(self: Checkpoint) -> None:
        nonlocal saved
        save(self)
        saved += 1
        if saved % at == 0:
            raise Died

    monkeypatch.setattr(Checkpoint, "save", save_and_die)
    for deaths in range(1000):
        try:
            with checkpoint(folder, every=0.0):
                return train(), deaths
        except Died:
            assert (folder / "now.npz").exists()
    raise AssertionError("it never ends")


def path(**parameters: Any) -> Callable[[], Any]:
    def train() -> Any:
        found = didyma.SVMRanker(**{"tol": 1e-4, **parameters}).path(
            judged(), None, [1.0, 30.0], eval_set=judged(1)
        )
        return [(own.coef_, own.result_.value, own.n_iter_, own.history_) for own in found]

    return train


def fitted(name: str, **parameters: Any) -> Callable[[], Any]:
    def train() -> Any:
        ranker = getattr(didyma, name)(**parameters).fit(judged(), eval_set=judged(1))
        return [(ranker.coef_, ranker.result_.value, ranker.n_iter_, ranker.history_)]

    return train


def motif() -> Any:
    random = np.random.default_rng(0)
    strings = ["".join(random.choice(list("ACGT"), 12)) for _ in range(12)]
    strings = [s[:3] + "GATTA" + s[8:] if k % 2 else s for k, s in enumerate(strings)]
    labels = [1 if k % 2 else -1 for k in range(len(strings))]
    found = didyma.MotifFinder(5, 1, n_restarts=2, C=10.0).fit(strings, labels)
    return [(found.coef_, found.result_.value, found.n_rounds_, [])]


def resolved(model: Any) -> Callable[[], Any]:
    def train() -> Any:
        random = np.random.default_rng(0)
        examples, labels = [], []
        for _ in range(4):
            own = random.integers(3, size=5)
            pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
            rows = random.normal(size=(len(pairs), len(FEATURES)))
            rows[:, 0] += [2.0 * (own[i] == own[j]) for i, j in pairs]
            examples.append(MentionPairs(5, rows))
            labels.append(own)
        found = didyma.CoreferenceResolver(10.0, model=model).fit_pairs(examples, labels)
        history = [{"value": value} for value in found.objective_trace_]
        return [(found.coef_, found.result_.value, found.result_.n_iter, history)]

    return train


def reranked(model: str, **parameters: Any) -> Callable[[], Any]:
    def train() -> Any:
        random = np.random.default_rng(0)
        inputs = ["".join(random.choice(list("ab "), 6)) for _ in range(8)]
        outputs = [["".join(random.choice(list("ab"), 3)) for _ in range(4)] for _ in inputs]
        references = [own[k % 4] for k, own in enumerate(outputs)]
        scores = [random.normal(size=4) for _ in inputs]
        lists = of_outputs(inputs, outputs, scores=scores, references=references)
        found = didyma.NBestReranker(model, parameters).fit(lists, lists)
        return [(found.predict(lists), found.weight_, len(found.tuning_), found.tuning_)]

    return train


def searched() -> Any:
    random = np.random.default_rng(0)
    words = ["ring", "rain", "late", "clock", "tea", "sun", "moon"]
    queries = [f"who {random.choice(words)} {random.choice(words)} ?" for _ in range(12)]
    passages = [[f"{random.choice(words)} {random.choice(words)} ." for _ in range(4)]] * 12
    labels = [random.permutation([1, 0, 0, 1]) for _ in queries]
    found = didyma.TextReranker(quick=True).fit(queries, passages, labels)
    return [(found.out_of_fold_, str(found.gate_), len(found.trials_), found.trials_)]


PROGRAMS: dict[str, Callable[[], Any]] = {
    "path by bcfw": path(),
    "path by one-slack": path(solver="one-slack"),
    "path by bundle": path(solver="bundle", max_iter=60),
    "path by n-slack": path(solver="n-slack", tol=1e-2),
    "path that waits": path(patience=3),
    "path of ramps": path(loss="ndcg@3", bound="ramp"),
    "path of ramps by one-slack": path(loss="ndcg@3", bound="ramp", solver="one-slack"),
    "path to its limit": path(tol=0.0, max_iter=3),
    "path to its limit by one-slack": path(solver="one-slack", tol=0.0, max_iter=3),
    "path to its limit by bundle": path(solver="bundle", tol=0.0, max_iter=3),
    "path to its limit by n-slack": path(solver="n-slack", tol=0.0, max_iter=3),
    "additive": fitted("AdditiveSVMRanker", bins=4, interactions=1),
    "additive ramp": fitted("AdditiveSVMRanker", bins=4, loss="precision@2"),
    "perceptron": fitted("LatentPerceptronRanker", epochs=5),
    "latent": fitted("LatentSVMRanker", C=10.0, n_restarts=2),
    "motif": motif,
    "coreference by forests": resolved("latent"),
    "coreference by all pairs": resolved("correlation"),
    "n-best by svm": reranked("svm"),
    "n-best by boosting": reranked("boosting", n_rounds=6),
    "n-best by low rank": reranked("low-rank", n_components=2, tau=[0.5, 0.9]),
    "texts": searched,
}


def seconds_aside(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: own for key, own in record.items() if key != "seconds"} for record in history]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_resumed_run_has_the_bits_of_one_that_never_died(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = PROGRAMS[name]()
    at = 1 if "limit" in name or name == "texts" else 3
    found, deaths = lives(PROGRAMS[name], tmp_path / "run", at, monkeypatch)
    assert deaths > 0
    assert os.listdir(tmp_path) == []
    for (w, value, n_iter, history), own in zip(alone, found, strict=True):
        assert np.array_equal(w, own[0])
        assert (value, n_iter) == own[1:3]
        assert seconds_aside(history) == seconds_aside(own[3])


def killed_after(folder: Path, work: Callable[[], Any]) -> None:
    def die() -> None:
        work()
        raise Died

    with pytest.raises(Died), checkpoint(folder, every=0.0):
        die()


def die(folder: Path, monkeypatch: pytest.MonkeyPatch, train: Callable[[], Any]) -> None:
    """Train until the third checkpoint is written."""
    save, saved = Checkpoint.save, 0

    def save_and_die(self: Checkpoint) -> None:
        nonlocal saved
        save(self)
        saved += 1
        if saved == 3:
            raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(Died), checkpoint(folder, every=0.0, X=1, y="a"):
            train()


def test_a_checkpoint_of_other_data_or_settings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    die(folder, monkeypatch, path())
    with pytest.raises(ModelFileError, match=r"run: a checkpoint of another run.* in y"):
        checkpoint(folder, X=1, y="b").__enter__()
    with (
        pytest.raises(ModelFileError, match=r"differs in step 1"),
        checkpoint(folder, X=1, y="a"),
    ):
        path(tol=1e-5)()
    with checkpoint(folder, X=1, y="a"):
        path()()
    assert os.listdir(tmp_path) == []


def test_what_differs_is_named() -> None:
    with pytest.raises(ModelFileError, match=r"differs in tol \(0.1, now 0.2\), data;"):
        check_same(
            "run",
            {"tol": "0.1", "data": "a" * 64, "C": "1"},
            {"tol": "0.2", "data": "b" * 64, "C": "1"},
        )


@pytest.mark.parametrize("part", ["now.npz", "000000.npz"])
def test_a_damaged_checkpoint_is_refused(part: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed_after(folder, lambda: remember("one", lambda: np.arange(100.0)))
    whole = (folder / part).read_bytes()
    for damaged in (b"", whole[:-30], whole[:200] + bytes(8) + whole[208:], b"PK" + bytes(90)):
        (folder / part).write_bytes(damaged)
        with pytest.raises(ModelFileError, match=f"{part}: damaged"), checkpoint(folder):
            remember("one", lambda: np.arange(100.0))


def test_parts_of_two_runs_are_told_apart(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        killed_after(folder, lambda: remember("a number", lambda: 1.0))
    (other / "000000.npz").rename(one / "000000.npz")
    with pytest.raises(ModelFileError, match="of another run than the rest"), checkpoint(one):
        remember("a number", lambda: 1.0)


def test_training_goes_on_where_no_checkpoint_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.warns(CheckpointWarning, match="no checkpoint was written: Not a directory"),
        checkpoint(tmp_path / "file" / "run", every=0.0),
    ):
        assert remember("a sum", lambda: 2) == 2


def test_interrupted_training_keeps_its_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def stop(progress: Any) -> None:
        if progress.n_iter == 3:
            raise KeyboardInterrupt

    with checkpoint(folder, every=0.0):
        (found,) = didyma.SVMRanker(tol=1e-6, callback=stop).path(judged(), None, [10.0])
    assert found.result_.status == "interrupted"
    with checkpoint(folder, every=0.0):
        (found,) = didyma.SVMRanker(tol=1e-6).path(judged(), None, [10.0])
    assert np.array_equal(
        found.coef_, didyma.SVMRanker(tol=1e-6).path(judged(), None, [10.0])[0].coef_
    )
    assert not folder.exists()


def test_other_files_of_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with checkpoint(tmp_path, every=0.0):
        remember("a number", lambda: 1.0)
        assert len(os.listdir(tmp_path)) == 3
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_nothing_is_written_before_its_time(tmp_path: Path, monkeypatch: Any) -> None:
    now = 0.0
    monkeypatch.setattr("didyma.checkpoints.time.monotonic", lambda: now)
    folder = tmp_path / "run"
    with checkpoint(folder, every=300.0):
        remember("one", lambda: 1.0)
        assert not folder.exists()
        now = 300.0
        remember("two", lambda: 2.0)
        assert sorted(os.listdir(folder)) == ["000000.npz", "000001.npz", "now.npz"]
        now = 599.0
        remember("three", lambda: 3.0)
        assert len(os.listdir(folder)) == 3


def test_a_step_has_no_steps_of_its_own(tmp_path: Path) -> None:
    killed_after(
        tmp_path / "run", lambda: remember("outer", lambda: remember("inner", lambda: 1.0) + 1.0)
    )
    with checkpoint(tmp_path / "run") as kept:
        assert remember("outer", lambda: -1.0) == 2.0
        assert len(kept._steps) == 1


def test_states_have_generators_and_states_within() -> None:
    class Inner(Stateful):
        _changing = ("value",)
        value = 0

    class Outer(Stateful):
        _changing = ("rng", "inner", "array")

        def __init__(self) -> None:
            self.rng, self.inner, self.array = np.random.default_rng(0), Inner(), np.zeros(2)

    one, other = Outer(), Outer()
    one.rng.random(7)
    one.inner.value, one.array = 5, np.ones(2)
    other.restore(one.state())
    assert other.rng.random() == one.rng.random()
    assert other.inner.value == 5
    assert list(other.array) == [1.0] * 2


def test_fingerprints_know_sparse_matrices_and_mappings() -> None:
    wide, other = sp.csr_array(np.eye(3)), sp.csr_array(2 * np.eye(3))
    assert fingerprint(wide) == fingerprint(wide.copy()) != fingerprint(other)
    assert fingerprint({"a": wide}) != fingerprint({"a": other})
    assert fingerprint(np.zeros(0)) != fingerprint(np.zeros((0, 2)))


Forged = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]

FORGED = 30  # files of each program, of some thousand that there could be

# What may have become of an array of a file whose checksum is right.
FORGERIES: dict[str, Forged] = {
    "narrower": lambda array, _: array.astype(np.float32 if array.dtype.kind == "f" else np.int32),
    "of the other kind": lambda array, _: array.astype("i8" if array.dtype.kind == "f" else "f8"),
    "texts": lambda array, _: array.astype(str),
    "swapped": lambda array, _: array.astype(array.dtype.newbyteorder()),
    "flat": lambda array, _: array.reshape(-1) if array.ndim > 1 else array[None],
    "shorter": lambda array, _: array[:-1],
    "longer": lambda array, _: np.concatenate([array, array]),
    "without its last column": lambda array, _: array[..., :-1],
    "with more columns": lambda array, _: np.concatenate([array, array], axis=-1),
    "empty": lambda array, _: array[:0],
    "turned": lambda array, _: array.T,
    "in the order of Fortran": lambda array, _: np.asfortranarray(array),
    "far too large": lambda array, _: np.full_like(array, 2**40),
    "far too small": lambda array, _: np.full_like(array, -(2**40)),
    "at one place": lambda array, random: _with(array, random, 2**31),
    "at one place below": lambda array, random: _with(array, random, -1),
    "not numbers": lambda array, _: (
        np.full_like(array, np.nan) if array.dtype.kind == "f" else -array
    ),
    "infinite": lambda array, _: np.full_like(array, np.inf) if array.dtype.kind == "f" else array,
}


def _filled(array: NDArray[Any], value: float) -> NDArray[Any]:
    return np.full_like(array, value) if array.dtype.kind == "f" else -array


def _with(array: NDArray[Any], random: np.random.Generator, value: float) -> NDArray[Any]:
    """The same with another number somewhere."""
    array = array.copy()
    if array.size:
        array.reshape(-1)[random.integers(array.size)] = value
    return array


# And what may have become of a plain value.
VALUES: list[Any] = [-1, 2**40, 2**200, 0.5, -1e300, True, "text", None, [], {"mapping": []}]


def leaves(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of plain values in a record."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from leaves(value, (*path, key))
    elif isinstance(record, list):
        for place, value in enumerate(record):
            yield from leaves(value, (*path, place))
    else:
        yield path


def forgeries(arrays: dict[str, NDArray[Any]], random: np.random.Generator) -> Iterator[Any]:
    """The contents of a file with one array, or one plain value, that is another."""
    for name in sorted(arrays.keys() - {"record", "checksum"}):
        for forgery in FORGERIES.values():
            yield {**arrays, name: forgery(arrays[name], random)}
    record = json.loads(arrays["record"].tobytes())
    for path in leaves(record):
        for value in VALUES:
            changed = json.loads(json.dumps(record))
            place = functools.reduce(operator.getitem, path[:-1], changed)
            place[path[-1]] = value
            yield {**arrays, "record": np.frombuffer(json.dumps(changed).encode(), np.uint8)}


def resume(name: str, folder: Path) -> str:
    """What a program says of a checkpoint that it refuses; nothing if it goes on."""
    try:
        with checkpoint(folder, X=1, y="a"):
            found = PROGRAMS[name]()
    except ModelFileError as error:
        return str(error)
    assert all(np.isfinite(w).all() for w, *_ in found)
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_forged_is_refused_or_does_no_harm(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No crash of the interpreter, and no error but one that names the checkpoint."""
    random = np.random.default_rng(0)
    whole, folder = tmp_path / "whole", tmp_path / "run"
    die(whole, monkeypatch, PROGRAMS[name])
    files = []
    for file in sorted(whole.iterdir()):
        with np.load(file) as archive:
            files += [(file.name, forged) for forged in forgeries(dict(archive), random)]
    for place in random.permutation(len(files))[:FORGED]:
        file_name, forged = files[place]
        shutil.copytree(whole, folder)
        del forged["checksum"]
        np.savez(folder / file_name, **forged, checksum=np.array(fingerprint(forged)))
        told = resume(name, folder)
        assert not told or told.startswith(str(folder))
        shutil.rmtree(folder, ignore_errors=True)


def test_a_slot_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled loops would read and write behind the planes of the last example."""
    folder = tmp_path / "run"
    die(folder, monkeypatch, PROGRAMS["path by bcfw"])
    with np.load(folder / "now.npz") as archive:
        arrays = dict(archive)
    del arrays["checksum"]
    (name,) = (name for name, own in arrays.items() if own.dtype == np.int64 and len(own) > 1)
    arrays[name] = np.full_like(arrays[name], 2**40)
    np.savez(folder / "now.npz", **arrays, checksum=np.array(fingerprint(arrays)))
    told = resume("path by bcfw", folder)
    assert (
        told == f"{folder}: damaged, or not of this training (size should have numbers from 1 to 5)"
    )
