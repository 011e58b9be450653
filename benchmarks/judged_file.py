"""Files of judged results of any size, of which little has to be made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import synthetic
from didyma.data import formats, letor
from didyma.data.lists import Lists

__all__ = ["FEATURES", "ROWS", "write_file"]

ROWS, FEATURES = 100, 136  # of a query, and of a row
DISTINCT = 50  # queries that have features of their own


def write_file(path: Path, kind: str, queries: int) -> None:
    """Write results as text or Parquet; features repeat, query ids do not."""
    part = synthetic.dense(min(DISTINCT, queries), ROWS, FEATURES)
    X: Any = part.X.round(6)
    if kind.endswith("csr"):
        X = sp.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.2))
    names = np.repeat([f"QUERY{k}" for k in range(len(part.groups))], ROWS)
    part = Lists(X, part.y, names, zero_based=False)
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        formats.write(part, path)
        table = pq.read_table(path)
        with pq.ParquetWriter(path, table.schema) as file:
            for first in range(0, queries, DISTINCT):
                own = pa.array([f"{first}-{name}" for name in names.tolist()])
                file.write_table(table.set_column(1, "qid", own))
        return
    formats.write(part, path)
    head, text = "", path.read_text()
    if path.suffix == ".csv":
        head, _, text = text.partition("\n")
        head += "\n"
    else:
        assert letor.read(path).X.shape == part.X.shape
    with path.open("w") as file:
        file.write(head)
        for first in range(0, queries, DISTINCT):
            file.write(text.replace("QUERY", f"{first}-"))
