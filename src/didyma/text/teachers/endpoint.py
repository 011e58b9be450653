"""Teachers behind an endpoint that speaks Cohere's, Jina's or TEI's dialect of rerank requests."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias
from urllib.parse import urldefrag, urlsplit

import numpy as np

from didyma.errors import check_choice
from didyma.text.endpoints import post_json
from didyma.text.teachers.teacher import Teacher
from didyma.values import is_whole

KEY_VARIABLE = "DIDYMA_TEACHER_KEY"
Dialect: TypeAlias = Literal["cohere", "jina", "tei"]
DIALECTS: dict[Dialect, str] = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "tei": "/rerank"}
BATCHES: dict[Dialect, int] = {"cohere": 1000, "jina": 1000, "tei": 32}  # what each takes at most


class EndpointTeacher(Teacher):
    """An endpoint that answers a query and documents with scores, as ``didyma serve`` does.

    >>> EndpointTeacher("https://api.cohere.com/v2/rerank#rerank-v3.5").dialect
    'cohere'

    Parameters
    ----------
    url : str
        The address of the requests, such as ``http://localhost:8000/v1/rerank``. The model to ask
        for, if the server has several, stands behind a ``#``.
    dialect : {"cohere", "jina", "tei"}, optional
        That of Cohere, of Jina and vLLM, or of text-embeddings-inference. Unless given, it is told
        by the path: ``/v2/rerank`` is Cohere's, ``/v1/rerank`` Jina's, any other ``/rerank`` TEI's.
    timeout : float
        Seconds to wait for an answer, each time. An endpoint that is overloaded or cannot be
        reached is asked four times, with pauses.

    A key, which is sent as a bearer token and never saved, is read from ``DIDYMA_TEACHER_KEY``.
    Without TLS it is sent to this machine only.
    """

    is_nameable = True

    def __init__(self, url: str, dialect: Dialect | None = None, timeout: float = 60.0) -> None:
        self.name, self.timeout = url, timeout
        self._url, self._model = urldefrag(url)
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise self._error("expected an address that begins with http:// or https://")
        if dialect is None:
            path = parts.path.rstrip("/")
            dialect = next((name for name, end in DIALECTS.items() if path.endswith(end)), None)
            if dialect is None:
                raise self._error(
                    f"expected an address that ends in one of {', '.join(DIALECTS.values())}, or a "
                    f"dialect, one of {', '.join(DIALECTS)}"
                )
        check_choice(dialect, DIALECTS, "dialect")
        self.dialect: Dialect = dialect
        self.batch_size = BATCHES[dialect]

    def _score(self, query: str, documents: list[str], timeout: float | None) -> Any:
        body: dict[str, Any] = {"query": query, "model": self._model or None}
        if self.dialect == "tei":
            body |= {"texts": documents, "truncate": True}
        else:
            body |= {"documents": documents}
            body |= {"return_documents": False} if self.dialect == "jina" else {}
        answer = post_json(
            self._url,
            {name: value for name, value in body.items() if value is not None},
            field=f"teacher {self.name:.80}",
            key_variable=KEY_VARIABLE,
            timeout=self.timeout,
            deadline=timeout,
        )
        return self._scores(answer, len(documents))

    def _scores(self, answer: Any, n: int) -> Any:
        """The scores of an answer, which has one for each document."""
        results: Any = answer.get("results") if isinstance(answer, dict) else answer
        name = "score" if self.dialect == "tei" else "relevance_score"
        scores = np.full(n, np.nan)
        try:
            for one in results:
                index = one["index"]
                if not is_whole(index) or not 0 <= index < n or np.isfinite(scores[index]):
                    raise ValueError
                scores[index] = one[name]
        except (KeyError, TypeError, ValueError):
            expected = f"expected results with index and {name}, one for each of {n} documents"
            raise self._error(f"{expected}, found {json.dumps(answer):.120}") from None
        if np.isnan(scores).any():
            n_scores = len(results)
            raise self._error(f"expected a score for each of {n} documents, found {n_scores}")
        return scores
