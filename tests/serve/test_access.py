"""Which names the server answers to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.serve.access import LOOPBACK, AllowedHosts
from didyma.serve.responses import HTTPError
from tests.serve.conftest import make_service, running
from tests.serve.process import ServerProcess

BODY = {"query": "a b", "documents": ["b", "a b"]}
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
