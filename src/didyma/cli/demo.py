"""`didyma demo`: the whole path on text that is on every machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from didyma.cli import options
from didyma.cli.output import print_json, print_table, say, waiting

__all__ = ["demo"]


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where data, models and report go."),
    ] = Path("didyma-demo"),
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Which topics are held out for testing.")
    ] = 0,
    as_json: options.Json = False,
) -> None:
    """Learn to find passages of Python's own language reference, and write a
    report.

    Queries are its topics, candidates come from BM25; SVMmap, SVMroc and a
    classifier learn to rerank them. Needs the extra "report" and less than a
    minute.

    [bold]Example[/bold]

    didyma demo -o demo
    """
    with waiting("importing and compiling"):
        from didyma.demo import run

        result = run(output, random_state=seed, report=say)
    if as_json:
        files = {name: str(path) for name, path in result.files.items()}
        print_json(result.table.to_dict() | {"files": files})
        return
    print_table(result.table)
    typer.echo(f"\nreport: {result.files['report']}")
    if result.next_steps:
        typer.echo("\nnext:\n" + "\n".join(f"  {step}" for step in result.next_steps))
