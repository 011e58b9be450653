"""Which modules can be imported here: plug-ins need the libraries that they plug into."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = {
    "haystack": "haystack",
    "langchain": "langchain_core",
    "llama_index": "llama_index",
    "pyterrier": "pyterrier",
}

collect_ignore = [
    f"src/didyma/integrations/{name}.py"
    for name, library in LIBRARIES.items()
    if find_spec(library) is None
]
