"""Readers and writers: judged results from files, and back.

>>> import tempfile
>>> from pathlib import Path
>>> from didyma.formats import read
>>> path = Path(tempfile.mkdtemp(), "train.csv")
>>> _ = path.write_text("label,qid,bm25\\n1,apple,2.5\\n0,apple,1.0\\n")
>>> read(path)
Lists(2 rows, 1 features, 1 queries)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.formats import letor, lists_folder, numpy_file, table, trec
    from didyma.formats.judged import blocks, format_of, read, write, write_blocks

__all__ = [
    "blocks",
    "format_of",
    "letor",
    "lists_folder",
    "numpy_file",
    "read",
    "table",
    "trec",
    "write",
    "write_blocks",
]

_FUNCTIONS = ("blocks", "format_of", "read", "write", "write_blocks")
_function = lazily(__name__, dict.fromkeys(_FUNCTIONS, "didyma.formats.judged"))


def __getattr__(name: str) -> Any:
    if name in __all__ and name not in _FUNCTIONS:
        return import_module(f"{__name__}.{name}")
    return _function(name)
