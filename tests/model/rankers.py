"""Rows to fit a ranker on, and the header of its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from didyma.model.container import checksum

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = (RNG.random(40) < 0.4) * 1
QID = np.repeat(["a", "b", "c", "d"], 10)


def header(contents: bytes) -> dict[str, Any]:
    return json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])


def rewrite(path: Path, **texts: str) -> None:
    """Change metadata, and put the checksum right, as a newer or hostile writer would."""
    arrays = load_file(path)
    metadata = {**header(path.read_bytes())["__metadata__"], **texts}
    del metadata["checksum"]
    metadata["checksum"] = checksum(metadata, arrays)
    save_file(arrays, path, metadata)
