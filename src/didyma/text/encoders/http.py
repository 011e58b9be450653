"""Encoders behind an endpoint: OpenAI's ``/v1/embeddings`` and TEI's ``/embed``."""

from __future__ import annotations

import json
import os
import time
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urldefrag, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from didyma.errors import DataError
from didyma.text.encoders.encoder import Encoder, Side
from didyma.text.encoders.prefixes import prefixes_of

__all__ = ["KEY_VARIABLE", "HTTPEncoder"]

KEY_VARIABLE = "DIDYMA_ENCODER_KEY"
TRIES, PAUSE, LONGEST_PAUSE = 4, 0.5, 30.0  # seconds, doubled after each
LARGEST = 1 << 28  # bytes of an answer
PASSING = {408, 429, 500, 502, 503, 504}  # codes of what may go by
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class HTTPEncoder(Encoder):
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
        self._may_have_key = parts.scheme == "https" or parts.hostname in LOOPBACK
        usual = prefixes_of(self._model)
        self.query_prefix = usual.query if query_prefix is None else query_prefix
        self.document_prefix = usual.document if document_prefix is None else document_prefix

    def _encode(self, texts: list[str], side: Side) -> Any:
        prefix = self.query_prefix if side == "query" else self.document_prefix
        inputs = [prefix + text for text in texts]
        if self._is_tei:
            return self._ask({"inputs": inputs, "normalize": True, "truncate": True})
        body: dict[str, Any] = {"input": inputs, "encoding_format": "float"}
        answer = self._ask(body | ({"model": self._model} if self._model else {}))
        try:
            found = sorted(answer["data"], key=lambda item: item["index"])
            return [item["embedding"] for item in found]
        except (KeyError, TypeError):
            problem = "expected {'data': [{'index': …, 'embedding': […]}, …]}"
            raise self._error(f"{problem}, found {json.dumps(answer):.80}") from None

    def _ask(self, body: dict[str, Any]) -> Any:
        """The answer to a request, which is sent again if the reason for a failure may go by."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key := os.environ.get(KEY_VARIABLE):
            if not self._may_have_key:
                raise self._error(f"{KEY_VARIABLE} is not sent without TLS: use https")
            headers["Authorization"] = f"Bearer {key}"
        request = Request(self._url, json.dumps(body).encode(), headers)
        opener = build_opener(_NoRedirect)
        for attempt in range(1, TRIES + 1):
            pause = PAUSE * 2 ** (attempt - 1)
            try:
                with opener.open(request, timeout=self.timeout) as response:
                    data = response.read(LARGEST + 1)
                break
            except HTTPError as error:
                with error:
                    said = error.read(300).decode("utf-8", "replace").strip()
                if error.code not in PASSING or attempt == TRIES:
                    raise self._error(f"answers {error.code} {error.reason}: {said}") from None
                asked = error.headers.get("Retry-After", "")
                pause = float(asked) if asked.isdigit() else pause
            except (URLError, HTTPException, OSError) as error:
                if attempt == TRIES:
                    reason = getattr(error, "reason", None) or error
                    raise self._error(f"cannot be reached ({reason!s:.120})") from None
            time.sleep(min(pause, LONGEST_PAUSE))
        try:
            if len(data) > LARGEST:
                raise ValueError
            return json.loads(data)
        except (ValueError, RecursionError):
            raise self._error("expected an answer in JSON") from None

    def _error(self, problem: str) -> DataError:
        return DataError(problem, field=f"encoder {self.name}")


class _NoRedirect(HTTPRedirectHandler):
    """A redirection is an error: texts and key go where the user said, and nowhere else."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None
