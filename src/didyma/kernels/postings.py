"""In which texts words occur, and how often: the lists that a search adds up."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["accumulate", "count_texts", "fill"]


@jit
def count_texts(words: Any, rows: Any, begins: Any, counts: Any) -> None:
    """Add to ``counts`` in how many texts each row occurs.

    Text i has the words ``words[begins[i]:begins[i + 1]]``, and a word w the row ``rows[w]``, or
    none (−1).
    """
    last = np.full(len(counts), -1, np.int64)
    for text in range(len(begins) - 1):
        for t in range(begins[text], begins[text + 1]):
            row = rows[words[t]]
            if row >= 0 and last[row] != text:
                last[row] = text
                counts[row] += 1


@jit
def fill(words: Any, rows: Any, begins: Any, starts: Any, texts: Any, counts: Any) -> None:
    """List the texts of each row in order, with how often it occurs in them.

    Row r has the entries ``starts[r]`` to ``starts[r + 1]`` of ``texts`` and ``counts``.
    """
    at = np.empty(len(starts) - 1, np.int64)
    for row in range(len(at)):
        at[row] = starts[row] - 1
    for text in range(len(begins) - 1):
        for t in range(begins[text], begins[text + 1]):
            row = rows[words[t]]
            if row < 0:
                continue
            here = at[row]
            if here < starts[row] or texts[here] != text:
                here += 1
                at[row] = here
                texts[here] = text
                counts[here] = 0
            counts[here] += 1


@jit
def accumulate(
    rows: Any,
    idf: Any,
    starts: Any,
    texts: Any,
    counts: Any,
    saturation: Any,
    scores: Any,
    met: Any,
) -> Any:
    """Add idf · count / (count + saturation) of some rows to the scores of their texts.

    ``scores`` begin at zero. The texts that a row has are put into ``met``, and their number is
    returned; −1 if a list has the number of a text that there is not.
    """
    n = 0
    for i in range(len(rows)):
        for entry in range(starts[rows[i]], starts[rows[i] + 1]):
            text = texts[entry]
            if text < 0 or text >= len(scores):
                return -1
            if scores[text] == 0.0:
                met[n] = text
                n += 1
            scores[text] += idf[i] * counts[entry] / (counts[entry] + saturation[text])
    return n
