"""Readers and writers: judged results from files, and back.

>>> import tempfile
>>> from pathlib import Path
>>> from didyma.data import read
>>> path = Path(tempfile.mkdtemp(), "train.csv")
>>> _ = path.write_text("label,qid,bm25\\n1,apple,2.5\\n0,apple,1.0\\n")
>>> read(path)
Lists(2 rows, 1 features, 1 queries)
"""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
