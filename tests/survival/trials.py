"""Trials of survival: training is killed at random moments, and goes on until it is done.

    python -m tests.survival.trials --trials 100

Each trial runs one of the programs below in a process of its own, kills it at a moment drawn from
the time that it takes, and starts it again with ``--resume``; this may be killed as well. One death
in five is a SIGTERM, the others are ``kill -9``. What comes out must be the model of a run that was
left alone, to the tolerance of training; an older model at the same place must be whole until then;
and nothing else may be left behind.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from didyma import model
from didyma.cli import app
from didyma.cli.output import listen
from didyma.data import write
from didyma.data.lists import Lists

TOL = 1e-6
EVERY = 0.01  # seconds between checkpoints, so that some deaths fall into the writing of one
DEATHS = 3  # of one trial, at most
PROGRAMS = {
    "fit": f"fit TRAIN --C 100 --tol {TOL}",
    "path": f"fit TRAIN --dev DEV --C 1,10,100 --tol {TOL}",
    "ramps": "fit TRAIN --dev DEV --C 100,1000 --loss ndcg@5 --tol 1e-4",
    "latent": f"fit TRAIN --model-type latent-svm --C 100 --start random --tol {TOL}",
    "additive": f"fit TRAIN --bins 32 --interactions 2 --C 10 --tol {TOL}",
}


def judged(seed: int, n_queries: int) -> Lists:
    """Queries of which the features tell a part."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(20 * n_queries, 8))
    signal = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + random.normal(size=len(X))
    best = np.argsort(-signal.reshape(n_queries, 20), axis=1)[:, :4]
    y = np.zeros((n_queries, 20))
    np.put_along_axis(y, best, [2.0, 1.0, 1.0, 1.0], axis=1)
    return Lists(X, y.ravel(), np.repeat(np.arange(n_queries), 20))


def run(command: list[str]) -> int:
    """Run a command in this process, silently; returns its exit code."""
    quiet = io.StringIO()
    try:
        with redirect_stdout(quiet), redirect_stderr(quiet):
            app(command)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def started(command: list[str]) -> int:
    """The id of a process that runs a command, in which all is loaded that is loaded here."""
    if child := os.fork():
        return child
    code = 70
    try:
        listen()
        code = run(command)
    finally:
        os._exit(code)


def has_ended(child: int) -> bool:
    """Whether a process is done."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def reaped(child: int) -> int:
    """How a process ended: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Trials:
    """Trials of one program."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.output = name, folder / "model"
        self.checkpoint = folder / "model.checkpoint" / "now.npz"
        files = {"TRAIN": folder / "train.npz", "DEV": folder / "dev.npz"}
        for seed, path in enumerate(files.values()):
            if not path.exists():
                write(judged(seed, 60), path)
        words = [str(files.get(word, word)) for word in PROGRAMS[name].split()]
        self.command = [*words, "-o", str(self.output), "--jobs", "1"]
        self.command += ["--checkpoint-every", str(EVERY)]
        assert run(self.command) == 0, self.command  # here, to load what it needs
        began = time.monotonic()
        assert reaped(started(self.command)) == 0, self.command
        self.seconds = time.monotonic() - began
        self.alone = model.Model.read(self.output)

    def _wait_for_checkpoint(self, child: int) -> None:
        """Wait until the first is there, or the process at its end."""
        while not self.checkpoint.exists() and not has_ended(child):
            time.sleep(0.001)

    def run(self, random: Random) -> Counter[str]:
        """One trial; an assertion fails if it went wrong."""
        found: Counter[str] = Counter(trials=1)
        self.output.write_bytes(b"old")
        resume: list[str] = []
        moment, deaths = self.seconds, random.randint(1, DEATHS)
        while found["deaths"] < deaths:
            child = started([*self.command, *resume])
            if random.random() < 0.8:  # else it may die before there is a checkpoint
                self._wait_for_checkpoint(child)
            time.sleep(random.random() * moment)
            sent = signal.SIGTERM if random.random() < 0.2 else signal.SIGKILL
            os.kill(child, sent)
            if reaped(child) == 0:  # it was done before
                if resume:
                    break
                moment /= 2  # again, as a trial without a death tells nothing
                self.output.write_bytes(b"old")
                continue
            found["deaths"] += 1
            found["of which by SIGTERM"] += sent == signal.SIGTERM
            found["deaths with a checkpoint"] += self.checkpoint.exists()
            found["deaths while writing"] += any(self.output.parent.rglob("*.didyma-partial"))
            whole = self.output.read_bytes() == b"old" or model.Model.read(self.output)
            assert whole, "the old file is gone"
            resume = ["--resume"]
        if resume:
            assert reaped(started([*self.command, *resume])) == 0, "it did not go on"
        left = {path.name for path in self.output.parent.iterdir()} - {"train.npz", "dev.npz"}
        assert left == {"model"}, f"left behind: {sorted(left - {'model'})}"
        now = model.Model.read(self.output)
        values = [own.summary["candidates"][-1]["objective"] for own in (self.alone, now)]
        assert abs(values[0] - values[1]) <= 2 * TOL * abs(values[0]), values
        found["the same objective"] += 1
        same = all(np.array_equal(now.tensors[key], own) for key, own in self.alone.tensors.items())
        found["the same bits"] += same
        return found


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Run trials of all programs in turn, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", nargs="*", choices=PROGRAMS, default=list(PROGRAMS))
    given = parser.parse_args(arguments)
    total: dict[str, Counter[str]] = {}
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a slow disk slows all deaths down
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        trials = []
        for name in given.programs:
            (own := Path(folder, name)).mkdir()
            trials.append(Trials(name, own))
        for number in range(given.trials):
            one = trials[number % len(trials)]
            try:
                counts = one.run(Random(f"{given.seed} {number}"))
            except BaseException as error:
                error.add_note(f"trial {number} of {one.name}, seed {given.seed}")
                raise
            total.setdefault(one.name, Counter()).update(counts)
            print(f"{number + 1}/{given.trials} {one.name}: {dict(counts)}", file=sys.stderr)
    print(json.dumps(total, indent=2))
    every: Counter[str] = sum(total.values(), Counter())
    if every["deaths"] > 20 and 2 * every["deaths with a checkpoint"] < every["deaths"]:
        sys.exit("most deaths were too early to tell anything: let training take longer")
    return dict(total)


if __name__ == "__main__":
    main()
