"""Rows larger than all memory of the machine: ``python -m benchmarks.beyond_cache [GIGABYTES]``.

A folder of rows is written where temporary files are on disk, 1.2 times the memory unless a size is
given. Then a ranker learns from it: no pass finds it in the system's memory, so that the limit of
each is reading it once. It takes minutes, and that much of the disk.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.large_data import _seconds_to_read
from benchmarks.process import status
from didyma import SVMRanker, read
from didyma.data.lists import Lists
from didyma.data.lists_folder import write_blocks

FEATURES, ROWS, BLOCK = 136, 100, 100_000  # rows of a query, and of a block
TOL = 0.01


def blocks(n_bytes: int) -> Iterator[Lists]:
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal(FEATURES).astype(np.float32)
    for block in range(max(1, n_bytes // (4 * FEATURES * BLOCK))):
        X = rng.random((BLOCK, FEATURES), dtype=np.float32)
        score = X @ hidden + 5 * rng.standard_normal(BLOCK)
        place = np.argsort(np.argsort(-score.reshape(-1, ROWS), axis=1), axis=1).ravel()
        qid = np.arange(BLOCK) // ROWS + block * (BLOCK // ROWS)
        yield Lists(X, (place < 7).astype(float), qid, zero_based=False)


def main() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = int(float(sys.argv[1]) * 1e9) if len(sys.argv) > 1 else round(1.2 * memory)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name, "rows.lists")
        n_rows, n_lists = write_blocks(blocks(size), folder)
        reading = _seconds_to_read(folder)
        start = time.perf_counter()
        ranker = SVMRanker(C=1.0, tol=TOL).fit(read(folder))
        seconds = time.perf_counter() - start
        print(
            json.dumps(
                {
                    "memory GB": memory / 1e9,
                    "rows": n_rows,
                    "lists": n_lists,
                    "GB": sum(file.stat().st_size for file in folder.iterdir()) / 1e9,
                    "reading once, s": reading,
                    "fit, s": seconds,
                    "passes": ranker.result_.passes,
                    "status": ranker.result_.status,
                    "own memory of the process, GB": status("RssAnon") / 1e9,
                    "over reading once": seconds / reading,
                },
                indent=1,
            )
        )


if __name__ == "__main__":
    main()
