"""`didyma export`: an additive model as trees that other engines load."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from didyma.cli.output import check_output, say
from didyma.errors import ModelFileError

__all__ = ["export"]


class Format(StrEnum):
    """Whose model files are written."""

    lightgbm = "lightgbm"
    xgboost = "xgboost"


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model fitted with --bins.")],
    format: Annotated[
        Format, typer.Option("--format", help="LightGBM's text or XGBoost's JSON.")
    ] = Format.lightgbm,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the trees are written.")
    ] = Path("model.txt"),
) -> None:
    """Write an additive model as trees, which LightGBM or XGBoost loads.

    Each feature's step function is a small tree, and so is each pair. Scores are
    those of the model: to the last digits in LightGBM, in single precision in
    XGBoost.

    [bold]Examples[/bold]

    didyma export model.didyma.safetensors --format xgboost -o model.json
    """
    check_output(output, model)

    from didyma import model as files
    from didyma.estimators import trees
    from didyma.estimators.additive import AdditiveSVMRanker

    ranker = files.load(model)
    if not isinstance(ranker, AdditiveSVMRanker):
        raise ModelFileError(
            f"{model}: holds a {type(ranker).__name__}; only a model fitted with --bins, and "
            "without --scale, is a sum of trees"
        )
    trees.export(ranker, output, format.value)
    say(f"{output}: a model for {format.value}")
