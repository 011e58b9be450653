"""The indexes that are served, by name, each as its folder is at the moment."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from didyma.serve.served import Served

if TYPE_CHECKING:
    from didyma.text.index import PassageIndex

__all__ = ["ServedIndex", "ServedIndexes"]


@dataclass(frozen=True)
class ServedIndex:
    """An index, its folder, and when it was opened."""

    path: Path
    index: PassageIndex
    loaded: float


class ServedIndexes(Served[ServedIndex]):
    """Several indexes by name."""

    kind = "indexes"

    def _load(self, name: str, path: Path) -> ServedIndex:
        from didyma.text.index import PassageIndex

        index = PassageIndex.open(path)
        index.search("which")  # so that no request compiles
        return ServedIndex(path, index, time.time())
