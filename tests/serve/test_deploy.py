"""Image, compose file, unit, dashboard and alerts, as far as no image need be built."""

from __future__ import annotations

import configparser
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
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")


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
    (line,) = re.findall(r"^ExecStart=(.*)$", PAGE, re.MULTILINE)
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


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(text)
    service = unit["Service"]
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert f"%S/{service['StateDirectory']}/" in service["ExecStart"]  # where it may write


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd is not installed")
    (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "didyma.service"
    path.write_text(text.replace("/opt/didyma/bin/didyma", "/bin/true"))
    verified = subprocess.run([analyze, "verify", path], capture_output=True, text=True)
    assert not [line for line in verified.stderr.splitlines() if "didyma.service" in line]
    exposure = [analyze, "security", "--offline=true", "--threshold=15", path]  # of 100; before 17
    assert subprocess.run(exposure, capture_output=True).returncode == 0


def told(client: httpx.Client) -> set[str]:
    """Names of all series, also of those that have no sample yet."""
    names = set()
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            parts = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            names |= {name + part for part in parts}
    return names


def asked() -> dict[str, str]:
    """Queries of panels and rules, by their titles."""
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    queries = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }
    rules = (DEPLOY / "alerts.yaml").read_text()
    found = re.findall(r"alert: (\w+)\n +expr: (.+)", rules)
    assert len(found) == rules.count("alert: ")
    return {**queries, **dict(found)}


def test_queries_name_what_the_server_tells(client):
    names = told(client)
    for title, query in asked().items():
        used = set(re.findall(r"\bdidyma_\w+", query))
        assert used, title
        assert used <= names, f"{title}: {used - names}"


def test_labels_are_those_of_the_metrics(client):
    """A label that no metric has would make a panel empty for ever."""
    known = {"model", "status", "le", "of", "feature", "precision", "signal", "outcome", "work"}
    for title, query in asked().items():
        groups = re.findall(r"(?:by|on) \(([^)]*)\)", query) + re.findall(r"(\w+)=?[=~!]", query)
        labels = {name.strip() for group in groups for name in group.split(",")}
        named = {name for name in labels if not name.startswith("didyma_")}
        assert named <= known | {"instance", "didyma_drift_warning"}, title


def test_panels_do_not_overlap():
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    cells = [
        (x, y)
        for panel in dashboard["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_prometheus_takes_the_rules():
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    command = ["promtool", "check", "rules", str(DEPLOY / "alerts.yaml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 rules found" in done.stdout


def test_prometheus_takes_the_metrics(client):
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    client.post("/v2/rerank", json={"query": "a", "documents": ["a", "b"]})
    text = client.get("/metrics").text
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert "error" not in done.stderr.lower(), done.stderr
    assert done.returncode in (0, 3), done.stderr  # 3: hints on style
