"""`didyma convert`: judged results from one format to another."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, reader_options
from didyma.cli.output import check_folder, check_output, counting, say, say_warning, waiting
from didyma.errors import DataError
from didyma.files import format_suffix

if TYPE_CHECKING:
    from didyma.data.lists import Lists

__all__ = ["convert"]

FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".jsonl": "JSON lines",
    ".npz": "NumPy",
    ".lists": "lists folder",
}
FOLDER = "Lists folder"


class Precision(StrEnum):
    """Of the features in a lists folder."""

    float32 = "float32"
    float64 = "float64"


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="What to read.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="What to write.", show_default=False)
    ] = None,
    dtype: Annotated[
        Precision | None,
        typer.Option(
            "--dtype", rich_help_panel=FOLDER, help="Type of features.", show_default="that of IN"
        ),
    ] = None,
    sparse: Annotated[
        bool | None,
        typer.Option(
            "--sparse/--dense",
            rich_help_panel=FOLDER,
            help="How features are stored.",
            show_default="as IN suggests",
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", rich_help_panel=FOLDER, help="Keep NULL and NaN.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            rich_help_panel=FOLDER,
            help="Compare all files of the folder IN, or OUT, with their checksums.",
        ),
    ] = False,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
) -> None:
    """Convert judged results, by the extensions of the files.

    .csv, .tsv, .parquet, .jsonl and .npz are what they say, all others are
    LETOR / svmlight; a final .gz compresses all but .npz.

    .lists is a folder of NumPy arrays that every command reads without loading
    it. Data of any size are converted in constant memory, unless to .npz.

    [bold]Examples[/bold]

    didyma convert train.txt train.parquet

    didyma convert big.txt.gz big.lists --dtype float32

    didyma convert big.lists --check
    """
    from didyma.data import lists_folder

    if check and lists_folder.is_lists_folder(source):
        with waiting(f"checking {source}"):
            lists_folder.check(source)
        say(f"{source}: as it was written")
    if target is None:
        if not check:
            raise typer.BadParameter("give what to write, or --check", param_hint="OUT")
        return
    columns = InputColumns(label, qid, docid, group, missing)
    kind = FORMATS.get(format_suffix(target), "LETOR")
    if target.suffix.lower() == ".lists":
        rows, queries = _fill_folder(source, target, columns, dtype, sparse)
        if check:
            lists_folder.check(target)
    elif dtype is not None or sparse is not None or missing:
        raise typer.BadParameter("is for a lists folder", param_hint="--dtype, --sparse, --missing")
    else:
        rows, queries = _write_file(source, target, columns, kind)
    say(f"{target}: {kind}, {rows} rows, {queries} queries")


def _write_file(source: Path, target: Path, columns: InputColumns, kind: str) -> tuple[int, int]:
    from didyma.data import formats
    from didyma.data.row_blocks import QueryCount

    check_output(target, source, columns.group)
    if kind == "NumPy" and target.suffix != ".npz":
        raise DataError("expected a name that ends in .npz, which is compressed", path=target)
    count, named = QueryCount(), False
    with counting(f"writing {target}") as report:

        def counted() -> Iterator[Lists]:
            nonlocal named
            for part in formats.blocks(source, **reader_options(source, columns)):
                yield part
                count.add(part.qid)
                named = part.feature_names is not None
                report("converting", count.n_rows)

        formats.write_blocks(counted(), target)
    if kind == "LETOR" and named:
        say_warning("a LETOR file has no place for the names of features, only for their numbers")
    return count.n_rows, count.n_queries


def _fill_folder(
    source: Path,
    target: Path,
    columns: InputColumns,
    dtype: Precision | None,
    sparse: bool | None,
) -> tuple[int, int]:
    from didyma.data import formats, letor, lists_folder

    check_folder(target, source, columns.group)
    given = reader_options(source, columns)
    if formats.format_of(source) is letor:
        given |= {"sparse": sparse} | ({} if dtype is None else {"dtype": dtype.value})
    parts = formats.blocks(source, **given)
    with counting(f"writing {target}") as report:
        return lists_folder.write_blocks(
            parts,
            target,
            dtype=None if dtype is None else dtype.value,
            sparse=sparse,
            report=report,
        )
