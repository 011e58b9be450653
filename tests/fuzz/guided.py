"""Readers searched by coverage, with atheris where it is installed.

    python -m tests.fuzz.guided --seconds 60

An input that reaches new lines of a reader is kept as the beginning of others. The build of the
core that checks every index is used, and must have been made.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random

INSTRUMENTED = ["didyma.data", "didyma.files", "didyma.data.lists", "didyma.data.matrix"]


def main() -> None:
    """Search all readers of a single file for a while, print the counts, and end."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("DIDYMA_CORE", "checked")
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=INSTRUMENTED):
        readers = importlib.import_module("tests.fuzz.readers").READERS
    from tests.fuzz.counting import Fuzzed, table

    folder = Path(tempfile.mkdtemp(prefix="didyma-fuzz-"))
    found = [Fuzzed(target, folder) for target in readers]
    targets = {own.target.name: own for own in found if len(own.valid) == 1}
    (begun := folder / "begun").mkdir()
    for name, own in targets.items():  # the first line of an input is the name of its target
        (contents,) = own.valid.values()
        (begun / name).write_bytes(name.encode() + b"\n" + contents)
    end = time.monotonic() + given.seconds

    def run(data: bytes) -> None:
        if time.monotonic() > end:
            print(table(list(targets.values()), f"guided, seed {given.seed}"), flush=True)
            os._exit(any(own.counts["fault"] for own in targets.values()))
        name, _, contents = data.partition(b"\n")
        if own := targets.get(name.decode(errors="replace")):
            own.give({next(iter(own.valid)): contents})

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        name, _, contents = data.partition(b"\n")
        own = targets.get(name.decode(errors="replace"))
        if own is None:
            return data
        changed = own.changed({next(iter(own.valid)): contents}, Random(seed))
        return name + b"\n" + b"".join(changed.values())[: size - len(name) - 1]

    options = [f"-seed={given.seed + 1}", "-verbosity=0", "-max_len=100000", "-rss_limit_mb=0"]
    atheris.Setup([sys.argv[0], *options, str(begun)], run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
