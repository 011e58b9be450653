"""Defaults as values: who reads a page cannot look up the name of a constant.

Sphinx shows a default as it stands in the source, which is best for all but such names.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CONSTANT = re.compile(r"(?<==)( ?)([A-Z][A-Z0-9_]*)(?=[,)])")


def with_values(signature: str, documented: Any) -> str:
    """A signature with the values of constants, and with what the factories of fields make."""
    function = documented.__init__ if inspect.isclass(documented) else documented
    constants = getattr(inspect.unwrap(function), "__globals__", {})
    signature = CONSTANT.sub(lambda found: f"{found[1]}{constants[found[2]]!r}", signature)
    if dataclasses.is_dataclass(documented):
        for field in dataclasses.fields(documented):
            if field.default_factory is not dataclasses.MISSING:
                made = f"={field.default_factory.__name__}()"
                signature = signature.replace("=<factory>", made, 1)
    return signature


def process(
    app: Sphinx,
    what: str,
    name: str,
    documented: Any,
    options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Called by autodoc."""
    return signature and with_values(signature, documented), returns


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", process)
    return {"parallel_read_safe": True}
