"""Build a release, and install it as others would: the core alone, and each extra alone.

    python -m release.check              # everything
    python -m release.check core serve   # the core and an extra

Each is a fresh environment, with the newest versions that are known to work (constraints.txt), and
but for the source distribution one where no compiler is found. What is in it goes into a bill of
materials, in build/.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from release import bill
from release.smoke import SMOKE

ROOT = Path(__file__).parents[1]
CONSUMER = """\
import numpy as np
from didyma import Lists, SVMRanker

lists = Lists(np.eye(2), np.array([1.0, 0.0]))
ranker: SVMRanker = SVMRanker(C=1.0).fit(lists)
reveal_type(ranker.predict(lists))
scores: list[int] = ranker.predict(lists)
"""
# The second is a build of pyright that comes as a wheel: pyright itself asks npm for its code.
CHECKERS = {"mypy": ["--strict"], "basedpyright": ["--pythonpath", "types/bin/python"]}


def run(*command: str | Path, **options: object) -> str:
    """What a command prints; what it has said if it fails."""
    found = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )  # type: ignore[call-overload]
    if found.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{found.stdout}\n{found.stderr}")
    return str(found.stdout)


def environment(folder: Path, *requirements: str | Path, **options: object) -> Path:
    """A fresh environment's Python, with something installed and nothing else, not even pip."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    quietly = ("--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt")
    pip(python, "install", *quietly, *requirements, **options)
    return python


def pip(python: Path, *words: str | Path, **options: object) -> str:
    """What pip does to the environment of a Python."""
    return run(sys.executable, "-m", "pip", "--python", python, *words, **options)


def without_compiler(folder: Path) -> dict[str, str]:
    """Variables with which no program is found but those of an environment: no compiler."""
    variables = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    return variables | {"PATH": str(folder / "bin")}


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, of what is committed."""
    python = environment(folder / "build", "build")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    names = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    carried = {path.name for path in names if path.parent.name == "licenses"}
    assert carried == {"LICENSE", "NOTICE.md"}, carried
    modules = {path.name.partition(".")[0] for path in names if path.suffix == ".so"}
    assert modules in ({"baseline"}, {"baseline", "v3"}), modules
    return wheel, source


def check_types(folder: Path, wheel: Path) -> None:
    """A project outside sees types: one mistake in it, and every checker finds that one."""
    python = environment(folder / "types", wheel, *CHECKERS)
    (folder / "consumer.py").write_text(CONSUMER)
    for name, options in CHECKERS.items():
        found = subprocess.run(
            [python.with_name(name), *options, "consumer.py"],
            capture_output=True,
            text=True,
            cwd=folder,
        ).stdout
        errors = [line.strip() for line in found.splitlines() if re.search("(:| -) error", line)]
        assert len(errors) == 1, found
        assert "consumer.py:7" in errors[0], found
        assert "float64" in found, found
        print(f"{name}: {errors[0]}", flush=True)


def write_bill(tools: Path, python: Path, version: str, path: Path) -> None:
    """Write what an environment holds, unless it is not what pip says."""
    command = (tools.with_name("cyclonedx-py"), "environment", "--output-reproducible")
    about = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library")
    text = bill.finished(run(*command, *about, python), version)
    listed = json.loads(pip(python, "list", "--format", "json"))
    installed = {package["name"]: package["version"] for package in listed}
    if faults := list(bill.faults(json.loads(text), installed)):
        raise SystemExit("\n".join([f"{path.name}:", *faults]))
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def main() -> None:
    """Check what is named, or everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of types, sdist, {', '.join(SMOKE)}")
    names = parser.parse_args().names or ["types", "sdist", *SMOKE]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = build(folder)
        tools = environment(folder / "tools", bill.TOOL)
        for path in (wheel, source):
            print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
        for extra in names:
            started = time.monotonic()
            if extra == "types":
                check_types(folder, wheel)
                continue
            asked = "core" if extra == "sdist" else extra
            what = source if extra == "sdist" else wheel
            wanted = str(what) if asked == "core" else f"{what}[{extra}]"
            variables = dict(os.environ) if extra == "sdist" else without_compiler(folder / extra)
            python = environment(folder / extra, wanted, env=variables)
            run(python, ROOT / "release" / "smoke.py", asked, cwd=folder, env=variables)
            size = run("du", "-sm", folder / extra).split()[0]
            version = wheel.name.split("-")[1]
            path = ROOT / "build" / f"didyma-{version}-{extra}.cdx.json"
            write_bill(tools, python, version, path)
            took = f"{time.monotonic() - started:.0f} s"
            print(f"{extra}: {size} MB, {took}, {path.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    main()
