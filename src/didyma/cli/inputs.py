"""What commands read: judged results and models."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from didyma.errors import DataError, ModelFileError
from didyma.files import format_suffix

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.data import RankingData

__all__ = ["Columns", "Model", "is_model", "read_data"]

TABLES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Columns:
    """Where a file has its labels and queries: columns of a table, sizes of groups."""

    label: str = "label"
    qid: str = "qid"
    docid: str | None = None
    group: Path | None = None
    missing: bool = False


def is_model(path: Path) -> bool:
    """Whether a file is in safetensors format: by its name, or a length and a ``{`` up front."""
    if path.suffix == ".safetensors":
        return True
    with open(path, "rb") as file:
        head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    return head[8:] == b"{" and 8 + length <= os.path.getsize(path)


def read_data(
    path: Path, columns: Columns, *, like: Any = None, judged: bool = True
) -> RankingData:
    """Judged results in any format that the library reads, with the columns of ``like``.

    Without ``judged``, a table needs no labels.
    """
    from didyma import formats

    if is_model(path):
        raise DataError("expected judged results, found a model", path=path)
    kind = format_suffix(path)
    if columns.group is not None and kind in (*TABLES, ".npz"):
        raise DataError("expected no sizes of groups, as the file names its queries", path=path)
    options: dict[str, Any] = {}
    if kind in TABLES:
        roles = {"label": columns.label, "qid": columns.qid, "docid": columns.docid}
        options = {**roles, "judged": judged}
    elif kind != ".npz":
        options = {"group": columns.group, "missing": columns.missing or _allows_missing(like)}
    return formats.read(path, like=like, **options)


def _allows_missing(like: Any) -> bool:
    """Whether these columns are those of a model that knows missing values."""
    final = like.steps[-1][1] if hasattr(like, "steps") else like
    return bool(getattr(final, "_allows_missing", False))


@dataclass(frozen=True, eq=False)
class Model:
    """A ranker from a file."""

    ranker: Any

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read a model file."""
        from didyma import model

        ranker = model.load(path)
        if not hasattr(ranker, "predict"):
            raise ModelFileError(f"{path}: holds a {type(ranker).__name__}, which does not rank")
        return cls(ranker)

    def read(self, path: Path, columns: Columns, *, judged: bool = True) -> RankingData:
        """Data with the features that the model asks for."""
        return read_data(path, columns, like=self.ranker, judged=judged)

    def scores(self, data: RankingData) -> NDArray[np.float64]:
        """Score of each row; a pipeline that scales within queries is told the queries."""
        from sklearn import config_context

        with config_context(enable_metadata_routing=True), warnings.catch_warnings():
            # Columns have been matched by name already.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            wants_qid = self.ranker.get_metadata_routing().consumes("predict", ["qid"])
            options = {"qid": data.qid} if wants_qid else {}
            scores: NDArray[np.float64] = self.ranker.predict(data.X, **options)
        return scores
