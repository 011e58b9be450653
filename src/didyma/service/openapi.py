"""What the server understands and answers, for machines: OpenAPI 3.1, from the dialects' types."""

from __future__ import annotations

from typing import Any

import msgspec

from didyma import __version__
from didyma.service.dialects import COHERE, DIALECTS, JINA, TEI, Dialect
from didyma.service.limits import Limits
from didyma.service.searching import SEARCH

__all__ = ["description"]

# Where each is asked for; any base may stand before these.
PATHS: dict[str, tuple[Dialect[Any, Any], ...]] = {
    "/v2/rerank": (COHERE,),
    "/v1/rerank": (JINA, TEI),
    "/rerank": (JINA, TEI),
    "/v1/search": (SEARCH,),
}
SUMMARIES = {"/v1/search": "Find the passages of an index that are relevant to a query."}
RANK = "Rank documents by their relevance to a query."

REFUSALS = {
    "400": "The request cannot be understood (but by TEI's).",
    "401": "There is no valid token.",
    "404": "There is no model, or index, of that name.",
    "408": "The request did not arrive in time.",
    "413": "There are too many documents, or too long ones.",
    "422": "The request cannot be understood (TEI).",
    "429": "The server is busy: ask again after Retry-After seconds.",
}

# What the server tells about itself, and how else it may answer.
GUARDED = {"401": REFUSALS["401"]}
ABOUT: dict[str, tuple[str, dict[str, str]]] = {
    "/health": ("Whether the server lives.", {}),
    "/ready": ("Whether it has room for a request.", {"503": "It has none."}),
    "/info": ("Its models and limits.", GUARDED),
    "/metrics": ("Counts and durations, for Prometheus.", GUARDED),
    "/openapi.json": ("This description.", GUARDED),
}


def description(limits: Limits, *, with_tokens: bool) -> dict[str, Any]:
    """The OpenAPI document."""
    every: tuple[Dialect[Any, Any], ...] = (*DIALECTS, SEARCH)
    types = [kind for one in every for kind in (one.body, one.answered, one.refused)]
    found, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    schemas = {
        one.name: found[3 * n : 3 * n + 3] for n, one in enumerate(every)
    }  # body, answer, refusal

    def content(dialects: tuple[Dialect[Any, Any], ...], part: int) -> dict[str, Any]:
        options = [schemas[one.name][part] for one in dialects]
        schema = options[0] if len(options) == 1 else {"anyOf": options}
        return {"content": {"application/json": {"schema": schema}}}

    paths: dict[str, Any] = {
        path: {
            "post": {
                "summary": SUMMARIES.get(path, RANK),
                "requestBody": {"required": True, **content(dialects, 0)},
                "responses": {
                    "200": {"description": "The best first.", **content(dialects, 1)},
                    **{
                        status: {"description": text, **content(dialects, 2)}
                        for status, text in REFUSALS.items()
                    },
                },
            }
        }
        for path, dialects in PATHS.items()
    }
    for path, (text, others) in ABOUT.items():
        responses = {"200": {"description": text}}
        responses |= {status: {"description": why} for status, why in others.items()}
        paths[path] = {"get": {"summary": text, "responses": responses}}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "didyma serve",
            "version": __version__,
            "description": f"At most {limits.documents} documents of {limits.characters} "
            f"characters each, {limits.body} bytes in all.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if with_tokens:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document
