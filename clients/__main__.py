"""Ask a server by every client package: ``python -m clients``, or ``make clients``.

Some packages exclude each other, so each file of checks (`cohere_5`, `cohere_7`) runs in an
environment of its own, below ``clients/.venvs``. Plug-ins are tested in one more, and schemathesis
asks for all that the server's own description allows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.serve.process import ServerProcess
from tests.text.texts import made

from didyma.text.index import PassageIndex
from didyma.text.text_reranker import TextReranker

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
    "plug_ins": (
        "--constraint=constraints.txt",
        "--editable=.[haystack,langchain,llama-index,pyterrier]",
        "hypothesis",
        "pytest",
    ),
    "schemathesis": ("schemathesis>=4",),
}
FUZZ = (
    *("-m", "schemathesis.cli", "run", "--header", f"Authorization: Bearer {TOKEN}"),
    *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance"),
    *("--checks", "response_schema_conformance,negative_data_rejection"),
)


def main() -> int:
    """Run all checks; the exit code is the number of environments in which one has failed."""
    with tempfile.TemporaryDirectory() as name:
        model, tokens = Path(name) / "model.safetensors", Path(name) / "tokens"
        TextReranker(quick=True).fit(made(12)).save(model)
        tokens.write_text(TOKEN)
        index = PassageIndex.build(made(12).texts, Path(name) / "index")
        with ServerProcess(model, "--index", index.path, "--token-file", tokens) as server:
            checks = {
                "cohere_5": [FOLDER / "cohere_5.py", server.address, TOKEN],
                "cohere_7": [FOLDER / "cohere_7.py", server.address, TOKEN],
                "plug_ins": ["-m", "pytest", "--quiet", "tests/integrations"],
                "schemathesis": [*FUZZ, f"{server.address}/openapi.json"],
            }
            return sum(not passed(name, checks[name]) for name in PACKAGES)


def passed(environment: str, arguments: list[str | Path]) -> bool:
    """Whether the checks of an environment pass."""
    command = [python_of(environment), *arguments]
    return subprocess.run(command, cwd=FOLDER.parent).returncode == 0


def python_of(name: str) -> Path:
    """The Python that has the packages of a name; they are installed the first time."""
    folder = FOLDER / ".venvs" / name
    python, ready = folder / "bin" / "python", folder / "packages.json"
    wanted = json.dumps(PACKAGES[name])
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", *PACKAGES[name]]
        subprocess.run(install, check=True, cwd=FOLDER.parent)
        ready.write_text(wanted)
    return python


if __name__ == "__main__":
    sys.exit(main())
