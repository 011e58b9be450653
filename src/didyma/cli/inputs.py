"""What commands read: judged results, models, and judged results in the columns of a model."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from didyma.errors import DataError, ModelFileError
from didyma.files import format_suffix, read_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.data import RankingData

__all__ = ["Columns", "Layout", "Model", "is_model", "read_based", "read_data"]

TABLES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Columns:
    """Where a file has its labels and queries: columns of a table, sizes of groups."""

    label: str = "label"
    qid: str = "qid"
    docid: str | None = None
    group: Path | None = None


def is_model(path: Path) -> bool:
    """Whether a file is in safetensors format: by its name, or a length and a ``{`` up front."""
    if path.suffix == ".safetensors":
        return True
    with open(path, "rb") as file:
        head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    return head[8:] == b"{" and 8 + length <= os.path.getsize(path)


def read_data(
    path: Path,
    columns: Columns,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    features: Sequence[str] | None = None,
) -> RankingData:
    """Judged results in any format that the library reads; ``features`` are columns of a table."""
    from didyma.formats import letor, numpy_file, table

    if is_model(path):
        raise DataError("expected judged results, found a model", path=path)
    kind = format_suffix(path)
    if columns.group is not None and kind in (*TABLES, ".npz"):
        raise DataError("expected no sizes of groups, as the file names its queries", path=path)
    if kind in TABLES:
        return table.read(
            path, label=columns.label, qid=columns.qid, docid=columns.docid, features=features
        )
    if kind == ".npz":
        return numpy_file.read(path)
    return letor.read(path, group=columns.group, zero_based=zero_based)


def read_based(path: Path, columns: Columns) -> tuple[RankingData, bool]:
    """Judged results, and whether their features count from 0.

    Other files of the collection may lack feature 0 and must be told.
    """
    if format_suffix(path) in (*TABLES, ".npz"):
        return read_data(path, columns), False
    try:
        return read_data(path, columns, zero_based=False), False
    except DataError:  # of a file with index 0, or of one that is wrong in any case
        return read_data(path, columns, zero_based="auto"), True


@dataclass(frozen=True)
class Layout:
    """The features of a model or of its training data, which other files must have too."""

    owner: str
    n_features: int
    names: tuple[str, ...] | None
    zero_based: bool | Literal["auto"]

    def read(self, path: Path, columns: Columns, *, judged: bool = True) -> RankingData:
        """Data with these features, matched by name where both have names.

        A LETOR file may lack the last ones. Without ``judged``, a table needs no labels.
        """
        if format_suffix(path) in TABLES:
            data = self._read_table(path, columns, judged)
        else:
            data = read_data(path, columns, zero_based=self.zero_based)
        if self.names is not None and data.feature_names is not None:
            return self._chosen(data, path)
        return self._widened(data, path)

    def _read_table(self, path: Path, columns: Columns, judged: bool) -> RankingData:
        import numpy as np

        try:
            return read_data(path, columns, features=self.names)
        except DataError as error:
            if error.field is None:  # not because of a column
                raise
            present = _column_names(path)
            self._check_names(present, path)
            if judged or columns.label in present:
                raise
        roles = (columns.qid, columns.docid or "docid")
        features = self.names or tuple(name for name in present if name not in roles)
        # The reader wants labels: any feature will do, as they are not used.
        stand_in = replace(columns, label=features[0]) if features else columns
        data = read_data(path, stand_in, features=features)
        return replace(data, y=np.zeros(len(data)))

    def _check_names(self, present: Sequence[str], path: Path) -> None:
        if missing := [name for name in self.names or () if name not in set(present)]:
            raise DataError(f"lacks features of {self.owner}: {', '.join(missing)}", path=path)

    def _chosen(self, data: RankingData, path: Path) -> RankingData:
        assert self.names is not None
        assert data.feature_names is not None
        if data.feature_names == self.names:
            return data
        self._check_names(data.feature_names, path)
        place = {name: k for k, name in enumerate(data.feature_names)}
        columns = [place[name] for name in self.names]
        return replace(data, X=data.X[:, columns], feature_names=self.names)

    def _widened(self, data: RankingData, path: Path) -> RankingData:
        import numpy as np

        X: Any = data.X
        width, needed = X.shape[1], self.n_features
        is_letor = format_suffix(path) not in (*TABLES, ".npz")
        if width > needed or (width < needed and not is_letor):
            raise DataError(f"has {width} features, but {self.owner} has {needed}", path=path)
        if width < needed and isinstance(X, np.ndarray):
            X = np.pad(X, ((0, 0), (0, needed - width)))
        elif width < needed:
            X = type(X)((X.data, X.indices, X.indptr), shape=(len(data), needed))
        return replace(data, X=X)


@dataclass(frozen=True, eq=False)
class Model:
    """A ranker from a file, and the features that it asks for."""

    ranker: Any
    layout: Layout

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read a model file."""
        from didyma import model

        ranker, summary = model.load(path), model.describe(path)["summary"]
        if not hasattr(ranker, "predict"):
            raise ModelFileError(f"{path}: holds a {type(ranker).__name__}, which does not rank")
        names = getattr(ranker, "feature_names_in_", None)
        layout = Layout(
            owner=f"the model {path}",
            n_features=int(ranker.n_features_in_),
            names=None if names is None else tuple(map(str, names)),
            zero_based=summary.get("zero_based", "auto"),
        )
        return cls(ranker, layout)

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


def _column_names(path: Path) -> list[str]:
    """The columns of a table that can be read at all."""
    contents = read_bytes(path)
    if format_suffix(path) == ".parquet":
        from pyarrow import BufferReader, parquet

        return [str(name) for name in parquet.read_schema(BufferReader(contents)).names]
    head = contents.partition(b"\n")[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    return next(csv.reader([head], delimiter="\t" if format_suffix(path) == ".tsv" else ","), [])
