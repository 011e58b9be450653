"""Yu and Joachims (2009), "Learning structural SVMs with latent variables": three applications.

    python -m reproductions.latent_svm                     everything, about an hour on one core
    python -m reproductions.latent_svm --part precision    one of precision, coreference and motif
    python -m reproductions.latent_svm --quick             a look at all three, some minutes
    python -m reproductions.latent_svm --write             put the tables into docs/RESULTS.md

The parts stand in latent_svm_precision.py, latent_svm_coreference.py and latent_svm_motif.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from didyma.errors import DataError
from didyma.files import replace_when_done
from reproductions import stamps

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "RESULTS.md"


@dataclass(frozen=True)
class Part:
    """A module with ``run`` and ``table``, the folder of its data, and how to make it short."""

    module: str
    folder: Path
    quick: Mapping[str, Any] = field(default_factory=dict)
    talks: bool = True  # takes ``say``, a function that is told about progress

    def run(self, data: Path, quick: bool) -> dict[str, Any]:
        """All figures."""
        options = dict(self.quick) if quick else {}
        if self.talks:
            options["say"] = say
        found: dict[str, Any] = self._function("run")(data / self.folder, **options)
        return found

    def table(self, results: Mapping[str, Any]) -> str:
        """The figures as Markdown."""
        return str(self._function("table")(results))

    def _function(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(f"reproductions.{self.module}"), name)
        return function


PARTS = {
    "precision": Part(
        "latent_svm_precision",
        Path("mq2008"),
        {"ks": (1, 5), "Cs": (1.0, 100.0, 1e4), "n_folds": 2, "n_random": 1},
    ),
    "coreference": Part(
        "latent_svm_coreference",
        Path("litbank", "coref", "conll"),
        {"n_documents": 20, "Cs": (0.1, 1.0), "correlation_Cs": (10.0,), "seeds": (0,)},
    ),
    "motif": Part(
        "latent_svm_motif",
        Path(),
        {"lengths": (11,), "n_folds": 3, "n_seeds": 2, "Cs": (100.0,), "curve": (10.0,)},
        talks=False,
    ),
}


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="fewer folds, documents and values")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", metavar="PATH"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all figures")
    parser.add_argument(
        "--write", action="store_true", help="rewrite the tables of docs/RESULTS.md"
    )
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        parser.error("--write: expected a full run, without --quick")
    try:
        reproduce(options)
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print and write the tables of each when it is done."""
    results: dict[str, Any] = {}
    for name, part in PARTS.items():
        if options.part not in (name, "all"):
            continue
        results[name] = part.run(options.data, options.quick)
        text = part.table(results[name])
        print(f"{text}\n")
        if options.write:
            stamps.write(RESULTS, {part.module: text})
    if options.json:
        with replace_when_done(options.json) as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
