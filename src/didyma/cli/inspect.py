"""`didyma inspect`: what a model or a data file holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.groups import command
from didyma.cli.inputs import COLUMNS, InputColumns, is_model, names_in, read_data
from didyma.cli.output import check_output, print_json
from didyma.errors import DataError
from didyma.report.table import aligned, listed


@command
def inspect(
    *,
    file: Annotated[Path, options.argument("FILE", "A saved model, or data.")],
    top: Annotated[int, options.number("How many weights of a model.", min=0, metavar="K")] = 10,
    plot: Annotated[
        Path | None,
        options.file("Draw the functions of a model with --bins into a .png, .svg or .pdf."),
    ] = None,
    data: Annotated[
        Path | None,
        options.file("With --plot: results, to say how many queries each function reorders."),
    ] = None,
    categorical: Annotated[
        str,
        options.text("FEATURES", "Those that hold categories, which may be texts.", panel=COLUMNS),
    ] = "",
    columns: InputColumns,
    as_json: options.Json = False,
) -> None:
    """Show what a model has learned, or what a data file holds.

    Of a model: class, parameters, how training went, and its largest weights,
    with their signs; of one with --bins, its most important functions. Of data:
    sizes, labels, and queries that training would skip.

    [bold]Examples[/bold]

    didyma inspect model.didyma.safetensors --top 20

    didyma inspect model.didyma.safetensors --plot functions.png --data dev.txt

    didyma inspect train.txt --json

    didyma inspect train.csv --categorical brand,colour
    """
    from didyma.report.inspection import data_summary, model_summary

    if data is not None and plot is None:
        raise typer.BadParameter("needs --plot", param_hint="--data")
    check_output(plot, file, data)
    if is_model(file):
        summary = model_summary(file, top)
        text = _model_text(summary)
        if plot is not None:
            _plot(file, plot, data, columns)
    elif plot is not None:
        raise DataError("expected a model, whose functions could be drawn", path=file)
    else:
        lists = read_data(file, columns, missing=True, categorical=names_in(categorical))
        lists.features.places(names_in(categorical), "--categorical")  # refuses other names
        summary = {"file": str(file), **data_summary(lists)}
        text = listed(_readable(summary))
    if as_json:
        print_json(summary)
    else:
        typer.echo(text)


def _plot(path: Path, plot: Path, data: Path | None, columns: InputColumns) -> None:
    from didyma import model
    from didyma.data.matrix import Columns
    from didyma.report.functions import write_functions

    ranker = model.load(path)
    if not hasattr(ranker, "tables_"):
        raise DataError("expected a model that was fitted with --bins", path=path)
    changed = None
    if data is not None:
        rows = read_data(data, columns, like=ranker, judged=False)
        changed = ranker.changed_orders(rows, rows.qid)
    write_functions(ranker, plot, names=Columns.of(ranker).labels, changed=changed)


def _model_text(record: Mapping[str, Any]) -> str:
    from didyma.model import ModelVersion

    parts = [part for _, part in record["steps"]] if "steps" in record else [record]
    head = {
        "file": record["file"],
        "class": " > ".join(part["class"] for part in parts),
        **({} if parts[0]["n_features"] is None else {"features": parts[0]["n_features"]}),
        "version": str(ModelVersion(**record["version"])),
        "written by": f"didyma {record['library_version']}, format {record['format_version']}",
        "size": _size(record["bytes"], record["bytes_of"]),
    }
    sections = [listed(head)]
    for part in parts:
        if part["parameters"]:
            values = {name: str(value) for name, value in part["parameters"].items()}
            sections.append(f"parameters of {part['class']}\n" + listed(values, indent="  "))
    if summary := _readable(record["summary"]):
        sections.append("training\n" + listed(summary, indent="  "))
    if record["weights"]:
        rows = [[weight["feature"], f"{weight['weight']:+.4f}"] for weight in record["weights"]]
        sections.append("largest weights\n" + aligned(rows, indent="  "))
    if importances := record.get("importances"):
        rows = [[each["feature"], f"{each['importance']:.4f}"] for each in importances]
        sections.append("most important\n" + aligned(rows, indent="  "))
    if errors := record.get("calibration"):
        numbers = ("log_loss", "brier", "error")
        rows = [["", "", "log loss", "Brier", "error"]]
        rows += [
            [error["of"], error["kind"], *(f"{error[n]:.4f}" for n in numbers)] for error in errors
        ]
        sections.append("calibration on held-out queries\n" + aligned(rows, indent="  "))
    return "\n\n".join(sections)


def _size(total: int, sizes: Mapping[str, int]) -> str:
    """Bytes of a file, and of the parts that are a tenth of it or more."""
    large = [f"{name} {size:,}" for name, size in sizes.items() if 10 * size >= total]
    return f"{total:,} bytes" + (f" ({', '.join(large)})" if large else "")


def _readable(values: Mapping[str, Any]) -> dict[str, str]:
    """Names and values for people; what is missing is left out, and what only machines want."""

    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{key}: {text(item)}" for key, item in value.items())
        if isinstance(value, list):
            return ", ".join(map(text, value))
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    return {
        name.replace("_", " "): text(value)
        for name, value in values.items()
        if value is not None and name != "candidates"
    }
