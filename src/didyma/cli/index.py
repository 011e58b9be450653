"""`didyma index`: texts that can be searched."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from didyma.cli import options
from didyma.cli.indexing import Language, described, indexing, spoken
from didyma.cli.output import print_json, say

__all__ = ["index"]


def index(
    passages: Annotated[
        Path,
        typer.Argument(
            metavar="PASSAGES",
            help="JSON lines, a table (.csv, .tsv, .parquet) with a column passage or text, lines "
            "of an id, a tab and a text, a folder as of BEIR, a text (.txt, .md, .rst) or a folder "
            "of such.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where the index is made; one that is there is replaced when it is complete.",
            show_default="PASSAGES.index",
        ),
    ] = None,
    language: Language = "auto",
    check: Annotated[
        bool,
        typer.Option("--check", help="PASSAGES is an index: compare it with its checksums."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Index texts, so that they can be searched.

    Texts and markdown are cut into passages of at most 200 words, at headings
    and between paragraphs. The index is a folder of plain arrays and JSON that
    holds the passages as well, and is mapped into memory when it is opened.

    [bold]Examples[/bold]

    didyma index passages.jsonl -o passages.index

    didyma index notes/ -o notes.index

    didyma ask notes.index "how do I install it?"

    didyma index --check notes.index
    """
    from didyma.text.index import PassageIndex

    began = time.perf_counter()
    if check:
        if output is not None:
            raise typer.BadParameter("nothing is made by --check", param_hint="--output")
        found = PassageIndex.open(passages)
        found.verify()
    else:
        folder = output or passages.with_name(f"{passages.name}.index")
        with indexing(passages) as callback:
            found = PassageIndex.build(
                passages, folder, language=spoken(language), callback=callback
            )
    seconds = time.perf_counter() - began
    if as_json:
        print_json(
            {
                "index": str(found.path),
                "passages": len(found),
                "language": found.language,
                "bytes": found.n_bytes,
                "wall_seconds": seconds,
            }
        )
    else:
        verb = "is as it was written" if check else "done"
        say(f"{found.path}: {verb}, {described(found)}, after {seconds:.1f} s")
