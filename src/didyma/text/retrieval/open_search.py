"""OpenSearch and Elasticsearch over HTTP."""

from __future__ import annotations

from typing import Any

from didyma.errors import DataError
from didyma.text.endpoints import post_json
from didyma.text.retrieval.search_engine import EngineError, Retrieved, SearchEngine

KEY = "DIDYMA_SEARCH_KEY"
SECONDS = 10.0


class OpenSearchEngine(SearchEngine):
    """Passages in an index of OpenSearch or Elasticsearch, found by the query ``multi_match``.

    The key in the variable ``DIDYMA_SEARCH_KEY`` is sent as a bearer token, a name and a password
    in the address by basic authentication.

    Parameters
    ----------
    address : str
        With the name of the index: ``https://localhost:9200/notes``.
    text, id : str, optional
        Fields with text and id; ``text`` may be several with commas between, as the query has them
        (``title^2,body``), and is all fields if not given. The id is that of the document.
    """

    stages = ("score",)

    def __init__(self, address: str, *, text: str | None = None, id: str | None = None) -> None:
        self.address = address.rstrip("/")
        self.fields = [] if text is None else text.split(",")
        names = [field.partition("^")[0] for field in self.fields]
        self.roles = {"docid": id or "_id", "passage": names[0] if len(names) == 1 else None}

    def retrieve(self, query: str, k: int) -> Retrieved:
        """Passages by the engine's own score."""
        match = {"query": query} | ({"fields": self.fields} if self.fields else {})
        body = {"size": k, "query": {"multi_match": match}}
        options: dict[str, Any] = {"key_variable": KEY, "timeout": SECONDS, "deadline": SECONDS}
        try:
            answer = post_json(f"{self.address}/_search", body, field="search", **options)
            return Retrieved.of(map(_row, answer["hits"]["hits"]), "score", **self.roles)
        except DataError as error:
            raise EngineError(str(error)) from None
        except (KeyError, TypeError, ValueError):
            problem = "expected hits with _id, _score and _source"
            raise EngineError(problem, field="search") from None


def _row(hit: dict[str, Any]) -> tuple[dict[str, Any], float]:
    return {"_id": hit["_id"], **hit["_source"]}, float(hit["_score"])
