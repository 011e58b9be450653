"""Run benchmarks: ``python -m benchmarks [--only NAME ...] [--peers] [--write] [--json FILE]``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import document
from benchmarks.row import Row
from didyma.files import replace_when_done

BENCHMARKS = (
    *("passes", "fits", "additive", "oracle", "scaling", "memory", "letor_reader", "sparsemap"),
    *("latent", "hypergraph", "local", "structures", "structure_kernels", "layers", "decisions"),
    *("lp_sparsemap", "peers", "equal_measure", "certified", "whole", "threads", "tagger"),
    *("low_rank", "boosting", "parser", "esim", "passage", "text_features", "rerank", "search"),
    *("serve", "startup", "before", "cluster"),
)
# These install other libraries, or train them for minutes.
WITH_PEERS = {
    "before",
    "structure_kernels",
    "layers",
    "decisions",
    "lp_sparsemap",
    "peers",
    "equal_measure",
    "whole",
    "tagger",
    "low_rank",
    "parser",
    "search",
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    console = Console()
    names = options.only or [name for name in BENCHMARKS if name not in WITH_PEERS or options.peers]
    results: dict[str, list[Row]] = {}
    for name in names:
        module = import_module(f"benchmarks.{name}")
        start = time.perf_counter()
        results[name] = module.run()
        title = f"{name} ({time.perf_counter() - start:.0f} s)"
        console.print(_table(title, module.__doc__ or "", results[name]))
        if options.write:  # at once: a later benchmark may fail
            document.write({name: results[name]})
            if hasattr(module, "write_page"):
                module.write_page(results[name])
    judged = [row.ok for rows in results.values() for row in rows if row.ok is not None]
    console.print(f"{sum(judged)} of {len(judged)} targets met")
    if options.json:
        with replace_when_done(options.json) as file:
            json.dump({name: [_plain(row) for row in rows] for name, rows in results.items()}, file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS)
    )
    parser.add_argument(
        "--peers", action="store_true", help="also against LightGBM, lap and others (takes minutes)"
    )
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/BENCHMARKS.md"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file")
    return parser


def _table(title: str, caption: str, rows: Sequence[Row]) -> Table:
    table = Table(title=title, caption=caption.split("\n\n")[0].replace("\n", " "))
    for column in ("", "figure", "unit", "target", ""):
        table.add_column(column, justify="right" if column == "figure" else "left")
    colours = {True: "green", False: "red", None: ""}
    for row in rows:
        verdict = f"[{colours[row.ok]}]{row.verdict}[/]" if row.verdict else ""
        table.add_row(row.name.replace("[", r"\["), row.figure, row.unit, row.target, verdict)
    return table


def _plain(row: Row) -> dict[str, Any]:
    fields = dataclasses.asdict(row)
    return fields | {"value": None if math.isnan(row.value) else row.value}


if __name__ == "__main__":
    main()
