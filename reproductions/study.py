"""What the command lines of all studies have in common: options, progress, errors, sections."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from didyma.errors import DataError, MissingExtraError
from didyma.files import replace_when_done
from reproductions import stamps
from reproductions.stamps import ROOT

__all__ = ["RESULTS", "ROOT", "Arguments", "percent", "publish", "save_figure", "say", "write_json"]

RESULTS = ROOT / "docs" / "RESULTS.md"

_begun = time.monotonic()


class Arguments(argparse.ArgumentParser):
    """The parser of a study: ``--data``, ``--write``, and those of the options below that it has.

    ``--write`` needs a run without ``--quick``, and one of all parts where these share a section.
    """

    OPTIONS: Mapping[str, Mapping[str, Any]] = {
        "cache": {"type": Path, "metavar": "FOLDER", "help": "keep results, and go on from them"},
        "json": {"type": Path, "metavar": "PATH", "help": "write all figures"},
        "plot": {"type": Path, "metavar": "PATH", "help": "draw the figure: SVG, PNG, PDF"},
        "quick": {"action": "store_true", "help": "a look in minutes: less data, fewer parameters"},
        "seed": {"type": int, "default": 0},
        "seeds": {"type": int, "default": 3, "metavar": "N", "help": "runs of each model"},
    }

    def __init__(
        self,
        description: str | None,
        *options: str,
        parts: Iterable[str] = (),
        one_section: bool = False,
    ) -> None:
        super().__init__(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.parts, self.one_section = tuple(parts), one_section
        if self.parts:
            self.add_argument("--part", choices=[*self.parts, "all"], default="all")
        for name in options:
            self.add_argument(f"--{name}", **self.OPTIONS[name])
        folder = ROOT.parent / "shared" / "data"
        self.add_argument("--data", type=Path, default=folder, metavar="FOLDER")
        self.add_argument("--write", action="store_true", help="rewrite our part of docs/")

    def run(
        self, arguments: Sequence[str] | None, reproduce: Callable[[argparse.Namespace], None]
    ) -> int:
        """Reproduce what the arguments ask for; returns the exit code."""
        options = self.parse_args(arguments)
        for name, least in (("seed", 0), ("seeds", 1)):
            if getattr(options, name, least) < least:
                self.error(f"--{name}: expected {least} or more")
        if options.write and getattr(options, "quick", False):
            self.error("--write: expected a whole run, without --quick")
        if self.parts:
            if options.write and self.one_section and options.part != "all":
                self.error("--write: expected a whole run, without --part")
            options.parts = self.parts if options.part == "all" else (options.part,)
        try:
            reproduce(options)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0


def say(what: str) -> None:
    """Progress on standard error, with the minutes since the start."""
    minutes = (time.monotonic() - _begun) / 60
    print(f"[{minutes:5.1f} min] {what}", file=sys.stderr, flush=True)


def percent(shares: Sequence[float]) -> str:
    """The mean of shares in percent, with their standard deviation where there are several."""
    text = f"{100 * np.mean(shares):.2f}"
    return f"{text} ± {100 * np.std(shares, ddof=1):.2f}" if len(shares) > 1 else text


def publish(
    options: argparse.Namespace,
    sections: Mapping[str, str],
    results: Any = None,
    *,
    seed: int | str | None = 0,
) -> None:
    """Print sections, put them into docs/RESULTS.md and results into JSON where that is asked."""
    for text in sections.values():
        print(f"{text}\n")
    if results is not None:
        write_json(options, results)
    if options.write:
        stamps.write(RESULTS, sections, seed=seed)


def write_json(options: argparse.Namespace, results: Any) -> None:
    """All figures, where ``--json`` says."""
    if options.json:
        with replace_when_done(options.json) as file:
            json.dump(results, file, indent=1)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib; the same figure gives the same file."""
    from matplotlib import rc_context

    metadata = {"Date": None} if path.suffix == ".svg" else None
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata=metadata)
