"""The cache of one kernel's compiled forms, on disk. It imports Numba."""

from __future__ import annotations

from typing import Any

from numba.core.caching import FunctionCache

__all__ = ["KernelCache"]


class KernelCache(FunctionCache):
    """Numba's cache of a kernel, in which what cannot be loaded is as good as absent.

    An entry is a pickle that names the types of arguments, which are no part of a fingerprint:
    after an upgrade one may have another name, or none. A file may be damaged, too.
    """

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled form for these types, or None; then a new one takes the place of all."""
        try:
            return super().load_overload(signature, target)
        except Exception:  # whatever unpickling meets
            self.flush()
            return None
