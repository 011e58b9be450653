"""Which names the server answers to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.serve.access import LOOPBACK, VARIABLE, AllowedHosts, BearerTokens, check_host
from didyma.serve.responses import HTTPError
from tests.serve.conftest import BODY, IN_TEI, best_score, make_service, running
from tests.serve.process import ServerProcess

OWN = [
    "localhost",
    "LocalHost:8000",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]",
    "[::1]:8000",
    "localhost.",
]
OTHERS = [
    "rebound.example",
    "rebound.example:8000",
    "localhost.rebound.example",
    "127.0.0.1.rebound.example",
    "localhost@rebound.example",
    "localhost:8000@rebound.example",
    "rebound.example/localhost",
    "rebound.example#localhost",
    "localhost rebound.example",
    "[::1]rebound.example",
    "[::1",
    "::1",
    "0.0.0.0",
    "192.168.0.7",
    "localhost:port",
    "",
]


def allows(hosts: AllowedHosts, host: str | None, origin: str | None = None) -> bool:
    try:
        hosts.check(host, origin)
    except HTTPError:
        return False
    return True


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "localhost"])
def test_on_loopback_only_its_own_names_are_answered(bound):
    hosts = AllowedHosts(bound)
    assert all(allows(hosts, host) for host in OWN)
    assert not any(allows(hosts, host) for host in [*OTHERS, None])


def test_origins_are_checked_likewise():
    hosts = AllowedHosts("127.0.0.1", ["rerank.example.org"])
    for host in OWN:
        assert allows(hosts, "localhost:8000", f"http://{host}")
    assert allows(hosts, "localhost:8000", "https://rerank.example.org")
    for origin in [*(f"https://{host}" for host in OTHERS), "null", "", "localhost", "://"]:
        assert not allows(hosts, "localhost:8000", origin)


def test_open_to_others_every_name_is_answered_unless_some_are_given():
    assert all(allows(AllowedHosts("0.0.0.0"), host, "https://a.example") for host in OTHERS)
    hosts = AllowedHosts("0.0.0.0", ["Rerank.example.org"])
    assert all(allows(hosts, host) for host in [*OWN, "rerank.example.org:443"])
    assert not allows(hosts, "rebound.example")
    assert allows(AllowedHosts("127.1.2.3"), "127.1.2.3:80")
    assert not allows(AllowedHosts("::1"), "0.0.0.0")


@given(st.text("localhst127.0[]:/@ex ", max_size=24))
def test_no_spelling_of_another_name_is_taken_for_ours(host):
    """What is answered is one of the names, and perhaps a port."""
    if allows(AllowedHosts("127.0.0.1"), host):
        name, port = host, ""
        if not host.endswith("]"):
            name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        assert name.removesuffix(".") in LOOPBACK
        assert port == "" or port.isdecimal()


@pytest.mark.parametrize("name", ["a.example:80", "https://a.example", "a/b", "", "::1"])
def test_a_name_to_allow_is_a_host(name):
    with pytest.raises(DataError, match="expected a host"):
        AllowedHosts("127.0.0.1", [name])


def test_pages_of_other_sites_get_nothing_but_probes(model):
    with running(make_service(model, hosts=AllowedHosts("127.0.0.1"))) as client:
        rebound = {"host": "rebound.example:8000"}
        elsewhere = {"origin": "https://rebound.example"}
        for headers in (rebound, elsewhere):
            for path in ("/", "/info", "/metrics", "/openapi.json", "/page/page.js", "/nowhere"):
                assert client.get(path, headers=headers).status_code == 403
            found = client.post("/v2/rerank", json=BODY, headers=headers)
            assert found.status_code == 403
            assert "--allowed-host" in found.json()["message"]
            assert client.get("/health", headers=headers).status_code == 200
            assert client.get("/ready", headers=headers).status_code == 200
        own = {"origin": f"http://localhost:{client.base_url.port}"}
        assert client.post("/v2/rerank", json=BODY, headers=own).status_code == 200


def test_the_command_allows_names(model_file):
    with ServerProcess(model_file, "--allowed-host", "rerank.example.org") as server:
        for host, status in (("rebound.example", 403), ("rerank.example.org", 200)):
            assert server.client.get("/info", headers={"host": host}).status_code == status
        assert server.client.get("/info").status_code == 200


@pytest.mark.parametrize("given", ["Bearer second", "bearer second", "second", "Bearer  second "])
def test_a_token_is_accepted_with_and_without_its_scheme(given):
    BearerTokens(["first", "second"]).check(given)


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer ", "Bearer secon", "Basic second"])
def test_no_other_token_is(given):
    with pytest.raises(HTTPError) as error:
        BearerTokens(["first", "second"]).check(given)
    assert error.value.status == 401


def test_tokens_guard_all_but_probes(model):
    with running(make_service(model, tokens=BearerTokens(["secret"]))) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/ready").status_code == 200
        for path in ("/info", "/metrics", "/openapi.json"):
            assert client.get(path).status_code == 401
        for path, body in (("/v2/rerank", BODY), ("/rerank", IN_TEI)):
            found = client.post(path, json=body, headers={"authorization": "Bearer wrong"})
            assert found.status_code == 401
            assert found.headers["www-authenticate"] == "Bearer"
        client.headers["authorization"] = "Bearer secret"
        assert best_score(client) == 1.0
        assert client.get("/metrics").status_code == 200


def test_tokens_come_from_a_file_and_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "tokens"
    path.write_text("# of two teams\nfirst\n\n  second  \n")
    monkeypatch.setenv(VARIABLE, "third fourth")
    tokens = BearerTokens.read(path)
    assert len(tokens) == 4
    for token in ("first", "second", "third", "fourth"):
        tokens.check(token)
    monkeypatch.delenv(VARIABLE)
    assert len(BearerTokens.read(None)) == 0
    path.write_text("sécret\n")
    with pytest.raises(DataError, match="ASCII"):
        BearerTokens.read(path)
    path.write_text("# none\n")
    with pytest.raises(DataError, match="tokens: expected a token"):
        BearerTokens.read(path)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_needs_no_token(host):
    check_host(host, has_tokens=False, insecure=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_other_addresses_do(host):
    with pytest.raises(DataError, match="tokens"):
        check_host(host, has_tokens=False, insecure=False)
    check_host(host, has_tokens=True, insecure=False)
    check_host(host, has_tokens=False, insecure=True)
