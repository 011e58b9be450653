"""Bills of materials (CycloneDX): what the wheel is installed with, by version and licence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# What writes them and compares them with the schema of the format.
TOOL = "cyclonedx-bom>=7.1"


def finished(text: str, version: str) -> str:
    """A bill with the version of the wheel, which pyproject.toml leaves to the sources."""
    bill = json.loads(text)
    bill["metadata"]["component"]["version"] = version
    return json.dumps(bill, indent=2, sort_keys=True) + "\n"


def faults(bill: Mapping[str, Any], installed: Mapping[str, str]) -> Iterator[str]:
    """What a bill lacks that should name the packages installed, by name and version."""
    main = bill["metadata"]["component"]
    named = {_normal(main["name"]): main}
    for component in bill["components"]:
        if _normal(component["name"]) in named:
            yield f"{component['name']} is named twice"
        named[_normal(component["name"])] = component
    expected = {_normal(name): version for name, version in installed.items()}
    yield from (f"{name} is not named" for name in sorted(expected.keys() - named.keys()))
    yield from (f"{name} is not installed" for name in sorted(named.keys() - expected.keys()))
    for name in sorted(named.keys() & expected.keys()):
        if named[name].get("version") != expected[name]:
            found = named[name].get("version", "none")
            yield f"{name}: expected version {expected[name]}, found {found}"
        if not licences(named[name]):
            yield f"{name} has no licence"
    if not any(found["ref"] == main["bom-ref"] for found in bill["dependencies"]):
        yield f"it does not say what {main['name']} depends on"


def licences(component: Mapping[str, Any]) -> list[str]:
    """The licences that a component declares: SPDX names and expressions, or in its own words."""
    found = []
    for entry in component.get("licenses", []):
        licence = entry.get("license", {})
        found.append(entry.get("expression") or licence.get("id") or licence.get("name"))
    return [name for name in found if name]


def _normal(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
