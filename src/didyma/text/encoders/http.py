"""Encoders behind an endpoint: OpenAI's ``/v1/embeddings`` and TEI's ``/embed``."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urldefrag, urlsplit

from didyma.errors import DataError
from didyma.text.encoders.encoder import PrefixedEncoder, Side, prefixes_of
from didyma.text.endpoints import post_json

KEY_VARIABLE = "DIDYMA_ENCODER_KEY"


class HTTPEncoder(PrefixedEncoder):
    """An endpoint that answers texts with vectors.

    >>> HTTPEncoder("http://localhost:8080/v1/embeddings#intfloat/e5-small-v2").query_prefix
    'query: '

    Parameters
    ----------
    url : str
        An address whose path ends in ``/embeddings`` (the interface of OpenAI, spoken by vLLM,
        Ollama, llama.cpp and many others) or ``/embed`` (text-embeddings-inference). The model to
        ask for, if the server has several, stands behind a ``#``.
    query_prefix, document_prefix : str, optional
        What stands before each text; unless given, what the model is known to want, by its name.
    timeout : float
        Seconds to wait for an answer, each time. An endpoint that is overloaded or cannot be
        reached is asked four times, with pauses.

    A key, which is sent as a bearer token and never saved, is read from ``DIDYMA_ENCODER_KEY``.
    Without TLS it is sent to this machine only.
    """

    batch_size = 32  # the most that TEI takes unless told otherwise

    def __init__(
        self,
        url: str,
        *,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        self.name, self.timeout = url, timeout
        self._url, self._model = urldefrag(url)
        parts = urlsplit(self._url)
        self._is_tei = parts.path.rstrip("/").endswith("/embed")
        if not self._is_tei and not parts.path.rstrip("/").endswith("/embeddings"):
            problem = "expected an address that ends in /embeddings (as OpenAI's) or /embed (TEI)"
            raise DataError(f"{problem}, found {url!r:.80}", field="encoder")
        self._use_prefixes(prefixes_of(self._model), query_prefix, document_prefix)

    def _encode(self, texts: list[str], side: Side) -> Any:
        inputs = self._prefixed(texts, side)
        body: dict[str, Any] = {"inputs": inputs, "normalize": True, "truncate": True}
        if not self._is_tei:
            body = {"input": inputs, "encoding_format": "float"}
            body |= {"model": self._model} if self._model else {}
        field, key = f"encoder {self.name}", KEY_VARIABLE
        answer = post_json(self._url, body, field=field, key_variable=key, timeout=self.timeout)
        if self._is_tei:
            return answer
        try:
            items = sorted(answer["data"], key=lambda item: item["index"])
            return [item["embedding"] for item in items]
        except (KeyError, TypeError):
            problem = "expected {'data': [{'index': …, 'embedding': […]}, …]}"
            raise self._error(f"{problem}, found {json.dumps(answer):.80}") from None
