"""What a compiled core was made of: its build is given the digest, and an import compares it."""

from __future__ import annotations

import os
from hashlib import blake2b


def digest(folder: str | os.PathLike[str]) -> str:
    """A digest of the names and contents of all files in a folder."""
    hashed = blake2b(digest_size=8)
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(place, name), "rb", buffering=0) as file:
                contents = file.read()
            hashed.update(f"{name} {len(contents)} ".encode() + contents)
    return hashed.hexdigest()
