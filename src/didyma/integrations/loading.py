"""The reranker of a plug-in: an object, or a file."""

from __future__ import annotations

import os
from typing import TypeAlias

from didyma.files import PathName
from didyma.text.text_reranker import TextReranker

GivenReranker: TypeAlias = TextReranker | PathName


def reranker_of(given: GivenReranker) -> TextReranker:
    """The reranker itself, or loaded from its file."""
    return TextReranker.load(given) if isinstance(given, (str, os.PathLike)) else given
