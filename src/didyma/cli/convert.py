"""`didyma convert`: judged results from one format to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import TABLES, InputColumns, reader_options
from didyma.cli.output import (
    check_folder,
    check_output,
    counting,
    print_message,
    print_warning,
    waiting,
)
from didyma.errors import DataError
from didyma.files import format_suffix

if TYPE_CHECKING:
    from didyma.data.lists import Lists

FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".jsonl": "JSON lines",
    ".npz": "NumPy",
    ".lists": "lists folder",
}
FOLDER = "Lists folder"


@command
def convert(
    *,
    source: Annotated[Path, options.argument("IN", "What to read.")],
    target: Annotated[Path | None, options.argument("OUT", "What to write.", default=False)] = None,
    dtype: Annotated[
        Literal["float32", "float64"] | None,
        typer.Option(help="Type of features.", rich_help_panel=FOLDER, show_default="that of IN"),
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
        bool, options.flag("--missing", "Keep missing values, also in tables.", FOLDER)
    ] = False,
    check: Annotated[
        bool,
        options.flag(
            "--check", "Compare all files of the folder IN, or OUT, with their checksums.", FOLDER
        ),
    ] = False,
    columns: InputColumns,
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
        print_message(f"{source}: as it was written")
    if target is None:
        if not check:
            raise typer.BadParameter("give what to write, or --check", param_hint="OUT")
        return
    kind = FORMATS.get(format_suffix(target), "LETOR")
    if target.suffix.lower() == ".lists":
        rows, queries = _fill_folder(source, target, columns, missing, dtype, sparse)
        if check:
            lists_folder.check(target)
    elif dtype is not None or sparse is not None:
        raise typer.BadParameter("is for a lists folder", param_hint="--dtype, --sparse")
    elif missing and format_suffix(target) not in TABLES:
        raise typer.BadParameter("is for a lists folder or a table", param_hint="--missing")
    else:
        rows, queries = _write_file(source, target, columns, missing, kind)
    print_message(f"{target}: {kind}, {rows} rows, {queries} queries")


def _write_file(
    source: Path, target: Path, columns: InputColumns, missing: bool, kind: str
) -> tuple[int, int]:
    from didyma.data import formats
    from didyma.data.row_blocks import QueryCount

    check_output(target, source, columns.group)
    if kind == "NumPy" and target.suffix != ".npz":
        raise DataError("expected a name that ends in .npz, which is compressed", path=target)
    count, named = QueryCount(), False
    with counting(f"writing {target}") as report:

        def counted() -> Iterator[Lists]:
            nonlocal named
            for part in formats.blocks(source, **reader_options(source, columns, missing=missing)):
                yield part
                count.add(part.qid)
                named = part.feature_names is not None
                report("converting", count.n_rows)

        formats.write_blocks(counted(), target)
    if kind == "LETOR" and named:
        print_warning("a LETOR file has no place for the names of features, only for their numbers")
    return count.n_rows, count.n_queries


def _fill_folder(
    source: Path,
    target: Path,
    columns: InputColumns,
    missing: bool,
    dtype: str | None,
    sparse: bool | None,
) -> tuple[int, int]:
    from didyma.data import formats, letor, lists_folder

    check_folder(target, source, columns.group)
    reading = reader_options(source, columns, missing=missing)
    if formats.format_of(source) is letor:
        reading |= {"sparse": sparse} | ({} if dtype is None else {"dtype": dtype})
    parts = formats.blocks(source, **reading)
    with counting(f"writing {target}") as report:
        return lists_folder.write_blocks(parts, target, dtype=dtype, sparse=sparse, report=report)
