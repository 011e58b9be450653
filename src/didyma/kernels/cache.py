"""The cache of one kernel's compiled forms, on disk. It imports Numba."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache

__all__ = ["KernelCache"]

# The one that takes the folder from Numba's configuration; releases call it by different names.
_Configured: Any = CompileResultCacheImpl._locator_classes[0]


class _Readable(_Configured):
    """The folder that is configured, even if nothing can be written there."""

    def ensure_cache_path(self) -> None:
        with suppress(OSError):
            super().ensure_cache_path()


class _Compiled(CompileResultCacheImpl):
    _locator_classes = (_Readable,)


class KernelCache(FunctionCache):
    """Numba's cache of a kernel, in which what cannot be loaded is as good as absent.

    An entry is a pickle that names the types of arguments, which are no part of a fingerprint:
    after an upgrade one may have another name, or none. A file may be damaged, too. What cannot be
    written is not kept: the cache of an image is read only.
    """

    _impl_class = _Compiled

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled form for these types, or None; then a new one takes the place of all."""
        try:
            return super().load_overload(signature, target)
        except Exception:  # whatever unpickling meets
            try:
                self.flush()
            except OSError:
                self.disable()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep a compiled form, if that can be."""
        with suppress(OSError):
            super().save_overload(signature, data)
