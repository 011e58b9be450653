"""Dockerfile, compose file and unit: what can be checked without building an image."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.main import get_command

from didyma.cli import app
from didyma.text.text_reranker import TextReranker
from tests.serve.process import ServerProcess
from tests.text.texts import made

ROOT = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile, each with what follows it."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    kept = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in kept]


def parse(arguments: list[str]) -> None:
    """Read the arguments of a command as it would."""
    root = get_command(app)
    with root.make_context("didyma", list(arguments), resilient_parsing=True) as context:
        command = root.get_command(context, arguments[0])  # type: ignore[attr-defined]
    assert command is not None, arguments
    command.make_context(arguments[0], list(arguments[1:]))


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    for what, rest in instructions():
        if what == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored
    assert not [name for name in ignored if name[0] == "!" and not (ROOT / name[1:]).exists()]
    assert any(fnmatch.fnmatch("src/x/__pycache__", own.replace("**/", "*/")) for own in ignored)


def test_two_stages_of_one_plain_image_and_no_root() -> None:
    found = instructions()
    assert [rest.split()[0] for what, rest in found if what == "FROM"] == ["python:3.11-slim"] * 2
    last = max(place for place, (what, _) in enumerate(found) if what == "FROM")
    users = [rest for what, rest in found[last:] if what == "USER"]
    assert users
    assert all(int(part) > 0 for part in users[-1].split(":"))
    ((name, _),) = [own for own in found if own[0] == "HEALTHCHECK"] or [("", "")]
    assert name == "HEALTHCHECK"


def test_commands_of_the_image_can_be_called() -> None:
    found = dict(instructions())
    assert json.loads(found["ENTRYPOINT"]) == ["didyma"]
    parse(json.loads(found["CMD"]))


def test_the_unit_can_be_started() -> None:
    page = (ROOT / "docs" / "serve.md").read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", page, re.MULTILINE)
    program, *arguments = shlex.split(line)
    assert program.endswith("/didyma")
    parse(arguments)


COMPOSED = {  # keys of a service by the Compose Specification that this file may use
    *("build", "cap_drop", "command", "environment", "healthcheck", "image", "mem_limit", "ports"),
    *("read_only", "restart", "security_opt", "volumes"),
}


def test_compose_takes_its_file() -> None:
    docker = shutil.which("docker")
    compose = [docker or "docker", "compose"]
    if docker is None or subprocess.run([*compose, "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    command = [*compose, "--file", str(ROOT / "deploy" / "compose.yaml"), "config", "--quiet"]
    subprocess.run(command, env={**os.environ, "DIDYMA_TOKENS": "secret"}, check=True)


def test_the_compose_file() -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    reranker = found["reranker"]
    parse(reranker["command"])
    assert (ROOT / "deploy" / reranker["build"] / "Dockerfile").exists()
    assert reranker["read_only"]
    assert reranker["cap_drop"] == ["ALL"]
    assert all(volume.endswith(":ro") for volume in reranker["volumes"])
    for service in found.values():
        assert service.keys() <= COMPOSED
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert "/" not in service.get("image", "")


# A file system that is read only, and no capability: root itself can write nothing then.
ENCLOSED = (
    "mount --make-rprivate / && mount -o remount,bind,ro / && cd / && "
    'exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"'
)


@pytest.fixture
def enclosed() -> list[str]:
    """What to put before a command, so that it can write nowhere."""
    programs = [shutil.which(name) for name in ("unshare", "mount", "setpriv", "sh")]
    if None in programs:
        pytest.skip("unshare, mount and setpriv are not all here")
    before = ["unshare", "--mount", "sh", "-c", ENCLOSED, "sh"]
    probe = f"open({str(ROOT / '.written')!r}, 'w')"
    found = subprocess.run([*before, sys.executable, "-c", probe], capture_output=True, text=True)
    if "OSError" not in found.stderr or (ROOT / ".written").exists():
        pytest.skip("file systems cannot be made read only here")
    return before


# As MemoryDenyWriteExecute=yes of systemd: memory never becomes executable (Linux 6.3).
UNEXECUTABLE = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces")
def test_the_server_writes_nothing_and_makes_no_memory_executable(
    enclosed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers, and its health can be asked for."""
    path = tmp_path / "model.safetensors"
    TextReranker(quick=True).fit(made(12)).save(path)
    monkeypatch.setenv("HOME", "/nonexistent")
    health = json.loads(dict(instructions())["HEALTHCHECK"].partition("CMD")[2])
    assert health[:2] == ["python", "-c"]
    before = [*enclosed, sys.executable, "-c", UNEXECUTABLE]
    with ServerProcess(path, before=before) as server:
        body = {"query": "when does the ship sail?", "documents": ["It is late.", "It sails."]}
        assert server.client.post("/v2/rerank", json=body).status_code == 200
        asked = health[2].replace("8000", str(httpx.URL(server.address).port))
        assert subprocess.run([sys.executable, "-c", asked]).returncode == 0
    failed = subprocess.run([sys.executable, "-c", asked], capture_output=True)
    assert failed.returncode != 0
    assert not os.path.exists("/nonexistent")
