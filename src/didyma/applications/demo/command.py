"""`didyma demo`: the whole path on text that is on every machine."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from didyma import cli
from didyma.cli import options

N_ANSWERS, N_PASSAGES, WIDTH = 2, 3, 72


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

    Queries are its topics, candidates come from BM25. A reranker learns from
    some of the topics to put the right passages first, is compared with BM25 on
    the others, and is saved in one file. Needs the extra "report" and less than
    a minute.

    [bold]Example[/bold]

    didyma demo -o demo
    """
    with cli.waiting("learning from the language reference"):
        from didyma.applications.demo.demonstration import OURS, run

        result = run(output, random_state=seed, report=cli.print_message)
    if as_json:
        files = {name: str(path) for name, path in result.files.items()}
        cli.print_json(result.table.to_dict() | {"files": files})
        return
    cli.print_table(result.table)
    for answer in result.answers[:N_ANSWERS]:
        typer.echo(f"\n{answer.query}")
        for passage in answer.rankings[OURS][:N_PASSAGES]:
            mark = "+" if passage.relevant else "-"
            moved = f"{passage.rank} (was {passage.other_rank})"
            text = textwrap.shorten(passage.text, WIDTH, placeholder=" …")
            typer.echo(f"{mark} {moved:<11} {text}")
    typer.echo(f"\nreport: {result.files['report']}")
    typer.echo("\nnext:\n" + "\n".join(f"  {step}" for step in result.next_steps))
