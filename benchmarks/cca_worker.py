"""Seconds of cca-zoo's RidgeCCA: ``python cca_worker.py FOLDER COMPONENTS SHRINKAGE``.

It runs in the environment of the peers, reads X.npy and Y.npy, and leaves its weights beside them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from cca_zoo.linear import RidgeCCA


def main() -> None:
    folder = Path(sys.argv[1])
    X, Y = np.load(folder / "X.npy"), np.load(folder / "Y.npy")
    model = RidgeCCA(int(sys.argv[2]), center=False, shrinkage=float(sys.argv[3]))
    model.fit([X[:50], Y[:50]])  # loads libraries, as ours are loaded
    start = time.perf_counter()
    model.fit([X, Y])
    seconds = time.perf_counter() - start
    np.save(folder / "A.npy", model.weights_[0])
    np.save(folder / "B.npy", model.weights_[1])
    print(seconds)


if __name__ == "__main__":
    main()
