"""What others see of a release: types from outside, and whom to cite."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from release import bill, check
from release.smoke import SMOKE

import didyma

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSUMER = """\
import numpy as np
from didyma import Lists, SVMRanker

lists = Lists(np.eye(2), np.array([1.0, 0.0]))
ranker: SVMRanker = SVMRanker(C=1.0).fit(lists)
scores: list[int] = ranker.predict(lists)
"""


def test_a_project_outside_sees_the_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "consumer.py"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
    (error,) = (line for line in found.splitlines() if "error:" in line)
    assert error.startswith("consumer.py:6: error: Incompatible types in assignment")
    assert "float64" in error


def test_who_cites_it_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    named = dict(re.findall(r"^([a-z-]+): (.*)$", text, re.MULTILINE))
    changes = (ROOT / "CHANGELOG.md").read_text()
    latest = re.search(r"^## (.*) \((.*)\)$", changes, re.MULTILINE)
    assert latest is not None
    assert latest.groups() == (named["version"], named["date-released"])
    if ".dev" in didyma.__version__:  # on the way to the next
        assert "\n## Unreleased\n" in changes
    else:
        assert named["version"] == didyma.__version__
    assert named["license"] == PROJECT["license"]


def test_the_classifiers_are_the_pythons_that_workflows_test() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (tested,) = re.findall(r"^ +python: (.*)$", text, re.MULTILINE)
    said = "Programming Language :: Python :: 3."
    found = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if name.startswith(said)]
    assert found == json.loads(tested)
    assert PROJECT["requires-python"] == f">={found[0]}"


def test_wheels_are_of_the_pythons_that_are_promised() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    said = "Programming Language :: Python :: 3."
    found = [name.removeprefix(said) for name in PROJECT["classifiers"] if name.startswith(said)]
    assert tools["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in found]


def test_a_release_is_tried_where_no_compiler_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "g++")
    variables = check.without_compiler(tmp_path)
    assert "CXX" not in variables
    assert shutil.which("c++", path=variables["PATH"]) is None


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=str)
def test_workflows_call_targets_and_may_only_read(path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found = yaml.safe_load(path.read_text())
    assert found["permissions"] == {"contents": "read"}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for job in found["jobs"].values():
        assert job.keys() <= {"runs-on", "timeout-minutes", "strategy", "steps"}
        for step in job["steps"]:
            if "run" in step:
                program, target, *_ = step["run"].split()
                assert program == "make"
                assert target in targets
            else:
                assert step["uses"].startswith("actions/")


def test_each_extra_is_tried_alone() -> None:
    extras = set(PROJECT["optional-dependencies"]) - {"all", "dev"}  # which are others together
    assert set(SMOKE) == extras | {"core"}


def least(requirement: str) -> tuple[str, str]:
    """The name in a requirement, without extras, and its lower bound."""
    name, version = requirement.partition(",")[0].split(">=")
    return name.partition("[")[0], version


def test_the_lowest_versions_are_those_that_are_promised() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nlowest:")[2].partition("\n\n")[0]
    (installed,) = re.findall(r'"\.\[(.*)\]"', recipe)
    extras = PROJECT["optional-dependencies"]
    promised = dict(map(least, PROJECT["dependencies"]))
    for name in installed.split(","):
        promised |= map(least, extras[name])
    assert promised.keys() >= {"numpy", "narwhals", "matplotlib", "uvicorn"}
    tools = dict(least(tool) for tool in extras["dev"] if ">=" in tool)
    text = (ROOT / "release" / "lowest.txt").read_text()
    tested = dict(re.findall(r"^([\w-]+)==(.*)$", text, re.MULTILINE))
    assert promised.keys() <= tested.keys() <= promised.keys() | tools.keys()
    for name, version in tested.items():
        assert f"{version}.".startswith(f"{(promised | tools)[name]}."), name


def bill_of(*components: dict[str, object]) -> dict[str, object]:
    main = {"bom-ref": "root", "name": "didyma", "version": "1.0", "licenses": [{"license": MIT}]}
    depends = [{"ref": "root", "dependsOn": ["numpy"]}]
    return {"metadata": {"component": main}, "components": components, "dependencies": depends}


MIT = {"id": "MIT"}
NUMPY = {"name": "NumPy", "version": "2.0", "licenses": [{"expression": "BSD-3-Clause AND Zlib"}]}
TYPING = {"name": "typing_extensions", "version": "4.1", "licenses": [{"license": MIT}]}
INSTALLED = {"didyma": "1.0", "numpy": "2.0", "typing-extensions": "4.1"}


def test_a_bill_names_what_is_installed_with_versions_and_licences() -> None:
    assert list(bill.faults(bill_of(NUMPY, TYPING), INSTALLED)) == []
    assert bill.licences(NUMPY) == ["BSD-3-Clause AND Zlib"]
    assert bill.licences({"licenses": [{"license": {"name": "of its own"}}]}) == ["of its own"]


@pytest.mark.parametrize(
    ("components", "fault"),
    [
        ([NUMPY], "typing-extensions is not named"),
        ([NUMPY, TYPING, NUMPY | {"name": "pip"}], "pip is not installed"),
        ([NUMPY, TYPING, TYPING], "typing_extensions is named twice"),
        ([NUMPY | {"version": "1.9"}, TYPING], "numpy: expected version 2.0, found 1.9"),
        ([NUMPY | {"licenses": []}, TYPING], "numpy has no licence"),
        ([NUMPY, TYPING | {"licenses": [{"license": {}}]}], "typing-extensions has no licence"),
    ],
)
def test_a_bill_that_lacks_something_is_refused(components: list[dict], fault: str) -> None:
    assert list(bill.faults(bill_of(*components), INSTALLED)) == [fault]


def test_a_bill_has_the_version_of_the_wheel_and_what_it_depends_on() -> None:
    whole = bill_of(NUMPY, TYPING)
    found = json.loads(bill.finished(json.dumps(whole), "1.1"))
    assert found["metadata"]["component"]["version"] == "1.1"
    assert list(bill.faults(found, INSTALLED | {"didyma": "1.1"})) == []
    loose = list(bill.faults(whole | {"dependencies": []}, INSTALLED))
    assert loose == ["it does not say what didyma depends on"]


def test_a_checkout_is_set_up_with_all_that_builds_it() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (builders,) = re.findall(r"^BUILDERS := (.*)$", makefile, re.MULTILINE)
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    needed = {requirement.partition(">=")[0] for requirement in system["requires"]}
    # Without isolation pip does not ask hatchling what an editable installation needs in addition.
    assert set(builders.split()) == needed | {"editables"}
