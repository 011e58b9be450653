"""The dashboard and the alert rules ask for what the server tells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"


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
