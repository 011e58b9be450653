"""A folder of a collection, read by the names of its files.

All files may be packed (``.gz``):

    queries.jsonl, .tsv                          text of each query
    corpus, collection, passages, documents      text of each passage, .jsonl or .tsv
    qrels/test.tsv, qrels.test.tsv, qrels.tsv    judgements
    candidates, run, top1000                     .tsv, .txt, .trec or none of these; may be absent
    split.tsv                                    qid and the part it belongs to; may be absent

with or without the name of a part (``run.dev.tsv``). So BEIR's folders and those of MS MARCO are
read, and with `read_files` any TREC collection. ``top1000`` has lines of qid, docid, query and
passage (`didyma.data.texts.msmarco`); all others are as in `didyma.data.texts.by_id` and
`didyma.data.trec`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from didyma.data.texts import by_id, msmarco
from didyma.data.texts.collection import TextCollection, files_of, read_files
from didyma.data.trec import Qrels
from didyma.errors import DataError
from didyma.files import PathName, format_suffix

PASSAGES = ("corpus", "collection", "passages", "documents")
CANDIDATES = ("candidates", "run", "top1000")
SUFFIXES = ("", ".tsv", ".jsonl", ".txt", ".trec")


def read_folder(
    folder: PathName,
    *,
    part: str | None = None,
    run: PathName | Sequence[PathName] | None = None,
    indexed: bool = False,
    fields: Collection[str] = (),
) -> TextCollection:
    """Read a folder whose files have the names above; ``part`` is its part, such as "test".

    ``run`` is a file of candidates elsewhere, or several. If passages are ``indexed`` elsewhere,
    neither they nor candidates are read. ``fields`` are as in `by_id.read_passages`.
    """
    root = Path(folder)
    queries = _found(root, ("queries",), part)
    passages = None if indexed else _found(root, PASSAGES, part)
    in_folder = _found(root, CANDIDATES, part)
    candidates = files_of(run) or ([] if in_folder is None else [in_folder])
    candidates = [] if indexed else candidates
    qrels = _qrels(root, part)
    whole = len(candidates) == 1 and msmarco.has_texts(candidates[0])
    for name, path in (("queries", queries), ("corpus", passages)):
        if path is None and not whole and not (indexed and name == "corpus"):
            raise DataError(f"expected a file {name}.jsonl or {name}.tsv", path=folder)
    collection = read_files(
        queries=queries,
        passages=passages,
        qrels=qrels,
        run=candidates,
        path=folder,
        fields=fields,
    )
    splits = _found(root, ("split",), None)
    if part is None or splits is None:
        return collection
    names = by_id.read(splits)
    texts = {name: text for name, text in collection.queries.items() if names.get(name) == part}
    if not texts:
        parts = ", ".join(dict.fromkeys(names.values()))
        raise DataError(f"expected one of {parts}, found {part!r}", path=splits, field="part")
    return replace(collection, queries=texts, qrels=_of(collection.qrels, texts))


def corpus_of(folder: PathName) -> Path | None:
    """The file of a folder that has its passages, if there is one."""
    file = _found(Path(folder), PASSAGES, None)
    return file if file and format_suffix(file) in (".tsv", ".jsonl") else None


def _found(root: Path, names: Sequence[str], part: str | None) -> Path | None:
    """The first file that is there under one of these names."""
    for name in names:
        for stem in (name,) if part is None else (f"{name}.{part}", name):
            for suffix in SUFFIXES:
                for packed in ("", ".gz"):
                    if (path := root / f"{stem}{suffix}{packed}").is_file():
                        return path
    return None


def _qrels(root: Path, part: str | None) -> Path | None:
    """The judgements of a part; without one, those that are there if there are no others."""
    if (file := _found(root, ("qrels",), part)) is not None:
        return file
    folder = root / "qrels"
    if folder.is_dir():
        parts = {path.name.partition(".")[0]: path for path in sorted(folder.iterdir())}
    else:
        parts = {path.name.split(".")[1]: path for path in sorted(root.glob("qrels.*.*"))}
    if part is None and len(parts) == 1:
        (only,) = parts.values()
        return only
    if parts and part not in parts:
        expected = f"expected a part, one of {', '.join(parts)}"
        raise DataError(expected + ("" if part is None else f", found {part!r}"), path=root)
    return parts.get(part) if part is not None else None


def _of(qrels: Qrels | None, queries: dict[str, str]) -> Qrels | None:
    if qrels is None:
        return None
    is_kept = np.array([name in queries for name in qrels.qid.tolist()], bool)
    return Qrels(qrels.qid[is_kept], qrels.docid[is_kept], qrels.relevance[is_kept])
