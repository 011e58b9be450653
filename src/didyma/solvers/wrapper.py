"""A structure around another: the same outputs, asked for in another way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from didyma.errors import DataError
from didyma.structure import Structure, require_structure
from didyma.structures.layout import Layout


class Wrapper(Structure):
    """All that the structure inside says of its outputs; `argmax` is the subclass's."""

    def __init__(self, structure: Structure) -> None:
        require_structure(structure)
        if type(structure).lay_out is not Structure.lay_out:
            raise DataError(
                f"expected a structure that is solved in Python, found {structure!r}, whose argmax "
                "is compiled",
                field="structure",
            )
        self.structure = structure
        self.ndim = structure.ndim  # type: ignore[misc]
        self.data = structure.data  # type: ignore[misc]
        self.reads_infinity = structure.reads_infinity  # type: ignore[misc]
        self.concurrent = structure.concurrent  # type: ignore[misc]

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Those of the structure inside."""
        return self.structure.additional(shape)

    def lay_out(self, scores: Any, lengths: Any = None, **additional: Any) -> Layout:
        """As the structure inside does."""
        return self.structure.lay_out(scores, lengths, **additional)

    def encode(self, outputs: Any, layout: Layout) -> Any:
        """As the structure inside does."""
        return self.structure.encode(outputs, layout)

    def decode(self, parts: Any, layout: Layout) -> Any:
        """As the structure inside does."""
        return self.structure.decode(parts, layout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.structure!r})"
