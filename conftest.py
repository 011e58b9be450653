"""Which modules can be imported here: some need libraries that are not installed for tests."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = {
    "integrations/haystack": "haystack",
    "integrations/langchain": "langchain_core",
    "integrations/llama_index": "llama_index",
    "integrations/pyterrier": "pyterrier",
    "jax": "jax",
}

collect_ignore = [
    f"src/didyma/{name}.py" for name, library in LIBRARIES.items() if find_spec(library) is None
]
