"""Indexes of tantivy, a search library in Rust."""

from __future__ import annotations

from typing import Any

from didyma.errors import DataError, MissingExtraError
from didyma.files import PathName
from didyma.text.retrieval.search_engine import Retrieved, SearchEngine


class TantivyEngine(SearchEngine):
    """Passages in an index of tantivy that stores them, found by its BM25.

    Parameters
    ----------
    path : path
        The folder of the index.
    text : str
        The field that is searched; several have commas between.
    id : str, optional
        The field with the id, if its name does not say so.
    """

    stages = ("bm25",)

    def __init__(self, path: PathName, *, text: str, id: str | None = None) -> None:
        try:
            import tantivy
        except ModuleNotFoundError:
            raise MissingExtraError("searching an index of tantivy", "tantivy") from None
        self.path, self.fields = path, text.split(",")
        self.roles = {"passage": text if len(self.fields) == 1 else None, "docid": id}
        try:
            self._index = tantivy.Index.open(str(path))
            self._index.parse_query_lenient("", self.fields)
        except ValueError as error:
            raise DataError(f"tantivy says: {error}", path=path) from None

    def retrieve(self, query: str, k: int) -> Retrieved:
        """Passages that have any word of the query, by BM25."""
        parsed, _ = self._index.parse_query_lenient(query, self.fields)
        self._index.reload()
        searcher = self._index.searcher()
        hits = searcher.search(parsed, k).hits
        rows = ((_record(searcher.doc(place)), score) for score, place in hits)
        return Retrieved.of(rows, "bm25", **self.roles)


def _record(document: Any) -> dict[str, Any]:
    """Fields of a document, which are lists of values."""
    return {
        name: values[0] if len(values) == 1 else values
        for name, values in document.to_dict().items()
    }
