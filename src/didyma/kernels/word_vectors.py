"""How near the words of a query and of a passage are as vectors."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.rows import axpy, dot, zero

__all__ = ["N_NEARNESSES", "nearnesses"]

N_NEARNESSES = 3


@jit
def nearnesses(
    terms: Any,
    is_stop: Any,
    begins: Any,
    ends: Any,
    queries: Any,
    bounds: Any,
    rows: Any,
    vectors: Any,
    norms: Any,
    term_idf: Any,
    n_distinct: Any,
    out: Any,
) -> None:
    """Fill ``out`` (n_rows, 3); `didyma.features.text.word_vectors` says what the columns mean.

    Term n has the vector ``vectors[n]``; one of norm 0 stands for none. There are at most
    ``n_distinct`` different terms in the texts, which are laid out as in `overlaps`.
    """
    longest = 1
    for q in range(len(queries)):
        longest = max(longest, ends[queries[q]] - begins[queries[q]])
    asked = np.empty(longest, np.int64)
    asked_stamp = np.zeros(len(term_idf), np.int64)  # 1 + the last query, or row, that has it
    met_stamp = np.zeros(len(term_idf), np.int64)
    slot = np.full(len(term_idf), -1, np.int64)
    best, weight = np.empty(longest), np.empty(longest)
    total, mean = np.empty(vectors.shape[1]), np.empty(vectors.shape[1])
    for q in range(len(queries)):
        begin, end = begins[queries[q]], ends[queries[q]]
        every = True
        for t in range(begin, end):
            every = every and is_stop[terms[t]]
        n, asked_idf = 0, 0.0
        zero(total)
        for t in range(begin, end):
            term = terms[t]
            if (every or not is_stop[term]) and asked_stamp[term] != q + 1:
                asked_stamp[term] = q + 1
                if norms[term] > 0:
                    asked[n], weight[n] = term, term_idf[term]
                    n += 1
                    axpy(term_idf[term], vectors[term], total)
                    asked_idf += term_idf[term]
        asked_norm = sqrt(dot(total, total))
        # cosines of each term that was met with those of the query, found when it is first met
        cosines = np.empty((n_distinct, n), np.float32)
        n_slots = 0
        for t in range(len(slot)):
            slot[t] = -1
        for r in range(bounds[q], bounds[q + 1]):
            zero(mean)
            for i in range(n):
                best[i] = -1.0
            back, met_idf = 0.0, 0.0
            for t in range(begins[rows[r]], ends[rows[r]]):
                term = terms[t]
                if met_stamp[term] == r + 1 or (is_stop[term] and not every) or norms[term] == 0:
                    continue
                met_stamp[term] = r + 1
                if slot[term] < 0:
                    slot[term] = n_slots
                    for i in range(n):
                        product = dot(vectors[term], vectors[asked[i]])
                        cosines[n_slots, i] = product / (norms[term] * norms[asked[i]])
                    n_slots += 1
                nearest = -1.0
                for i in range(n):
                    cosine = cosines[slot[term], i]
                    best[i] = max(best[i], cosine)
                    nearest = max(nearest, cosine)
                back += term_idf[term] * nearest
                met_idf += term_idf[term]
                axpy(term_idf[term], vectors[term], mean)
            out[r, 0], out[r, 1], out[r, 2] = 0.0, 0.0, 0.0
            if n > 0 and met_idf > 0:
                norm = asked_norm * sqrt(dot(mean, mean))
                out[r, 0] = dot(total, mean) / norm if norm > 0 else 0.0
                covered = 0.0
                for i in range(n):
                    covered += weight[i] * best[i]
                out[r, 1] = covered / asked_idf
                out[r, 2] = back / met_idf
