"""Readers and writers: judged results from files, and back.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp(), "train.csv")
>>> _ = path.write_text("label,qid,bm25\\n1,apple,2.5\\n0,apple,1.0\\n")
>>> read(path)
RankingData(2 rows, 1 features, 1 queries)
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from didyma.data import RankingData
from didyma.files import PathName, format_suffix
from didyma.formats import letor, numpy_file, table, trec

__all__ = ["letor", "numpy_file", "read", "table", "trec", "write"]

BY_SUFFIX = {".csv": table, ".tsv": table, ".parquet": table, ".npz": numpy_file}


def read(path: PathName, **options: Any) -> RankingData:
    """Read judged results in the format that the name tells; ``options`` are those of its reader.

    ``.csv``, ``.tsv`` and ``.parquet`` are tables, ``.npz`` is NumPy's, all others are LETOR /
    svmlight; a final ``.gz`` does not count.
    """
    data: RankingData = _format(path).read(path, **options)
    return data


def write(data: RankingData, path: PathName) -> None:
    """Write judged results in the format that the name tells, as in `read`."""
    _format(path).write(data, path)


def _format(path: PathName) -> ModuleType:
    return BY_SUFFIX.get(format_suffix(path), letor)
