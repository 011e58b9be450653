"""Give damaged inputs to all targets for a while, and count what becomes of them.

    python -m tests.fuzz --seconds 600 --seed 7

Inputs are drawn from the seed, the target's name and a number. The first input of each fault is
kept in the corpus, which the tests run again. Where atheris is installed, the same time goes into a
search by coverage (`tests.fuzz.guided`).
"""

from __future__ import annotations

import argparse
import faulthandler
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from random import Random

from tests.fuzz.counting import Fuzzed, table
from tests.fuzz.targets import TARGETS

AT_A_TIME = 20  # inputs of a target, before it is the next one's turn


def main() -> int:
    """Fuzz all targets, or some."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*", help="targets, such as 'model-*'")
    given = parser.parse_args()
    faulthandler.enable()  # what crashes leaves its input in the folder
    folder = tempfile.mkdtemp(prefix="didyma-fuzz-")
    print(f"inputs are in {folder}", file=sys.stderr)
    found = [Fuzzed(own, Path(folder)) for own in TARGETS if fnmatch(own.name, given.only)]
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        for own in found:
            print(f"\r{own.target.name:<60}", end="", file=sys.stderr, flush=True)
            for _ in range(AT_A_TIME if time.monotonic() < end else 0):
                number = own.counts["inputs"]
                own.give(own.changed(own.valid, Random(f"{given.seed} {own.target.name} {number}")))
    print(table(found, f"seed {given.seed}"))
    code = int(any(own.counts["fault"] for own in found))
    if find_spec("atheris") is None or given.only != "*":
        return code
    more = ["--seconds", str(given.seconds), "--seed", str(given.seed)]
    return code | subprocess.run([sys.executable, "-m", "tests.fuzz.guided", *more]).returncode


if __name__ == "__main__":
    sys.exit(main())
