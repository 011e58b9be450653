"""Write a model for another engine, after a check that both score alike."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.exports.description import Description, describe_ranker
from didyma.exports.engine import Engine
from didyma.exports.parity import Parity, compare_scores, probe_rows
from didyma.exports.trees import at_most
from didyma.files import PathName, replace_when_done
from didyma.model import Model

# Where each engine is, by the name of its format.
ENGINES = {
    "elasticsearch": "elasticsearch.Elasticsearch",
    "elasticsearch-native": "elasticsearch.ElasticsearchNative",
    "json": "plain.PlainJson",
    "lightgbm": "lightgbm.LightGBM",
    "onnx": "onnx.Onnx",
    "solr": "solr.Solr",
    "vespa": "vespa.Vespa",
    "xgboost": "xgboost.XGBoost",
}
SHOWN = 3  # names in a note


@dataclass(frozen=True)
class Exported:
    """How scores compare, and notes for users of the file."""

    parity: Parity
    notes: tuple[str, ...]


def export(model: Any, path: PathName, format: str, data: Lists | None = None) -> Exported:
    """Write a ranker as a model of ``format``, whole or not at all.

    Before anything is written, rows are scored by the model and by what would be written, and a
    file that says anything else than the model is refused.

    Parameters
    ----------
    model : estimator, pipeline, Reranker or Model
        A linear or additive ranker, behind scalers or not. Of a `Reranker` it is the ranker over
        its features that is written: what loads the file must be given these.
    path : path
        The model is named after the file where models have names.
    format : str
        "elasticsearch" (its plug-in, also OpenSearch's), "elasticsearch-native", "json",
        "lightgbm", "onnx", "solr", "vespa" or "xgboost".
    data : Lists, optional
        Rows to compare scores of, in place of rows that are made from what the model knows.

    >>> import tempfile
    >>> from didyma.ranking.svm import SVMRanker
    >>> ranker = SVMRanker(C=1).fit([[3.0], [1.0]], [1, 0])
    >>> path = Path(tempfile.mkdtemp(), "linear.json")
    >>> export(ranker, path, "solr").parity.swapped
    0
    >>> '"name": "linear"' in path.read_text()
    True
    """
    engine = engine_of(format)
    ranker, notes = ranker_of(model)
    description = describe_ranker(ranker)
    names = engine.names(description.features)
    engine.check(description, names)
    contents = engine.render(description, names, _stem(path))
    if data is None:
        rows = probe_rows(description, engine, missing=ranker.allows_missing)
    else:
        rows = ranker.features.arrange(data)
    parity = compare_scores(ranker, description, engine, contents, rows)
    with replace_when_done(path, "wb") as file:
        file.write(contents)
    return Exported(parity, (*notes, *_notes(description, engine, names)))


def engine_of(format: str) -> Engine:
    """The engine that reads files of a format."""
    if format not in ENGINES:
        names = ", ".join(map(repr, ENGINES))
        raise DataError(f"expected one of {names}, found {format!r}", field="format")
    module, _, name = ENGINES[format].partition(".")
    engine: Engine = getattr(import_module(f"didyma.exports.{module}"), name)()
    return engine


def _stem(path: PathName) -> str:
    """The name of a file without its endings."""
    return Path(path).name.partition(".")[0] or "didyma"


def ranker_of(model: Any) -> tuple[Model, list[str]]:
    """The ranker over rows of a model, and notes on what the file does not do."""
    if isinstance(model, Model):
        if "state" not in model.record:
            return model, []
        model = model.estimator
    from didyma.text.features.part import IN_LIST
    from didyma.text.reranker import Reranker

    if not isinstance(model, Reranker):
        return Model.of(model), []
    ranker = model.model_
    names = [*(ranker.features.names or ())]
    notes = [f"whoever uses the file computes the features: {', '.join(names)}"]
    if within := [name for name in names if name.endswith(IN_LIST)]:
        notes.append(
            f"features that end in {IN_LIST.strip()!r} compare a passage with the others of its "
            f"query ({len(within)} of {len(names)})"
        )
    notes.append("scores are raw ones, of one window of a passage: calibration is not in the file")
    return ranker, notes


def _notes(description: Description, engine: Engine, names: list[str]) -> list[str]:
    notes = [engine.hint] if engine.hint else []
    columns = description.features.names
    if columns is None and engine.by_name:
        notes.append(f"columns have no names, so they are called {names[0]} to {names[-1]}")
    if renamed := [pair for pair in zip(columns or (), names) if pair[0] != pair[1]]:
        shown = _some([f"{old!r} is {new}" for old, new in renamed])
        notes.append(f"{engine.title} cannot hold the names of some columns: {shown}")
    edges = {edge for binning in description.binnings for edge in binning.edges}
    if moved := [edge for edge in edges if engine.place(edge) not in (edge, at_most(edge))]:
        furthest = max(abs(engine.place(edge) - edge) for edge in moved)
        notes.append(
            f"{engine.title} cannot hold {len(moved)} of {len(edges)} thresholds: they are moved "
            f"to the next number, by {furthest:.0e} at most"
        )
    if engine.refuses_negative and (below := [names[j] for j in description.negative_columns]):
        notes.append(
            f"{engine.title} refuses features below 0, which {_some(below)} can be: add a constant "
            "to these columns and train again"
        )
    if description.constant and not engine.adds_constant:
        notes.append(f"scores lack the constant {description.constant:.6g}, which changes no order")
    return notes


def _some(names: list[str]) -> str:
    """The first few names, and how many others there are."""
    others = f" and {len(names) - SHOWN} others" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + others
