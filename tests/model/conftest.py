from __future__ import annotations

from pathlib import Path

import pytest

from didyma.ranking.classification import ClassificationRanker
from tests.model.rankers import QID, X, Y


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ranker.safetensors"


@pytest.fixture
def saved(path: Path) -> bytes:
    ClassificationRanker(C=2.5).fit(X, Y, qid=QID).save(path)
    return path.read_bytes()
