"""Every study, one after another, into docs/RESULTS.md.

    python -m reproductions              all of them: hours
    python -m reproductions --list       what each was made with, and how long it took
    python -m reproductions svmmap       one of them

The long ones keep what they have computed, and go on from there when they are started again by the
same commit. What a study says goes to ``build/reproductions/NAME.log``. Each takes less than an
hour on two cores.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproductions import stamps
from reproductions.study import RESULTS, ROOT

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


STUDIES = {
    "sparsemap-solvers": Study("sparsemap_solvers", ("sparsemap_solvers",)),
    "operate": Study("operate", ("operate_promotion", "operate_power")),
    "grades": Study("grades", ("grades",)),
    "additive": Study("additive", ("additive_judged", "additive_synthetic", "additive_variants")),
    "measures": Study("measures", ("measures_mq2008", "measures_demo", "measures_trees")),
    "svmmap": Study("svmmap", ("robust", "functions", "mq2008")),
    "precision": Study("latent_svm", ("latent_svm_precision",), ("--part", "precision")),
    "ohsumed": Study("latent_svm", ("latent_svm_ohsumed",), ("--part", "ohsumed")),
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
    "latent-reranking-variants": Study("latent_reranking_variants", ("latent_reranking_variants",)),
    "passage-vectors": Study("passage_vectors", ("passage_vectors",)),
    "low-rank": Study("low_rank", ("low_rank", "low_rank_cantonese")),
    "parsing": Study("sparsemap_models", ("sparsemap_parsing",), ("--part", "parsing")),
    "alignment": Study(
        "sparsemap_models", ("sparsemap_alignment",), ("--part", "nli", "--seeds", "5")
    ),
    "alignment-sgd": Study(
        "sparsemap_models", ("sparsemap_alignment_sgd",), ("--part", "nli", "--sgd", "--seeds", "2")
    ),
    "decisions": Study(
        "decisions",
        ("decisions_warm_up", "decisions_shortest_path", "decisions_knapsack", "decisions_cost"),
        ("--problems", "shortest path", "knapsack", "--cache", str(LOGS / "decisions")),
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
    parser.add_argument("--list", action="store_true", help="say what was run when")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", metavar="PATH"
    )
    options = parser.parse_args(arguments)
    if options.list:
        known = stamps.read(RESULTS)
        for name, study in STUDIES.items():
            print(f"{name:<26}{known.get(study.sections[0]) or 'never run'}")
        return 0
    names = options.studies or list(STUDIES)
    failed = [name for name in names if not run(name, options.data)]
    for name in failed:
        print(f"{name}: failed, see {LOGS / name}.log", file=sys.stderr)
    return len(failed)


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
