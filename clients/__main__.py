"""Ask a server by every client package: ``python -m clients``, or ``make clients``.

Some packages exclude each other, so each file of checks (`cohere_5`, `cohere_7`) runs in an
environment of its own, below ``clients/.venvs``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rerank.texts import made

from didyma.rerank.text import TextReranker

FOLDER = Path(__file__).parent
TOKEN = "a-token"
PACKAGES = {
    "cohere_5": (
        "cohere>=5,<6",
        "langchain-cohere>=0.6",
        "llama-index-postprocessor-cohere-rerank>=0.10",
    ),
    "cohere_7": (
        "cohere>=7,<8",
        "cohere-haystack>=11",
        "jina-haystack>=2",
        "llama-index-postprocessor-jinaai-rerank>=0.6",
        "llama-index-postprocessor-tei-rerank>=0.6",
        "rerankers>=0.10",
    ),
}


def main() -> int:
    """Run all checks; the exit code is the number of environments in which one has failed."""
    with served() as address:
        return sum(
            subprocess.run([environment(name), FOLDER / f"{name}.py", address, TOKEN]).returncode
            != 0
            for name in PACKAGES
        )


def environment(name: str) -> Path:
    """The Python that has the packages of a name; they are installed the first time."""
    folder = FOLDER / ".venvs" / name
    python, ready = folder / "bin" / "python", folder / "packages.json"
    wanted = json.dumps(PACKAGES[name])
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", *PACKAGES[name]]
        subprocess.run(install, check=True)
        ready.write_text(wanted)
    return python


@contextmanager
def served() -> Iterator[str]:
    """The address of a server that has a small model."""
    with tempfile.TemporaryDirectory() as name:
        model, tokens = Path(name) / "model.safetensors", Path(name) / "tokens"
        TextReranker(quick=True).fit(made(12)).save(model)
        tokens.write_text(TOKEN)
        command = [sys.executable, "-m", "didyma", "serve", model, "--port", "0"]
        process = subprocess.Popen(
            [*command, "--token-file", tokens], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        port = json.loads(process.stderr.readline())["port"]
        threading.Thread(target=process.stderr.read).start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
