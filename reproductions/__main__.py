"""Every study, one after another, into docs/RESULTS.md.

    python -m reproductions              those whose code has changed since their section was made
    python -m reproductions --list       what is up to date, and how long each took
    python -m reproductions svmmap       one of them, in any case
    python -m reproductions --mark       run nothing; sections say which code has changed since

A run that was stopped goes on when it is started again: studies that are up to date are not run
again, and the long ones keep what they have computed. What a study says goes to
``build/reproductions/NAME.log``. Each takes less than an hour on two cores.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproductions import stamps
from reproductions.code import ROOT

RESULTS = ROOT / "docs" / "RESULTS.md"
LOGS = ROOT / "build" / "reproductions"


@dataclass(frozen=True)
class Study:
    """A module that writes sections of the page, and the options that it is run with."""

    module: str
    sections: tuple[str, ...]
    options: tuple[str, ...] = ()

    def command(self, data: Path) -> list[str]:
        """How it is run."""
        place = [] if self.module == "sparsemap_solvers" else ["--data", str(data)]
        run = [sys.executable, "-m", f"reproductions.{self.module}", *self.options]
        return [*run, *place, "--write"]

    def is_fresh(self, known: Mapping[str, Any]) -> bool:
        """Whether its sections were made by the code that is here."""
        return all(name in known and not stamps.changed(known[name]) for name in self.sections)


STUDIES = {
    "sparsemap-solvers": Study("sparsemap_solvers", ("sparsemap_solvers",)),
    "grades": Study("grades", ("grades",)),
    "additive": Study("additive", ("additive_judged", "additive_synthetic")),
    "measures": Study("measures", ("measures_mq2008", "measures_demo")),
    "svmmap": Study("svmmap", ("robust", "mq2008")),
    "precision": Study("latent_svm", ("latent_svm_precision",), ("--part", "precision")),
    "coreference": Study("latent_svm", ("latent_svm_coreference",), ("--part", "coreference")),
    "motif": Study("latent_svm", ("latent_svm_motif",), ("--part", "motif")),
    "latent-reranking": Study("latent_reranking", ("latent_reranking",)),
    "latent-reranking-extended": Study(
        "latent_reranking", ("latent_reranking_extended",), ("--features", "extended")
    ),
    "latent-reranking-cnn": Study(
        "latent_reranking",
        ("latent_reranking_cnn",),
        ("--features", "cnn", "--cache", str(LOGS / "cnn")),
    ),
    "passage-vectors": Study("passage_vectors", ("passage_vectors",)),
    "low-rank": Study("low_rank", ("low_rank",)),
    "parsing": Study("sparsemap_models", ("sparsemap_parsing",), ("--part", "parsing")),
    "alignment": Study(
        "sparsemap_models", ("sparsemap_alignment",), ("--part", "nli", "--seeds", "5")
    ),
    "rerank": Study("rerank", ("rerank_home", "rerank_verdicts", "rerank_abroad", "rerank_curve")),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the number of studies that failed."""
    parser = argparse.ArgumentParser(
        prog="python -m reproductions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say what is up to date")
    parser.add_argument("--mark", action="store_true", help="say it in the page")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", metavar="PATH"
    )
    options = parser.parse_args(arguments)
    known = stamps.read(RESULTS)
    if options.list:
        print("\n".join(state(name, study, known) for name, study in STUDIES.items()))
        return 0
    if options.mark:
        stamps.mark(RESULTS)
        return 0
    names = options.studies or [name for name in STUDIES if not STUDIES[name].is_fresh(known)]
    failed = [name for name in names if not run(name, options.data)]
    for name in failed:
        print(f"{name}: failed, see {LOGS / name}.log", file=sys.stderr)
    return len(failed)


def state(name: str, study: Study, known: Mapping[str, Any]) -> str:
    """A line on a study."""
    made = [known[section] for section in study.sections if section in known]
    if not made:
        return f"{name:<22} never run"
    since = sorted({module for stamp in made for module in stamps.changed(stamp)})
    times = [stamp["minutes"] for stamp in made if stamp["minutes"] is not None]
    took = f"{max(times):g} minutes" if times else "time not kept"
    fresh = f"{len(since)} modules have changed since" if since else "up to date"
    return f"{name:<22} {made[0]['commit']:<9} {took:<14} {fresh}"


def run(name: str, data: Path) -> bool:
    """Run a study in a process of its own; whether it went well."""
    LOGS.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    print(f"{name}: begun, says how far it is in {LOGS / name}.log", file=sys.stderr, flush=True)
    with (LOGS / f"{name}.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            STUDIES[name].command(data), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    minutes = (time.monotonic() - start) / 60
    print(f"{name}: {minutes:.1f} minutes, exit code {done.returncode}", file=sys.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
