"""Indexes of tantivy."""

from __future__ import annotations

from pathlib import Path

import pytest

from didyma.errors import DataError
from didyma.text.retrieval import resolve
from tests.text.retrieval.passages import PASSAGES

tantivy = pytest.importorskip("tantivy", reason="tantivy is not installed")


def test_passages_that_an_index_stores(tmp_path: Path) -> None:
    builder = tantivy.SchemaBuilder()
    for name in ("id", "title", "body"):
        builder.add_text_field(name, stored=True)
    index = tantivy.Index(builder.build(), path=str(tmp_path))
    writer = index.writer()
    for name, title, body, _ in PASSAGES:
        writer.add_document(tantivy.Document(id=name, title=title, body=body))
    writer.commit()
    engine = resolve(f"tantivy:///{tmp_path}?text=title,body&id=id")
    found = engine.search("Jane Austen")
    assert [one.id for one in found] == ["emma", "odd"]
    assert found[0].text == "Emma A novel by Jane Austen about a matchmaker."
    assert engine.search('body:" (') is not None
    with pytest.raises(DataError, match="tantivy says"):
        resolve(f"tantivy:///{tmp_path}?text=none")
    with pytest.raises(DataError, match=r"expected the field that is searched: \?text=NAME"):
        resolve(f"tantivy:///{tmp_path}")
