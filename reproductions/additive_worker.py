"""Train LightGBM with several settings, in an environment where didyma does not exist.

    python additive_worker.py FOLDER

reads {train,validation,test}_{X,y,group}.npy and settings.json from the folder. For each setting
and each number of trees in it, scores of the validation and of the test rows are written to
scores.npz; the seconds that each setting took for all its trees are printed as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def lightgbm_scores(parts: Any, setting: Any, trees: Any, threads: int) -> Any:
    """Seconds, and scores of validation and test rows by number of trees."""
    import lightgbm

    X, y, group = parts["train"]
    parameters = {"objective": "lambdarank", "num_threads": threads, "verbose": -1, **setting}
    start = time.perf_counter()
    model = lightgbm.train(parameters, lightgbm.Dataset(X, y, group=group), max(trees))
    seconds = time.perf_counter() - start
    return seconds, {
        part: np.array([model.predict(parts[part][0], num_iteration=n) for n in trees])
        for part in ("validation", "test")
    }


def main() -> None:
    """Do what the folder asks for."""
    folder = Path(sys.argv[1])
    wanted = json.loads((folder / "settings.json").read_text())
    parts = {
        part: tuple(np.load(folder / f"{part}_{name}.npy") for name in ("X", "y", "group"))
        for part in ("train", "validation", "test")
    }
    seconds, found = [], {}
    for k, setting in enumerate(wanted["settings"]):
        took, own = lightgbm_scores(parts, setting, wanted["trees"], wanted["threads"])
        seconds.append(took)
        found |= {f"{part}_{k}": values for part, values in own.items()}
    np.savez(folder / "scores.npz", **found)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
