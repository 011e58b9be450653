"""Build an index of a peer, ask it, and print what that took; run by `benchmarks.search`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def bm25s(texts: list[str], folder: Path, k: int) -> Callable[[str], Any]:
    import bm25s as package

    index = package.BM25(backend="numba")
    index.index(package.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    index.save(folder)

    def ask(query: str) -> Any:
        tokens = package.tokenize(query, stopwords="en", show_progress=False)
        return index.retrieve(tokens, k=min(k, len(texts)), show_progress=False)

    return ask


def tantivy(texts: list[str], folder: Path, k: int) -> Callable[[str], Any]:
    import tantivy as package

    schema = package.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    schema.add_unsigned_field("place", stored=True)
    folder.mkdir()
    index = package.Index(schema.build(), path=str(folder))
    writer = index.writer(500_000_000, num_threads=1)
    for place, text in enumerate(texts):
        writer.add_document(package.Document(text=text, place=place))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    return lambda query: searcher.search(index.parse_query(query, ["text"]), k).hits


def main() -> None:
    peer, source, queries, folder, k = sys.argv[1:]
    began = time.perf_counter()
    with open(source) as file:
        texts = [line.rstrip("\n").partition("\t")[2] for line in file]
    ask = {"bm25s": bm25s, "tantivy": tantivy}[peer](texts, Path(folder), int(k))
    seconds = time.perf_counter() - began
    milliseconds: list[float] = []
    for _ in range(2):
        milliseconds = []
        for query in Path(queries).read_text().splitlines():
            began = time.perf_counter()
            ask(query)
            milliseconds.append(1e3 * (time.perf_counter() - began))
    size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    print(json.dumps({"seconds": seconds, "milliseconds": milliseconds, "bytes": size}))


if __name__ == "__main__":
    main()
