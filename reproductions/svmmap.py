"""Yue, Finley, Radlinski and Joachims (2007), "A support vector method for optimizing average
precision": their comparison of SVMs that learn to combine retrieval functions.

    python -m reproductions.svmmap                     everything, an hour or two of one core
    python -m reproductions.svmmap --part functions    one of the parts
    python -m reproductions.svmmap --write             put the tables into docs/RESULTS.md

Part "robust" follows the paper's protocol on the runs of the TREC 2003 Robust track, "functions" on
retrieval functions of our own over two collections (`svmmap_functions`). Part "mq2008" asks the
same questions of the five folds of LETOR's MQ2008.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from didyma.errors import DataError
from reproductions import study
from reproductions.svmmap_functions import reproduce_functions
from reproductions.svmmap_models import LETOR_MODELS, REFERENCE, ROBUST_MODELS, YUE_MODELS, Model
from reproductions.svmmap_mq2008 import mq2008_tables, reproduce_mq2008
from reproductions.svmmap_trials import reproduce_robust, trial_tables

TABLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "robust": trial_tables,
    "functions": trial_tables,
    "mq2008": mq2008_tables,
}


def select(models: Sequence[Model], names: Sequence[str] | None) -> list[Model]:
    """Models by name, all without names; SVMmap is always among them."""
    return [m for m in models if names is None or m.name in (REFERENCE, *names)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "seed", "json", parts=TABLES)
    parser.add_argument("--trials", type=int, default=50, help="tens keep the roles balanced")
    names = sorted({model.name for model in (*ROBUST_MODELS, *LETOR_MODELS)})
    parser.add_argument("--models", nargs="+", choices=names, help="SVMmap and these only")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print their tables, and write what was asked for."""
    if options.trials < 1:
        raise DataError("--trials: expected at least 1")
    results: dict[str, Any] = {}
    if "robust" in options.parts:
        models = select(ROBUST_MODELS, options.models)
        folder = options.data / "robust03"
        results["robust"] = reproduce_robust(folder, models, options.trials, options.seed)
    if "functions" in options.parts:
        models = select(YUE_MODELS, options.models)
        folder = options.data / "rerank"
        results["functions"] = reproduce_functions(folder, models, options.trials, options.seed)
    if "mq2008" in options.parts:
        models = select(LETOR_MODELS, options.models)
        results["mq2008"] = reproduce_mq2008(options.data / "mq2008", models)
    sections = {part: TABLES[part](found) for part, found in results.items()}
    study.publish(options, sections, results, seed=options.seed)


if __name__ == "__main__":
    raise SystemExit(main())
