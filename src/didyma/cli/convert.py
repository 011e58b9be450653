"""`didyma convert`: judged results from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, read_data
from didyma.cli.output import check_output, say, say_warning
from didyma.errors import DataError
from didyma.files import format_suffix

__all__ = ["convert"]

FORMATS = {".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet", ".npz": "NumPy"}


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="What to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="What to write.")],
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
) -> None:
    """Convert judged results, by the extensions of the files.

    .csv, .tsv, .parquet and .npz are what they say, all others are LETOR /
    svmlight; a final .gz compresses all but .npz.

    [bold]Example[/bold]

    didyma convert train.txt train.parquet
    """
    check_output(target, source, group)
    kind = FORMATS.get(format_suffix(target), "LETOR")
    if kind == "NumPy" and target.suffix != ".npz":
        raise DataError("expected a name that ends in .npz, which is compressed", path=target)

    from didyma import formats

    data = read_data(source, InputColumns(label, qid, docid, group))
    formats.write(data, target)
    if kind == "LETOR" and data.feature_names is not None:
        say_warning("a LETOR file has no place for the names of features, only for their numbers")
    say(f"{target}: {kind}, {len(data)} rows, {len(data.groups)} queries")
