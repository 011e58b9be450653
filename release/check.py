"""Build a release, and install it as others would: the core alone, and each extra alone.

    python -m release.check              # everything
    python -m release.check core serve   # the core and an extra

Each is a fresh environment, with the newest versions that are known to work (constraints.txt).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def environment(folder: Path, *requirements: str | Path) -> Path:
    """A fresh environment's Python, with something installed."""
    run(sys.executable, "-m", "venv", folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile")
    run(*pip, "--constraint", ROOT / "constraints.txt", *requirements)
    return folder / "bin" / "python"


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, of what is committed."""
    python = environment(folder / "build", "build")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
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


def main() -> None:
    """Check what is named, or everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of types, sdist, {', '.join(SMOKE)}")
    names = parser.parse_args().names or ["types", "sdist", *SMOKE]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = build(folder)
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
            python = environment(folder / extra, wanted)
            run(python, ROOT / "release" / "smoke.py", asked, cwd=folder)
            size = run("du", "-sm", folder / extra).split()[0]
            print(f"{extra}: {size} MB, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
