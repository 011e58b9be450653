"""Models and indexes from before their files had the texts of words: digests stand for them.

A digest is BLAKE2b of 8 bytes. Such files are used as they are, and stay so when they are saved
again: the words of a text are told by their digests, which nobody can forge for a word that is
given, but two words of one's own may have the same.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.ranking.featuriser import State, check_array

DIGEST_SIZE = 8  # bytes


def digests_of(texts: list[str]) -> bytes:
    """The digests of texts, one after the other."""
    return b"".join(blake2b(text.encode(), digest_size=DIGEST_SIZE).digest() for text in texts)


def with_places(arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> State:
    """The state of a reader that has hashes, as one that has digests and places."""
    if "term_hashes" not in arrays:
        return arrays, values
    others = dict(arrays)
    stems = _hashes("stem_hashes", others)
    others["stem_of"] = _places(stems, arrays["stem_of"])
    others["terms"], others["stems"] = _bytes(_hashes("term_hashes", others)), _bytes(stems)
    return others, {**values, "digest_size": DIGEST_SIZE}


def concepts_with_places(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of features, where parts that have hashes of stems get their places instead."""
    others = dict(arrays)
    for name in arrays:
        if name.endswith("/hashes"):
            hashes = others.pop(name)
            others[name.replace("hashes", "stems")] = _places(arrays["reader/stem_hashes"], hashes)
    return others


def _places(hashes: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The place of each of the wanted among hashes in ascending order."""
    check_array("hashes of stems", wanted, np.uint64, wanted.shape[:1])
    places = np.searchsorted(hashes, wanted)
    if (places == len(hashes)).any() or (hashes[places] != wanted).any():
        raise ValueError("a stem is not among the stems that were counted")
    return places.astype(np.int32)


def _hashes(name: str, arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint64]:
    hashes = arrays.pop(name)
    check_array(name, hashes, np.uint64, hashes.shape[:1])
    if not (hashes[1:] > hashes[:-1]).all():
        raise ValueError(f"{name} are not in order")
    return hashes


def _bytes(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(hashes, "<u8").view(np.uint8)
