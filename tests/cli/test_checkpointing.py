"""Commands that are killed, and go on with --resume."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from didyma import model
from didyma.checkpoints import Checkpoint

from .conftest import Run

TEXTS = "who rang ?\tThey rang .\t1\nwho rang ?\tIt rains .\t0\n"
LISTS = (
    '{"input": "the ring", "reference": "DT NN", "candidates": '
    '[{"text": "DT VB", "score": -3}, {"text": "DT NN", "score": -4}]}\n'
)
TALE = "#begin document (d); part 0\nd 0 0 a (1)\nd 0 1 b (2)\nd 0 2 a (1)\n\n#end document\n"
COMMANDS = {
    "fit": "fit {train.letor} --dev {dev.letor} --C 1,10 --tol 1e-4",
    "additive": "fit {train.letor} --bins 4 --tol 1e-4",
    "latent": "fit {train.letor} --model-type latent-svm",
    "coref": "coref fit {tale.conll} --C 1",
    "motif": "motif fit {yes.fa} --negatives {no.fa} -l 3 --restarts 2",
    "nbest": "nbest fit {lists.jsonl} --model-type svm",
    "rerank": "rerank fit {texts.tsv} --quick",
}


class Died(BaseException):
    pass


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the next command die when it has written a checkpoint."""
    save, alive = Checkpoint.save, True

    def save_and_die(self: Checkpoint) -> None:
        nonlocal alive
        save(self)
        if alive:
            alive = False
            raise Died

    monkeypatch.setattr(Checkpoint, "save", save_and_die)


@pytest.fixture
def inputs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    own = tmp_path_factory.mktemp("inputs")
    contents = {
        "tale.conll": TALE,
        "yes.fa": "".join(f">{k}\nACGATT{base}C\n" for k, base in enumerate("ACGT")),
        "no.fa": "".join(f">{k}\nCCCG{base}CC\n" for k, base in enumerate("ACGT")),
        "lists.jsonl": LISTS * 4,
        "texts.tsv": "".join(TEXTS.replace("rang", word) for word in ("rang", "left", "sat")) * 4,
    }
    for name, text in contents.items():
        (own / name).write_text(text)
    return {path.name: path for where in (own, folder) for path in where.iterdir()}


def words(name: str, inputs: dict[str, Path]) -> list[str]:
    return [
        str(inputs[word[1:-1]]) if word.startswith("{") else word for word in COMMANDS[name].split()
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_was_killed_goes_on(
    name: str, run: Run, inputs: dict[str, Path], tmp_path: Path, request: Any
) -> None:
    command, output = words(name, inputs), tmp_path / "model"
    run(*command, "-o", tmp_path / "alone")
    request.getfixturevalue("dying")
    run(*command, "-o", output, "--checkpoint-every", 0, died=Died)
    assert sorted(os.listdir(tmp_path)) == ["alone", "model.checkpoint"]
    found = run(*command, "-o", output, "--resume")
    assert "model.checkpoint: going on from here" in found.stderr
    assert sorted(os.listdir(tmp_path)) == ["alone", "model"]
    one, other = (model.Model.read(tmp_path / own).tensors for own in ("alone", "model"))
    assert one.keys() == other.keys()
    for key in one:
        assert (one[key] == other[key]).all(), key


def test_what_must_be_the_same_is_told(
    run: Run, inputs: dict[str, Path], tmp_path: Path, dying: Any
) -> None:
    output, place = tmp_path / "model", tmp_path / "here"
    command = [*words("fit", inputs), "-o", output, "--checkpoint", place]
    run(*command, "--checkpoint-every", 0, died=Died)
    found = run(*command, "--tol", "0.1", "--resume", code=1)
    assert "here: a checkpoint of another run, which differs in --tol (0.0001, now 0.1);" in (
        found.stderr
    )
    other = [
        str(inputs["test.letor"]) if str(word).endswith("train.letor") else word for word in command
    ]
    assert "differs in TRAIN;" in run(*other, "--resume", code=1).stderr
    moved = tmp_path / "moved.letor"
    moved.write_bytes(inputs["train.letor"].read_bytes())
    same = [str(moved) if str(word).endswith("train.letor") else word for word in command]
    run(*same, "--jobs", 1, "--resume")
    assert not place.exists()


def test_a_checkpoint_that_nobody_asks_for_is_replaced(
    run: Run, inputs: dict[str, Path], tmp_path: Path, dying: Any
) -> None:
    command = [*words("fit", inputs), "-o", tmp_path / "model", "--checkpoint-every", 0]
    run(*command, died=Died)
    found = run(*command)
    assert "--resume would go on from it" in found.stderr
    assert os.listdir(tmp_path) == ["model"]


def test_without_a_checkpoint_training_begins(
    run: Run, inputs: dict[str, Path], tmp_path: Path
) -> None:
    command = [*words("fit", inputs), "-o", tmp_path / "model"]
    assert "no checkpoint, so from the start" in run(*command, "--resume").stderr
    assert os.listdir(tmp_path) == ["model"]


def test_a_place_that_cannot_be_is_refused_at_once(
    run: Run, inputs: dict[str, Path], tmp_path: Path
) -> None:
    command = [*words("fit", inputs), "-o", tmp_path / "model", "--checkpoint"]
    (tmp_path / "file").touch()
    assert "found a file" in run(*command, tmp_path / "file", code=1).stderr
    assert "does not exist" in run(*command, tmp_path / "no" / "where", code=1).stderr
