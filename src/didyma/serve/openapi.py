"""The OpenAPI 3.1 document of the server, from the types of the dialects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from didyma import __version__
from didyma.data.column_roles import NAMES
from didyma.serve.access import PROBES
from didyma.serve.dialects import COHERE, DIALECTS, DOCUMENT, JINA, TEI, Dialect
from didyma.serve.limits import Limits
from didyma.serve.native import NATIVE, OPERATIONS, SCORE_DIALECTS, SEARCH

if TYPE_CHECKING:
    from didyma.text.cascade import Cascade
    from didyma.text.reranker import Reranker

# Where each is asked for; any base may stand before these.
PATHS: dict[str, tuple[Dialect[Any], ...]] = {
    "/v2/rerank": (COHERE,),
    "/v1/rerank": (JINA, TEI),
    "/rerank": (JINA, TEI),
    "/score": SCORE_DIALECTS,
    "/v1/score": SCORE_DIALECTS,
    **{path: (dialect,) for path, dialect in NATIVE.items()},
}
REFERENCE = re.compile('"#/components/schemas/([^"]+)"')

ERRORS = {
    "400": "The request cannot be understood (but by TEI's).",
    "401": "There is no valid token.",
    "403": "The server is not to be asked for by this name, or by pages of this site.",
    "404": "There is no model, or index, of that name.",
    "408": "The request did not arrive in time.",
    "413": "There are too many documents, or too long ones.",
    "415": "The body is compressed.",
    "422": "The request cannot be understood (TEI).",
    "429": "The server is busy: ask again after Retry-After seconds.",
    "500": "The server failed; its log says why.",
    "503": "There are too many large requests, or connections: ask again, as for 429.",
}

# What the server tells about itself: in which form, and how else it may answer.
GUARDED = {status: ERRORS[status] for status in ("401", "403")}
JSON, TEXT = "application/json", "text/plain"
ABOUT: dict[str, tuple[str, str, dict[str, str]]] = {
    "/health": ("Whether the server lives.", JSON, {}),
    "/ready": ("Whether it has room for a request.", JSON, {"503": "It has none."}),
    "/info": ("Its models and limits.", JSON, GUARDED),
    "/v1/models": ("Names of its models.", JSON, GUARDED),
    "/metrics": ("Counts and durations, for Prometheus.", TEXT, GUARDED),
    "/watch": ("What models were asked and answered, and their drift.", JSON, GUARDED),
    "/openapi.json": ("This description.", JSON, GUARDED),
}
SCHEMAS = {JSON: {"type": "object"}, TEXT: {"type": "string"}}


def description(
    limits: Limits,
    *,
    with_tokens: bool,
    rerankers: Collection[Reranker | Cascade],
    has_indexes: bool,
) -> dict[str, Any]:
    """The OpenAPI document of what a server of these models accepts."""
    uses_scores = [reranker.uses_scores for reranker in rerankers]
    every: tuple[Dialect[Any], ...] = (*DIALECTS, *SCORE_DIALECTS, *NATIVE.values())
    types = [kind for one in every for kind in (one.body, one.answered, one.error)]
    types_schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    # Of body, answer and error.
    schemas = {one.name: types_schemas[3 * n : 3 * n + 3] for n, one in enumerate(every)}

    def content(dialects: tuple[Dialect[Any], ...], part: int) -> dict[str, Any]:
        options = [schemas[one.name][part] for one in dialects]
        schema = options[0] if len(options) == 1 else {"anyOf": options}
        return {"content": {JSON: {"schema": schema}}}

    paths: dict[str, Any] = {
        path: {
            "post": {
                "summary": dialects[0].summary,
                "requestBody": {"required": True, **content(dialects, 0)},
                "responses": {
                    "200": {"description": "The best first.", **content(dialects, 1)},
                    **{
                        status: {"description": text, **content(dialects, 2)}
                        for status, text in ERRORS.items()
                    },
                },
            }
        }
        for path, dialects in PATHS.items()
        if (has_indexes if dialects == (SEARCH,) else uses_scores)
        and (with_tokens or path not in OPERATIONS)
    }
    for path, (text, form, others) in ABOUT.items():
        answer = {"description": text, "content": {form: {"schema": SCHEMAS[form]}}}
        responses = {"200": answer}
        responses |= {status: {"description": why} for status, why in others.items()}
        about: dict[str, Any] = {"summary": text, "responses": responses}
        paths[path] = {"get": about | ({"security": []} if path in PROBES else {})}
    texts = [field.name for reranker in rerankers for field in reranker.schema_.of_role("text")]
    _describe_documents(components, list(dict.fromkeys((*NAMES["passage"], *texts))))
    for schema in _objects(components):
        if schema.pop("multipleOf", None) == 1:
            schema["type"] = "integer"
    _describe_limits(components, limits)
    _describe_scores(components, uses_scores)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "didyma serve",
            "version": __version__,
            "description": f"At most {limits.documents} documents of {limits.characters} "
            f"characters each, {limits.text} characters and {limits.body} bytes in all.",
        },
        "paths": paths,
        "components": {"schemas": _used(components, paths)},
    }
    if with_tokens:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _describe_documents(components: dict[str, Any], names: list[str]) -> None:
    """Say that an object has a text under one of the names, unless ``rank_fields`` has others."""
    is_text = [{"properties": {name: {"type": "string"}}, "required": [name]} for name in names]
    for schema in _objects(components):
        if schema.get("description") == DOCUMENT:
            schema["anyOf"] = is_text
    body = components["DocumentsBody"]
    items = body["properties"]["documents"]["items"]
    body["if"] = {"required": ["rank_fields"], "properties": {"rank_fields": {"type": "array"}}}
    body["else"] = {"properties": {"documents": {"items": items}}}
    objects = {"type": "object", "description": "Has one of the rank_fields, or a text."}
    body["properties"]["documents"]["items"] = {"anyOf": [{"type": "string"}, objects]}


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All objects within a schema."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for part in list(schema.values() if isinstance(schema, dict) else schema):
            yield from _objects(part)


def _describe_limits(components: dict[str, Any], limits: Limits) -> None:
    """Put the limits where they hold; those of status 413 in words."""
    for body in ("DocumentsBody", "TextsBody", "SearchBody"):
        query = components[body]["properties"]["query"]
        query["description"] = f"Of at most {limits.characters} characters."
    each = f"At most {limits.documents}, of at most {limits.characters} characters each."
    components["DocumentsBody"]["properties"]["documents"]["description"] = each
    components["TextsBody"]["properties"]["texts"]["description"] = each
    for name in ("top_n", "candidates"):
        count, _ = components["SearchBody"]["properties"][name]["anyOf"]
        count["maximum"] = limits.documents


def _describe_scores(components: dict[str, Any], uses_scores: Collection[bool]) -> None:
    """Whether requests may have the first stage's scores, and searches ask for reasons."""
    for name in ("DocumentsBody", "TextsBody", "ScoreBody", "TextPairsBody"):
        body = components[name]
        scores, _ = body["properties"]["scores"]["anyOf"]
        scores["description"] = "One for each document; or else each document has a score."
        if not any(uses_scores):
            body["properties"]["scores"] = {"type": "null"}
    if not uses_scores:
        components["SearchBody"]["properties"]["explain"] = {"enum": [False, None]}


def _used(components: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """The components that paths refer to, themselves or by others."""
    used: dict[str, Any] = {}
    waiting = [paths]
    while waiting:
        for name in REFERENCE.findall(msgspec.json.encode(waiting.pop()).decode()):
            if name not in used:
                used[name] = components[name]
                waiting.append(components[name])
    return used
