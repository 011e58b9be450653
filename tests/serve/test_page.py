"""The files of the page, and the headers that they come with."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import PurePath

import pytest

from didyma.serve.access import BearerTokens
from didyma.serve.page import STATIC, TYPES
from tests.serve.conftest import make_service, running

NAMES = sorted(found.name for found in STATIC.iterdir())
PATHS = {name: "/" if name == "index.html" else f"/page/{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_comes_as_it_is_and_keeps_to_itself(client, name):
    found = client.get(PATHS[name])
    assert found.status_code == 200
    assert found.content == (STATIC / name).read_bytes()
    assert found.headers["content-type"] == TYPES[PurePath(name).suffix]
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "no-referrer"
    policy = dict(
        part.strip().split(" ", 1) for part in found.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in found.headers["content-security-policy"]


@pytest.mark.parametrize("name", NAMES)
def test_who_has_a_file_is_not_sent_it_again(client, name):
    tag = client.get(PATHS[name]).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = client.get(PATHS[name], headers={"if-none-match": known})
        assert again.status_code == 304
        assert again.content == b""
        assert again.headers["etag"] == tag
    assert client.get(PATHS[name], headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", NAMES)
def test_head_is_get_without_a_body(client, name):
    found, whole = client.head(PATHS[name]), client.get(PATHS[name])
    assert found.status_code == 200
    assert found.content == b""
    assert found.headers["content-length"] == str(len(whole.content))
    assert found.headers["etag"] == whole.headers["etag"]


@pytest.mark.parametrize("path", ["/page/", "/page/index.html", "/page/../app.py", "/page/page.py"])
def test_there_is_nothing_else(client, path):
    found = client.get(path)
    assert found.status_code == 404
    assert found.json()["message"].startswith("Not Found")


def test_the_page_is_only_read(client):
    assert client.post("/", json={}).status_code == 405


def test_the_page_needs_no_token(model):
    """It asks for one itself, and has nothing to hide."""
    with running(make_service(model, tokens=BearerTokens(["secret"]))) as client:
        assert {client.get(path).status_code for path in PATHS.values()} == {200}


def test_the_package_has_the_files():
    assert {"index.html", "page.css", "page.js", "example.json", "icon.svg"} <= set(NAMES)
    scripts = {name for name in NAMES if name.endswith(".js")}
    imported = re.findall(r'from "\./(\w+\.js)"', "".join(map(source, scripts)))
    assert scripts == {"page.js", *imported}


def source(name: str) -> str:
    return (STATIC / name).read_text()


class Tags(HTMLParser):
    """Elements and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.inside.append("")

    def handle_data(self, data: str) -> None:
        assert self.inside[-1:] not in (["script"], ["style"])
        assert not data.strip() or self.inside


def test_there_is_no_code_in_the_page_and_nothing_from_elsewhere():
    tags = Tags()
    tags.feed((STATIC / "index.html").read_text())
    assert not [tag for tag, _ in tags.found if tag == "style"]
    for _, attributes in tags.found:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        for name in ("src", "href"):
            assert ":" not in (attributes.get(name) or "")
            assert not (attributes.get(name) or "").startswith("/")  # so that any base will do
    for name in NAMES:
        if name.endswith((".css", ".js")):
            assert not re.search(r"https?:|url\(|@import|import\(", source(name))
            for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "write(", "Storage"):
                assert way not in source(name)


def test_every_field_has_a_label():
    tags = Tags()
    tags.feed((STATIC / "index.html").read_text())
    labelled = {attributes.get("for") for tag, attributes in tags.found if tag == "label"}
    for tag, attributes in tags.found:
        if tag in ("select", "textarea") or (tag == "input" and attributes["type"] != "radio"):
            assert attributes["id"] in labelled


def test_the_example():
    example = json.loads((STATIC / "example.json").read_text())
    assert len(set(example["passages"])) == len(example["passages"]) >= 10
    assert len(set(example["queries"])) == len(example["queries"]) >= 3


def test_info_tells_thresholds(client):
    found = client.get("/info").json()["models"]["words"]["thresholds"]
    assert [one["asked"] for one in found] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    assert all(0 < one["score"] < 1 for one in found)
    assert all(one["precision"] >= one["asked"] for one in found)
    assert found == sorted(found, key=lambda one: one["score"])
