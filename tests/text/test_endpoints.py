"""Requests to endpoints: keys, what is tried again, and answers that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from didyma.errors import DataError
from didyma.text import endpoints
from tests.text.teachers.standin import Answer, serving

KEY = "DIDYMA_KEY_OF_A_TEST"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "PAUSE", 0.001)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(KEY, raising=False)


def post(address: str, **options: Any) -> Any:
    options = {"field": "test", "key_variable": KEY, "timeout": 60.0, **options}
    return endpoints.post_json(f"{address}/ask", {"n": 1}, **options)


def test_a_key_is_sent_to_this_machine_and_over_tls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda path, body: (200, {}, [path, body])) as server:
        assert post(server.address) == ["/ask", {"n": 1}]
        monkeypatch.setenv(KEY, "secret")
        post(server.address)
    assert "Authorization" not in server.headers[0]
    assert server.headers[1]["Authorization"] == "Bearer secret"
    assert server.headers[1]["User-Agent"] == "didyma"
    with pytest.raises(DataError, match="not sent without TLS") as error:
        post("http://example.invalid")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("code", [429, 503])
def test_what_may_go_by_is_tried_again(code: int) -> None:
    failures: list[Answer] = [(code, {"Retry-After": "0"}, b"busy"), (code, {}, b"busy")]
    with serving(lambda *_: failures.pop(0) if failures else (200, {}, 7)) as server:
        assert post(server.address) == 7
        assert len(server.asked) == 3
        failures += [(code, {}, b"still busy")] * 4
        with pytest.raises(DataError, match=f"test: answers {code} .*: still busy"):
            post(server.address)
    assert not failures


def test_a_long_retry_after_does_not_outlast_the_deadline() -> None:
    later = 429, {"Retry-After": "3600"}, {"message": "later"}
    with serving(lambda *_: later) as server, pytest.raises(DataError, match=r"429 .*later"):
        post(server.address, deadline=5.0)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((401, {}, {"message": "no such key"}), "answers 401 Unauthorized: .*no such key"),
        ((302, {"Location": "http://127.0.0.1:1/"}, {}), "answers 302 Found"),
        ((200, {}, b"<html>"), "expected an answer in JSON"),
    ],
)
def test_answers_that_cannot_be_used(answer: Answer, problem: str) -> None:
    with serving(lambda *_: answer) as server, pytest.raises(DataError, match=f"test: {problem}"):
        post(server.address)
    assert len(server.asked) == 1


def test_nobody_there() -> None:
    with serving(lambda *_: (200, {}, 7)) as server:
        address = server.address
    with pytest.raises(DataError, match="cannot be reached"):
        post(address)
