"""Compile the core into ``src/didyma/_core``: for wheels and editable installs, and by hand.

``python hatch_build.py`` builds what has changed; ``--build checked`` the build that tests every
index, ``--build sanitized`` the same under sanitizers. Where the machine has no C++ compiler, that
of the package ``ziglang`` is taken.
"""

from __future__ import annotations

import argparse
import platform
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from os import environ
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
CORE = ROOT / "src" / "didyma" / "_core"
COMPILERS = ("c++", "g++", "clang++", "cl")
# From 3.12 on one module serves all versions of Python, but for those without a global lock.
STABLE_ABI = sys.version_info >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED")

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # by hand, in an environment without the build backend
    BuildHookInterface = object


class CoreBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Compile before the files of a wheel are collected."""

    def dependencies(self) -> list[str]:
        """What a build needs besides pyproject's list."""
        return [] if has_compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the core, and say that the wheel holds compiled code."""
        if self.target_name != "wheel":
            return
        if version == "editable":
            build_core()
        else:  # with modules made for it alone: a checkout may have others, for other Pythons
            folder = self._folder()
            build_core(folder / "build", folder / "modules")
            build_data["force_include"] |= {
                str(path): f"didyma/_core/{path.name}" for path in (folder / "modules").iterdir()
            }
        build_data["pure_python"] = False
        if STABLE_ABI:
            system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp312-abi3-{system}"
        else:
            build_data["infer_tag"] = True

    def _folder(self) -> Path:
        """Where to compile. pip builds twice, for metadata and files, and then removes a folder."""
        if tracker := environ.get("PIP_BUILD_TRACKER"):
            return Path(tracker, "-".join(ROOT.parts[1:]))
        self.temporary = tempfile.TemporaryDirectory()
        return Path(self.temporary.name)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the compiler has made."""
        if hasattr(self, "temporary"):
            self.temporary.cleanup()


def has_compiler() -> bool:
    """Whether CMake will find a C++ compiler; on Windows it looks for Visual Studio by itself."""
    return sys.platform == "win32" or "CXX" in environ or any(map(shutil.which, COMPILERS))


def build_core(
    folder: Path | None = None, modules: Path = CORE, builds: Sequence[str] = ()
) -> None:
    """Configure and compile in ``folder``, by default one of ``build/`` that is kept."""
    if folder is None:
        tag = f"{sys.implementation.cache_tag}-{platform.machine()}"
        folder = ROOT / "build" / "-".join(["core", tag, *builds])
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    if not has_compiler():
        if find_spec("ziglang") is None:
            sys.exit("didyma is compiled here: install a C++ compiler (g++ or clang++), or ziglang")
        options += [f"-DCMAKE_{name}={_zig(folder, words)}" for name, words in ZIG.items()]
        builds = builds or ["baseline"]  # Zig has other names for instruction sets
    sources = runpy.run_path(str(CORE / "sources.py"))["digest"](ROOT / "src" / "core")
    options += [f"-DPython_EXECUTABLE={sys.executable}", f"-DDIDYMA_BUILDS={';'.join(builds)}"]
    options += [f"-DDIDYMA_OUTPUT={modules}", f"-DDIDYMA_SOURCES={sources}"]
    if sys.platform != "win32":
        options += [f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}", "-G", "Ninja"]
    cmake = _tool("cmake")
    configure = [cmake, "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", *options]
    build = [cmake, "--build", str(folder), "--config", "Release", "--parallel"]
    for command in (configure, build):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            sys.exit(f"didyma's core could not be compiled: {Path(cmake).name} failed, see above")


# Left to itself, Zig compiles for the processor of this machine alone.
ZIG = {"CXX_COMPILER": "c++ -mcpu=baseline", "AR": "ar", "RANLIB": "ranlib"}


def _zig(folder: Path, words: str) -> Path:
    """A program that calls one of Zig's tools, as CMake wants a single name."""
    path = folder / f"zig-{words.partition(' ')[0]}"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {words} "$@"\n')
    path.chmod(0o755)
    return path.resolve()


def _tool(name: str) -> str:
    """A program of this environment, or else of the machine."""
    beside = Path(sysconfig.get_path("scripts"), name)
    return str(beside) if beside.exists() else shutil.which(name) or name


def main() -> None:
    """Build by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--build", action="append", default=[], help="baseline, v3, checked, sanitized or strict"
    )
    build_core(builds=parser.parse_args().build)


if __name__ == "__main__":
    main()
