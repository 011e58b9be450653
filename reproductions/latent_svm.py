"""Yu and Joachims (2009), "Learning structural SVMs with latent variables": three applications.

    python -m reproductions.latent_svm                     everything, about an hour on one core
    python -m reproductions.latent_svm --part precision    one of the parts below
    python -m reproductions.latent_svm --quick             a look at all of them, some minutes
    python -m reproductions.latent_svm --write             put the tables into docs/RESULTS.md

The parts stand in latent_svm_precision.py, latent_svm_coreference.py and latent_svm_motif.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from reproductions import study


@dataclass(frozen=True)
class Part:
    """A module with ``run`` and ``table``, the folder of its data, and how to make it short.

    ``section`` of docs/RESULTS.md is named after the module unless another name is given;
    ``usual`` are options of every run.
    """

    module: str
    folder: Path
    quick: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    usual: Mapping[str, Any] = field(default_factory=dict)

    def run(self, data: Path, quick: bool) -> dict[str, Any]:
        """All figures."""
        options = {**self.usual, **(self.quick if quick else {})}
        found: dict[str, Any] = self._function("run")(data / self.folder, **options)
        return found

    def table(self, results: Mapping[str, Any]) -> str:
        """The figures as Markdown."""
        return str(self._function("table")(results))

    def _function(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(f"reproductions.{self.module}"), name)
        return function


QUICK_PRECISION = {"ks": (1, 5), "Cs": (1.0, 100.0, 1e4), "n_folds": 2, "n_random": 1}
QUICK_MOTIF = {"lengths": (11,), "n_folds": 3, "n_run": 2, "n_seeds": 2, "multiples": (0.1,)}
# The ramp bound, whose path is most of the time, is not the paper's.
PAPER_ROWS = ("latent SVM", "initial weights", "initial classifier, C by P@k", "RankSVM")
PARTS = {
    "precision": Part("latent_svm_precision", Path("mq2008"), QUICK_PRECISION),
    "ohsumed": Part(
        *("latent_svm_precision", Path("ohsumed"), QUICK_PRECISION, "latent_svm_ohsumed"),
        {"n_random": 1, "names": PAPER_ROWS, "cache": study.ROOT / "build" / "ohsumed"},
    ),
    "coreference": Part(
        "latent_svm_coreference",
        Path("litbank", "coref", "conll"),
        {"n_documents": 20, "Cs": (0.1, 1.0), "correlation_Cs": (10.0,), "seeds": (0,)},
    ),
    "motif": Part(
        "latent_svm_motif", Path(), QUICK_MOTIF, usual={"cache": study.ROOT / "build" / "motif"}
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    return study.Arguments(__doc__, "quick", "json", parts=PARTS).run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print and write the tables of each when it is done."""
    results: dict[str, Any] = {}
    for name in options.parts:
        part = PARTS[name]
        results[name] = part.run(options.data, options.quick)
        study.publish(options, {part.section or part.module: part.table(results[name])})
    study.write_json(options, results)


if __name__ == "__main__":
    raise SystemExit(main())
