"""Niculae, Martins, Blondel and Cardie (2018), "SparseMAP": its two applications in networks.

    python -m reproductions.sparsemap_models                  everything, about an hour on one core
    python -m reproductions.sparsemap_models --part parsing   one of parsing and nli
    python -m reproductions.sparsemap_models --quick          a look at both, some minutes
    python -m reproductions.sparsemap_models --full           all data and the paper's sizes, days
    python -m reproductions.sparsemap_models --write          put the tables into docs/RESULTS.md

The parts stand in sparsemap_parsing.py and sparsemap_alignment.py. Every model that was trained
is remembered in the folder --cache, so a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from didyma.errors import DataError
from reproductions import stamps

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "RESULTS.md"

# Modules with ``run(options)``, which returns sections of the document by their names.
PARTS = {"parsing": "sparsemap_parsing", "nli": "sparsemap_alignment"}
Run = Callable[[argparse.Namespace], Mapping[str, str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="little data, few epochs")
    size.add_argument("--full", action="store_true", help="all data, the sizes of the paper")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each model")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", metavar="PATH"
    )
    parser.add_argument(
        "--cache", type=Path, default=ROOT / "build", metavar="PATH", help="folder of results"
    )
    parser.add_argument(
        "--write", action="store_true", help="rewrite the tables of docs/RESULTS.md"
    )
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        parser.error("--write: expected a longer run, without --quick")
    if options.seeds < 1:
        parser.error("--seeds: expected at least 1")
    try:
        for name, module in PARTS.items():
            if options.part in (name, "all"):
                reproduce(module, options)
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def reproduce(module: str, options: argparse.Namespace) -> None:
    """Run one part; print its sections, and write them if that is asked for."""
    run: Run = import_module(f"reproductions.{module}").run
    sections = run(options)
    for text in sections.values():
        print(f"{text}\n")
    if options.write:
        seeds = f"0 to {options.seeds - 1}"
        stamps.write(RESULTS, sections, seed=seeds)


if __name__ == "__main__":
    sys.exit(main())
