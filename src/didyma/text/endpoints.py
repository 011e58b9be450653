"""Requests to an endpoint that answers JSON by JSON, sent again if it is overloaded."""

from __future__ import annotations

import json
import os
import time
from email.message import Message
from http.client import HTTPException
from math import inf
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from didyma.errors import DataError

TRIES, PAUSE, LONGEST_PAUSE = 4, 0.5, 30.0  # seconds, doubled after each
LARGEST = 1 << 28  # bytes of an answer
TRANSIENT = {408, 429, 500, 502, 503, 504}  # codes of what may go by
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def post_json(
    url: str,
    body: dict[str, Any],
    *,
    field: str,
    key_variable: str,
    timeout: float,
    deadline: float | None = None,
) -> Any:
    """The answer of an endpoint to a request.

    It is asked four times, with pauses, if it is overloaded (as long as its ``Retry-After`` says)
    or cannot be reached. Redirections are errors: texts and key go where the user said.

    Parameters
    ----------
    url : str
        Where to.
    body : dict
        What is asked.
    field : str
        What errors call the endpoint.
    key_variable : str
        A variable of the environment whose value, if there is any, is sent as a bearer token;
        without TLS to this machine only.
    timeout : float
        Seconds to wait for an answer, each time.
    deadline : float, optional
        Seconds after which nothing is tried again.
    """
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers["User-Agent"] = "didyma"  # some services refuse that of urllib
    if key := os.environ.get(key_variable):
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise DataError(f"{key_variable} is not sent without TLS: use https", field=field)
        headers["Authorization"] = f"Bearer {key}"
    request = Request(url, json.dumps(body).encode(), headers)
    opener = build_opener(_NoRedirect)
    last = inf if deadline is None else time.monotonic() + deadline
    for attempt in range(1, TRIES + 1):
        pause = PAUSE * 2 ** (attempt - 1)
        left = max(0.001, min(timeout, last - time.monotonic()))
        try:
            with opener.open(request, timeout=left) as response:
                data = response.read(LARGEST + 1)
            break
        except HTTPError as error:
            with error:
                message = " ".join(error.read(300).decode("utf-8", "replace").split())
            problem = f"answers {error.code} {error.reason}: {message}"
            if error.code not in TRANSIENT:
                raise DataError(problem, field=field) from None
            retry_after = error.headers.get("Retry-After", "")
            pause = float(retry_after) if retry_after.isdigit() else pause
        except (URLError, HTTPException, OSError) as error:
            problem = f"cannot be reached ({getattr(error, 'reason', None) or error!s:.120})"
        pause = min(pause, LONGEST_PAUSE)
        if attempt == TRIES or time.monotonic() + pause >= last:
            raise DataError(problem, field=field)
        time.sleep(pause)
    try:
        if len(data) > LARGEST:
            raise ValueError
        return json.loads(data)
    except (ValueError, RecursionError):
        raise DataError("expected an answer in JSON", field=field) from None


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None
