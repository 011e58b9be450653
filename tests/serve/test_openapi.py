"""The description of the server: a valid one, and true."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from didyma.data.column_roles import NAMES
from didyma.serve.access import BearerTokens
from didyma.serve.app import Service
from didyma.serve.limits import Limits
from didyma.serve.served import NamedSource, ServedIndexes, ServedModels
from didyma.text.index import PassageIndex
from tests.serve.conftest import make_service, running
from tests.serve.standin import CommonWords

jsonschema = pytest.importorskip("jsonschema")
openapi_spec_validator = pytest.importorskip("openapi_spec_validator")

SETTINGS = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
POSTS = ("/v2/rerank", "/v1/rerank", "/rerank", "/v1/search", "/v1/batch", "/score")
# Whether each model uses scores; whether there is an index.
SERVED = [([False], True), ([True], True), ([False, True], False), ([], True)]


@pytest.fixture(scope="module", params=SERVED, ids=str)
def client(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of each kind of server."""
    uses_scores, has_index = request.param
    folder = tmp_path_factory.mktemp("described")
    sources = []
    for n, uses in enumerate(uses_scores):
        path = folder / f"{n}.safetensors"
        path.write_text(str(int(uses)))
        sources.append(NamedSource(path, f"model {n}"))

    def load(path: Any) -> CommonWords:
        return CommonWords(uses_scores=path.read_text() == "1", tells_chances=True)

    PassageIndex.build(["a b", "b c"], folder / "index")
    indexes = ServedIndexes([NamedSource(folder / "index", None)] if has_index else [])
    limits = Limits(documents=5, characters=30)
    with running(Service(ServedModels(sources, load), limits, indexes=indexes)) as found:
        yield found


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> Any:
    return client.get("/openapi.json").json()


def test_the_description_is_one_and_has_all_that_it_refers_to(document):
    openapi_spec_validator.validate(document)
    parts = json.dumps(document).split("#/components/schemas/")
    used = {part.partition('"')[0] for part in parts[1:]}
    assert used == document["components"]["schemas"].keys()


def test_with_tokens_it_is_one_too(model):
    service = make_service(model, tokens=BearerTokens(["a"]))
    with running(service) as client:
        found = client.get("/openapi.json", headers={"authorization": "a"}).json()
        openapi_spec_validator.validate(found)
        assert found["security"] == [{"token": []}]
        open_to_all = [
            path for path, one in found["paths"].items() if one.get("get", {}).get("security") == []
        ]
        assert sorted(open_to_all) == ["/health", "/ready"]
        for path, operations in found["paths"].items():
            for method in operations:
                status = client.request(method, path).status_code
                assert (status == 401) == (path not in open_to_all)
        gets = {route.path for route in service.app.routes if "GET" in route.methods}
        assert {path for path in gets if "page" not in path} - {"/"} <= found["paths"].keys()


def test_what_is_described_is_served_and_no_more(client, document):
    for path in POSTS:
        one = {"query": "a", "documents": ["a"]}
        body = {**one, "requests": [one]}
        status = client.post(path, json=body).status_code
        assert (status != 404) == (path in document["paths"])


TEXT = st.text("ab \n", max_size=6) | st.sampled_from(["a", "b a"])
SCALAR = st.none() | st.booleans() | st.integers(-2, 7) | st.floats(-2, 7, width=16) | TEXT
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2)
)
SWITCH = st.none() | st.booleans()
COUNT = st.none() | st.integers(0, 6) | st.sampled_from([2.0, 1e300, 2**53])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "query": TEXT,
    "documents": st.lists(
        TEXT
        | st.dictionaries(
            st.sampled_from([*NAMES["passage"], "title", "id"]), TEXT | JSON, min_size=1
        ),
        max_size=5,
    ),
    "texts": st.lists(TEXT | st.dictionaries(st.just("text"), TEXT), max_size=5),
    "rank_fields": st.none() | st.lists(st.sampled_from(["title", "text"]), max_size=2),
    "query_vector": st.none() | st.lists(st.floats(-2, 7, width=16), max_size=2),
    "text_1": TEXT | st.lists(TEXT, max_size=2),
    "text_2": TEXT | st.lists(TEXT, max_size=2),
    "model": st.none() | st.sampled_from(["model 0", "model 1", "another"]),
    "index": st.none() | st.just("index"),
    "top_n": COUNT,
    "candidates": COUNT,
    "scores": st.none() | st.lists(st.floats(-9, 9), max_size=2),
    "explain": SWITCH,
    "return_documents": SWITCH,
    "return_text": SWITCH,
    "raw_scores": SWITCH,
    "relevant_spans": st.none()
    | st.fixed_dictionaries(
        {},
        optional={"mode": st.none() | TEXT, "threshold": st.floats(0, 1), "max_spans": COUNT},
    ),
    "other": JSON,
}


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    """Those of a few keys, and perhaps one value damaged or missing."""
    listed = draw(st.sampled_from(["documents", "texts", "text_1"]))
    needed = {"text_1", "text_2"} if listed == "text_1" else {"query", listed}
    keys = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=3)) | needed
    body = {key: draw(VALUES[key]) for key in sorted(keys)}
    if draw(st.booleans()):
        key = draw(st.sampled_from(sorted(keys)))
        body[key] = draw(JSON)
        if draw(st.booleans()):
            del body[key]
    return body


@SETTINGS
@given(path=st.sampled_from(POSTS), body=bodies() | JSON)
def test_what_is_valid_by_the_description_is_accepted_and_nothing_else(
    client, document, path, body
):
    if path not in document["paths"]:
        return
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    body = {"requests": [body]} if path == "/v1/batch" else body
    is_valid = jsonschema.Draft202012Validator(
        {**schema, "components": document["components"]}
    ).is_valid(body)
    answer = client.post(path, content=json.dumps(body))
    assert str(answer.status_code) in document["paths"][path]["post"]["responses"]
    if answer.status_code == 404:  # of an unknown model nobody knows whether it uses scores
        return
    refused = answer.status_code in (400, 422)
    if is_valid and refused:  # what the description says in words
        assert re.search("scores|one of the rank_fields|query: expected one, or", answer.text)
        return
    assert refused == (not is_valid), answer.text
