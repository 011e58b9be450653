"""From a LETOR file to a model of a peer, in the peers' own environment.

python whole_worker.py PEER FILE FOLDER
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

TREES = 100


def lightgbm(path: Path, folder: Path) -> None:
    """Train with default parameters and save; queries stand in a file beside the data."""
    import lightgbm

    plain = folder / "lightgbm.txt"
    with path.open() as file, plain.open("w") as target:
        sizes = _sizes(_without_queries(file, target))
    plain.with_suffix(".txt.query").write_text("\n".join(map(str, sizes)))
    parameters = {"objective": "lambdarank", "num_threads": 1, "verbose": -1}
    model = lightgbm.train(parameters, lightgbm.Dataset(plain), num_boost_round=TREES)
    model.save_model(folder / "lightgbm.model")


def xgboost_read(path: Path, folder: Path) -> None:
    """Say the least seconds that reading the file takes."""
    import xgboost

    found = []
    for _ in range(3):
        start = time.perf_counter()
        xgboost.DMatrix(f"{path}?format=libsvm", nthread=1)
        found.append(time.perf_counter() - start)
    print(min(found))


def _without_queries(lines: Iterable[str], target: object) -> Iterable[str]:
    for line in lines:
        label, query, rest = line.split(" ", 2)
        target.write(f"{label} {rest}")  # type: ignore[attr-defined]
        yield query


def _sizes(queries: Iterable[str]) -> list[int]:
    return [len(list(own)) for _, own in groupby(queries)]


if __name__ == "__main__":
    {"lightgbm": lightgbm, "xgboost_read": xgboost_read}[sys.argv[1]](
        Path(sys.argv[2]), Path(sys.argv[3])
    )
