"""The former name of `didyma.data`."""

from didyma.lazy import moved

_NAMES = ("blocks", "format_of", "letor", "lists_folder", "numpy_file", "read", "table", "trec")
__getattr__ = moved(__name__, dict.fromkeys((*_NAMES, "write", "write_blocks"), "didyma.data"))
