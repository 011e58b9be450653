"""`didyma serve`: what it refuses before it listens."""

from __future__ import annotations

import socket

import pytest

from didyma.serve import access, server


def test_help_teaches(run):
    text = run("serve", "--help").stdout
    for word in ("/v2/rerank", "/v1/rerank", "--token-file", "--insecure", "curl", "SIGHUP"):
        assert word in text


def test_a_file_that_is_missing(run, tmp_path):
    assert "none.safetensors" in run("serve", tmp_path / "none.safetensors", code=1).stderr


def test_a_model_that_ranks_no_texts(run, folder):
    found = run("serve", folder / "map.didyma.safetensors", code=1).stderr
    assert found == (
        f"error: {folder / 'map.didyma.safetensors'}: holds a SVMRanker, not a TextReranker\n"
    )


def test_other_machines_need_a_token(run, tmp_path, monkeypatch):
    monkeypatch.delenv(access.VARIABLE, raising=False)
    found = run("serve", tmp_path / "model", "--host", "0.0.0.0", code=1).stderr
    assert found == (
        "error: 0.0.0.0 is open to other machines: give a file of tokens, or --insecure\n"
    )


def test_tokens_that_are_none(run, tmp_path):
    path = tmp_path / "tokens"
    path.write_text("\n")
    found = run("serve", tmp_path / "model", "--token-file", path, code=1).stderr
    assert found == f"error: {path}: expected a token, found none\n"


def test_a_port_that_is_taken(tmp_path):
    with server.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(server.DataError, match=f"127.0.0.1, port {port}: Address already in"):
            server.listen("127.0.0.1", port)
    with pytest.raises(server.DataError, match="cannot listen on no"):
        server.listen("no.such.host.invalid", 0)


def test_clients_wait_from_the_moment_that_the_port_is_known():
    with server.listen("127.0.0.1", 0) as found:
        socket.create_connection(found.getsockname(), timeout=20).close()


def test_answers_are_not_delayed():
    """Asyncio turns off Nagle's algorithm only for sockets that say they speak TCP."""
    with server.listen("127.0.0.1", 0) as found:
        assert found.proto == socket.IPPROTO_TCP
