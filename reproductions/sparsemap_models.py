"""Niculae, Martins, Blondel and Cardie (2018), "SparseMAP": its two applications in networks.

    python -m reproductions.sparsemap_models                  everything, about an hour on one core
    python -m reproductions.sparsemap_models --part parsing   one of parsing and nli
    python -m reproductions.sparsemap_models --quick          a look at both, some minutes
    python -m reproductions.sparsemap_models --full           all data and the paper's sizes, days
    python -m reproductions.sparsemap_models --part nli --sgd    our sizes, the paper's optimiser
    python -m reproductions.sparsemap_models --write          put the tables into docs/RESULTS.md

The parts stand in sparsemap_parsing.py and sparsemap_alignment.py. Every model that was trained
is remembered in the folder --cache, so a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from reproductions import study

# Modules with ``run(options)``, which returns sections of the document by their names.
PARTS = {"parsing": "sparsemap_parsing", "nli": "sparsemap_alignment"}
Run = Callable[[argparse.Namespace], Mapping[str, str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "quick", "seeds", parts=PARTS)
    parser.add_argument("--full", action="store_true", help="all data, the sizes of the paper")
    parser.add_argument(
        "--sgd",
        action="store_true",
        help="train nli by SGD, the paper's largest rate and its decay",
    )
    parser.add_argument(
        "--cache", type=Path, default=study.ROOT / "build", metavar="FOLDER", help="of results"
    )
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts; print the sections of each, and write them if that is asked for."""
    for part in options.parts:
        run: Run = import_module(f"reproductions.{PARTS[part]}").run
        study.publish(options, run(options), seed=f"0 to {options.seeds - 1}")


if __name__ == "__main__":
    raise SystemExit(main())
