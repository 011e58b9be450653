"""`didyma inspect`: what a model or a data file holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.inputs import InputColumns, is_model, read_data
from didyma.cli.output import aligned, check_output, listed, print_json
from didyma.errors import DataError

__all__ = ["inspect"]


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A saved model, or data.")],
    top: Annotated[
        int, typer.Option("--top", min=0, metavar="K", help="How many weights of a model.")
    ] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw the functions of a model with --bins into a .png, .svg or .pdf.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="With --plot: results, to say how many queries each function reorders.",
        ),
    ] = None,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
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
    """
    columns = InputColumns(label, qid, docid, group)
    if data is not None and plot is None:
        raise typer.BadParameter("needs --plot", param_hint="--data")
    check_output(plot, file, data)
    if is_model(file):
        found = _model(file, top)
        text = _model_text(found)
        if plot is not None:
            _plot(file, plot, data, columns)
    elif plot is not None:
        raise DataError("expected a model, whose functions could be drawn", path=file)
    else:
        found = _data(file, columns)
        text = listed(_readable(found))
    if as_json:
        print_json(found)
    else:
        typer.echo(text)


def _model(path: Path, top: int) -> dict[str, Any]:
    from didyma.model import Model

    model = Model.read(path)
    found = {"file": str(path), **model.describe(), "weights": []}
    if model.name == "AdditiveSVMRanker":
        if len(model.steps) == 1:
            found["importances"] = _importances(model.estimator)[:top]
        return found
    learned = model
    if model.name == "TextReranker":
        learned = model.estimator.model_
        found["n_features"] = learned.features.count
        found["parameters"] = found["state"]["parameters"]
        tried = len(model.estimator.trials_)
        found["summary"] |= {"verdict": str(model.estimator.gate_), "ways_tried": tried}
    weights = sorted(learned.weights.items(), key=lambda item: -abs(item[1]))
    for name, weight in weights[:top]:
        if weight != 0:
            found["weights"].append({"feature": name, "weight": weight})
    return found


def _feature_names(ranker: Any) -> list[str]:
    from didyma.data.columns import Columns

    return Columns.of(ranker).labels


def _importances(ranker: Any) -> list[dict[str, Any]]:
    """Features and pairs of an additive ranker that add anything, the most important first."""
    import numpy as np

    names = _feature_names(ranker)
    names += [f"{names[first]} × {names[second]}" for first, second in ranker.pairs_]
    values = np.concatenate([ranker.feature_importances_, ranker.pair_importances_])
    order = [k for k in np.argsort(-values, kind="stable") if values[k] > 0]
    return [{"feature": names[k], "importance": float(values[k])} for k in order]


def _plot(path: Path, plot: Path, data: Path | None, columns: InputColumns) -> None:
    from didyma import model
    from didyma.report.functions import write_functions

    ranker = model.load(path)
    if not hasattr(ranker, "tables_"):
        raise DataError("expected a model that was fitted with --bins", path=path)
    changed = None
    if data is not None:
        rows = read_data(data, columns, like=ranker, judged=False)
        changed = ranker.changed_orders(rows.X, rows.qid)
    write_functions(ranker, plot, names=_feature_names(ranker), changed=changed)


def _model_text(found: Mapping[str, Any]) -> str:
    parts = [part for _, part in found["steps"]] if "steps" in found else [found]
    head = {
        "file": found["file"],
        "class": " > ".join(part["class"] for part in parts),
        **({} if parts[0]["n_features"] is None else {"features": parts[0]["n_features"]}),
        "written by": f"didyma {found['library_version']}, format {found['format_version']}",
    }
    sections = [listed(head)]
    for part in parts:
        if part["parameters"]:
            given = {name: str(value) for name, value in part["parameters"].items()}
            sections.append(f"parameters of {part['class']}\n" + listed(given, indent="  "))
    if summary := _readable(found["summary"]):
        sections.append("training\n" + listed(summary, indent="  "))
    if found["weights"]:
        rows = [[weight["feature"], f"{weight['weight']:+.4f}"] for weight in found["weights"]]
        sections.append("largest weights\n" + aligned(rows, indent="  "))
    if importances := found.get("importances"):
        rows = [[each["feature"], f"{each['importance']:.4f}"] for each in importances]
        sections.append("most important\n" + aligned(rows, indent="  "))
    return "\n\n".join(sections)


def _data(path: Path, columns: InputColumns) -> dict[str, Any]:
    import numpy as np

    data = read_data(path, columns)
    groups, relevant = data.groups, data.y >= 1
    dense = isinstance(data.X, np.ndarray)
    positives = np.bincount(groups.codes, weights=relevant, minlength=len(groups))
    stored = np.count_nonzero(data.X) if isinstance(data.X, np.ndarray) else data.X.count_nonzero()
    labels, counts = np.unique(data.y, return_counts=True)
    return {
        "file": str(path),
        "rows": len(data),
        "queries": len(groups),
        "features": data.X.shape[1],
        "feature_names": None if data.feature_names is None else list(data.feature_names),
        "storage": "dense" if dense else "sparse",
        "density": round(float(stored / max(1, data.X.shape[0] * data.X.shape[1])), 6),
        "labels": {f"{label:g}": int(count) for label, count in zip(labels, counts)},
        "rows_per_query": {
            "min": int(groups.sizes.min()),
            "median": float(np.median(groups.sizes)),
            "max": int(groups.sizes.max()),
        },
        "queries_without_relevant": int(np.sum(positives == 0)),
        "queries_without_other": int(np.sum(positives == groups.sizes)),
        "document_ids": data.docid is not None,
        "duplicate_document_ids": _duplicates(data.qid, data.docid),
    }


def _duplicates(qid: Any, docid: Any) -> int:
    """Rows whose document their query has had before; rows without an id do not count."""
    from didyma.data.text_columns import distinct

    if docid is None:
        return 0
    ids = docid.astype(str)
    named = ids != ""
    _, first = distinct(qid.astype(str)[named], ids[named])
    return int(named.sum()) - len(first)


def _readable(found: Mapping[str, Any]) -> dict[str, str]:
    """Names and values for people; what is missing is left out, and what only machines want."""

    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{key}: {text(item)}" for key, item in value.items())
        if isinstance(value, list):
            return ", ".join(map(text, value))
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    return {
        name.replace("_", " "): text(value)
        for name, value in found.items()
        if value is not None and name != "candidates"
    }
