"""The static files of the page at the root, under a content security policy."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC = files("didyma.serve") / "static"
ROOT = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

# Nothing but these files and this server; no text ever becomes markup or code.
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS = {
    "content-security-policy": "; ".join(POLICY),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",  # kept, and asked for again by its tag
}


class PageFile:
    """A static file with its entity tag."""

    def __init__(self, file: Traversable) -> None:
        self.body = file.read_bytes()
        self.tag = f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'
        kind = TYPES[PurePath(file.name).suffix]
        self.headers = {**HEADERS, "content-type": kind, "etag": self.tag}

    async def send(self, request: Request) -> Response:
        """The file, or 304 if the client has it."""
        cached = request.headers.get("if-none-match", "")
        if self.tag in (tag.strip().removeprefix("W/") for tag in cached.split(",")):
            return Response(status_code=304, headers=self.headers)
        return Response(self.body, headers=self.headers)


def page_routes() -> list[Route]:
    """Routes of the page and its files; they hold nothing secret, so they need no token."""
    return [
        Route("/" if file.name == ROOT else f"/page/{file.name}", PageFile(file).send)
        for file in STATIC.iterdir()
    ]
