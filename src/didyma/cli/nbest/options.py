"""Options that the commands of `didyma nbest` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from didyma.cli.compare import Test

DATA = "N-best lists: JSON lines, or Moses style (id ||| text ||| features ||| total)."
LISTS = "Lists"
FEATURES = "Features"


class ModelName(StrEnum):
    """Which model learns."""

    low_rank = "low-rank"
    boosting = "boosting"
    ridge_boosting = "ridge-boosting"
    svm = "svm"
    perceptron = "perceptron"
    latent_perceptron = "latent-perceptron"


class LossName(StrEnum):
    """How a loss comes from a reference."""

    auto = "auto"
    hamming = "hamming"
    edit = "edit"


class FeatureSet(StrEnum):
    """Joint features."""

    auto = "auto"
    suffix = "suffix"
    n_gram = "n-gram"
    text = "text"


class View(StrEnum):
    """What the low-rank model sees of a text."""

    auto = "auto"
    suffixes = "suffixes"
    n_grams = "n-grams"
    characters = "characters"
    vectors = "vectors"


Data = Annotated[Path, typer.Argument(metavar="DATA", help=DATA)]
Train = Annotated[Path, typer.Argument(metavar="TRAIN", help=DATA)]
Inputs = Annotated[
    Path | None,
    typer.Option(
        "--inputs", metavar="FILE", rich_help_panel=LISTS, help="Inputs, a line for each list."
    ),
]
References = Annotated[
    Path | None,
    typer.Option(
        "--references",
        metavar="FILE",
        rich_help_panel=LISTS,
        help="Reference outputs, a line for each list.",
    ),
]
DevInputs = Annotated[
    Path | None,
    typer.Option("--dev-inputs", metavar="FILE", rich_help_panel=LISTS, help="Those of --dev."),
]
DevReferences = Annotated[
    Path | None,
    typer.Option("--dev-references", metavar="FILE", rich_help_panel=LISTS, help="Those of --dev."),
]
LossColumn = Annotated[
    str,
    typer.Option(
        "--loss-column",
        metavar="NAME",
        rich_help_panel=LISTS,
        help="Field or feature of a candidate that holds its loss.",
    ),
]
Loss = Annotated[
    LossName,
    typer.Option(
        "--loss",
        rich_help_panel=LISTS,
        help="How losses come from references where candidates have none: wrong tokens, or edit "
        "distance over the longer length. auto counts wrong tokens if all lengths agree.",
    ),
]
Joint = Annotated[
    FeatureSet,
    typer.Option(
        "--features",
        rich_help_panel=FEATURES,
        help="Joint features, for all models but low-rank. suffix and n-gram need candidates as "
        "long as their input.",
    ),
]
InputView = Annotated[
    View,
    typer.Option("--input-view", rich_help_panel=FEATURES, help="What low-rank sees of inputs."),
]
OutputView = Annotated[
    View,
    typer.Option("--output-view", rich_help_panel=FEATURES, help="What it sees of outputs."),
]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count", min=1, rich_help_panel=FEATURES, help="How often a feature must occur."
    ),
]
Significance = Annotated[Test, typer.Option("--test", help="Two-tailed paired test.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma nbest fit has saved.")
]
Dev = Annotated[
    Path | None,
    typer.Option("--dev", metavar="FILE", help="Other lists, to choose weight and parameters by."),
]
