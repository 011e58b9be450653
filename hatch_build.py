"""Compile the core into ``src/didyma/_core``: for wheels and editable installs, and by hand.

``python hatch_build.py`` builds what has changed; ``--build checked`` the build that tests every
index, ``--sanitize address,undefined`` that build under sanitizers.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # by hand, in an environment without the build backend
    BuildHookInterface = object


class CoreBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Compile before the files of a wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the core, and say that the wheel holds compiled code."""
        if self.target_name != "wheel":
            return
        build_core(Path(self.directory) / "core" if version != "editable" else None)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"] += ["src/didyma/_core/*.so", "src/didyma/_core/*.pyd"]


def build_core(folder: Path | None = None, builds: Sequence[str] = (), sanitize: str = "") -> None:
    """Configure and compile in ``folder``, by default one of ``build/`` that is kept."""
    if folder is None:
        tag = f"{sys.implementation.cache_tag}-{platform.machine()}"
        folder = ROOT / "build" / "-".join(["core", tag, *builds, *sanitize.split(",")]).strip("-")
    environment = dict(os.environ)
    options = [
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DDIDYMA_BUILDS={';'.join(builds)}",
        f"-DDIDYMA_SANITIZE={sanitize}",
    ]
    cmake = _tool("cmake")
    if shutil.which("ninja") or (Path(sys.executable).parent / "ninja").exists():
        options += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}"]
    for command in (
        [cmake, "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", *options],
        [cmake, "--build", str(folder), "--config", "Release", "--parallel"],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            sys.exit(f"{' '.join(command[:3])} … failed: see above")


def _tool(name: str) -> str:
    """A program of this environment, or else of the machine."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else name


def main() -> None:
    """Build by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="append", default=[], help="baseline, v3, checked")
    parser.add_argument("--sanitize", default="", help="sanitizers of the checked build")
    chosen = parser.parse_args()
    build_core(builds=chosen.build, sanitize=chosen.sanitize)


if __name__ == "__main__":
    main()
