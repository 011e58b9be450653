"""What a query and a passage have in common: one pass over the passage's numbered words."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["N_OVERLAPS", "overlaps", "share"]

N_OVERLAPS = 16


@jit
def overlaps(
    terms: Any,
    stems: Any,
    is_stop: Any,
    begins: Any,
    ends: Any,
    queries: Any,
    bounds: Any,
    rows: Any,
    term_idf: Any,
    stem_idf: Any,
    grams: Any,
    gram_stops: Any,
    n_grams: Any,
    mean_length: Any,
    k1: Any,
    b: Any,
    out: Any,
) -> None:
    """Fill ``out`` (n_rows, N_OVERLAPS); `didyma.features.text.small` says what the columns mean.

    Text i has the tokens ``begins[i]`` to ``ends[i]``. Query q is text ``queries[q]``, its rows
    ``bounds[q]`` to ``bounds[q + 1]`` are the texts ``rows``. A word is content if it is no
    stop word, or if the query has nothing else.
    """
    longest_query, longest = 1, 1
    for q in range(len(queries)):
        longest_query = max(longest_query, ends[queries[q]] - begins[queries[q]])
    for r in range(len(rows)):
        longest = max(longest, ends[rows[r]] - begins[rows[r]])
    # 1 + the place of a term or stem among the query's distinct ones; 0 for all others
    term_place = np.zeros(len(term_idf), np.int32)
    stem_place = np.zeros(len(stem_idf), np.int32)
    term_count = np.zeros(len(term_idf), np.int32)
    stem_count = np.zeros(len(stem_idf), np.int32)
    asked_gram = np.zeros(n_grams, np.int64)  # 1 + the last query that has it
    met_gram = np.zeros(n_grams, np.int64)  # 1 + the last row that has it
    met = np.empty(longest, np.int32)
    hit_place, hit_at = np.empty(longest, np.int32), np.empty(longest, np.int64)
    asked_terms = np.empty(longest_query, np.int32)
    asked_stems = np.empty(longest_query, np.int32)
    tf, weight = np.zeros(longest_query), np.empty(longest_query)
    sequence = np.empty(longest_query, np.int32)
    run, run_end = np.empty(longest_query, np.int64), np.empty(longest_query, np.int64)
    common = np.empty(longest_query + 1, np.int64)
    first = np.empty(longest_query, np.int64)
    within = np.zeros(longest_query, np.int64)

    for q in range(len(queries)):
        begin, end = begins[queries[q]], ends[queries[q]]
        every = True
        for t in range(begin, end):
            every = every and is_stop[terms[t]]
        n_terms, n_stems, n_sequence, n_asked_grams = 0, 0, 0, 0
        for t in range(begin, end):
            if term_place[terms[t]] == 0:
                asked_terms[n_terms] = terms[t]
                tf[n_terms] = 0
                n_terms += 1
                term_place[terms[t]] = n_terms
                if every or not is_stop[terms[t]]:
                    for g in range(gram_stops[terms[t]], gram_stops[terms[t] + 1]):
                        n_asked_grams += asked_gram[grams[g]] != q + 1
                        asked_gram[grams[g]] = q + 1
            tf[term_place[terms[t]] - 1] += 1
            if every or not is_stop[terms[t]]:
                if stem_place[stems[t]] == 0:
                    asked_stems[n_stems] = stems[t]
                    n_stems += 1
                    stem_place[stems[t]] = n_stems
                sequence[n_sequence] = stem_place[stems[t]]
                n_sequence += 1
        asked_norm = 0.0
        for i in range(n_terms):
            weight[i] = (1 + log(tf[i])) * term_idf[asked_terms[i]]
            asked_norm += weight[i] * weight[i]
        asked_idf = 0.0
        for i in range(n_stems):
            asked_idf += stem_idf[asked_stems[i]]
        # 1 + the last row in which two terms follow each other; −1 where they do not in the query
        follow = np.full((n_terms, n_terms), -1, np.int64)
        n_pairs = 0
        for t in range(begin, end - 1):
            i, j = term_place[terms[t]] - 1, term_place[terms[t + 1]] - 1
            n_pairs += follow[i, j] < 0
            follow[i, j] = 0

        for r in range(bounds[q], bounds[q + 1]):
            begin_row, end_row = begins[rows[r]], ends[rows[r]]
            length = end_row - begin_row
            saturation = k1 * (1 - b + b * length / mean_length)

            # terms and their n-grams
            n_met, common_pairs = 0, 0
            for t in range(begin_row, end_row):
                if term_count[terms[t]] == 0:
                    met[n_met] = terms[t]
                    n_met += 1
                term_count[terms[t]] += 1
                i = term_place[terms[t]] - 1
                if i >= 0 and t > begin_row and term_place[terms[t - 1]] > 0:
                    before = term_place[terms[t - 1]] - 1
                    if 0 <= follow[before, i] <= r:
                        common_pairs += 1
                        follow[before, i] = r + 1
            bm25, product, norm, common_terms, n_met_grams, common_grams = 0.0, 0.0, 0.0, 0, 0, 0
            for k in range(n_met):
                term = met[k]
                count = term_count[term]
                w = (1 + log(count)) * term_idf[term]
                norm += w * w
                i = term_place[term] - 1
                if i >= 0:
                    common_terms += 1
                    product += w * weight[i]
                    bm25 += tf[i] * term_idf[term] * count / (count + saturation)
                term_count[term] = 0
                if every or not is_stop[term]:
                    for g in range(gram_stops[term], gram_stops[term + 1]):
                        if met_gram[grams[g]] != r + 1:
                            met_gram[grams[g]] = r + 1
                            n_met_grams += 1
                            common_grams += asked_gram[grams[g]] == q + 1
            either_term = n_terms + n_met - common_terms

            # stems of content words, in order
            n_met, n_hits, place, longest_run, met_idf = 0, 0, 0, 0, 0.0
            for i in range(n_sequence):
                run[i], run_end[i] = 0, -1
            for i in range(n_sequence + 1):
                common[i] = 0
            for t in range(begin_row, end_row):
                if is_stop[terms[t]] and not every:
                    continue
                stem = stems[t]
                if stem_count[stem] == 0:
                    met[n_met] = stem
                    n_met += 1
                    met_idf += stem_idf[stem]
                    if stem_place[stem] > 0:
                        first[stem_place[stem] - 1] = t - begin_row
                stem_count[stem] += 1
                if stem_place[stem] > 0:
                    hit_place[n_hits], hit_at[n_hits] = stem_place[stem] - 1, t
                    n_hits += 1
                    # Backwards, so that entry i - 1 is still that of the previous word.
                    for i in range(n_sequence - 1, -1, -1):
                        if sequence[i] == stem_place[stem]:
                            run[i] = 1
                            if i > 0 and run_end[i - 1] == place - 1:
                                run[i] += run[i - 1]
                            run_end[i] = place
                            longest_run = max(longest_run, run[i])
                    diagonal = 0
                    for i in range(n_sequence):
                        above = common[i + 1]
                        if sequence[i] == stem_place[stem]:
                            common[i + 1] = diagonal + 1
                        else:
                            common[i + 1] = max(above, common[i])
                        diagonal = above
                place += 1
            stem_bm25, common_stems, common_idf, early = 0.0, 0, 0.0, 0.0
            for k in range(n_met):
                stem = met[k]
                i = stem_place[stem] - 1
                if i >= 0:
                    count = stem_count[stem]
                    common_stems += 1
                    common_idf += stem_idf[stem]
                    stem_bm25 += stem_idf[stem] * count / (count + saturation)
                    early += stem_idf[stem] * (1 - first[i] / length)
                stem_count[stem] = 0

            # the shortest part that has all stems that were met
            shortest, left, held = length, 0, 0
            for right in range(n_hits):
                within[hit_place[right]] += 1
                held += within[hit_place[right]] == 1
                while held == common_stems:
                    shortest = min(shortest, hit_at[right] - hit_at[left] + 1)
                    within[hit_place[left]] -= 1
                    held -= within[hit_place[left]] == 0
                    left += 1
            for k in range(left, n_hits):
                within[hit_place[k]] = 0

            out[r, 0] = bm25
            out[r, 1] = share(product, sqrt(asked_norm * norm))
            out[r, 2] = share(common_terms, n_terms)
            out[r, 3] = share(common_terms, either_term)
            out[r, 4] = share(common_pairs, n_pairs)
            out[r, 5] = stem_bm25
            out[r, 6] = share(common_stems, n_stems)
            out[r, 7] = share(common_idf, asked_idf)
            out[r, 8] = share(common_idf, asked_idf + met_idf - common_idf)
            out[r, 9] = share(longest_run, n_sequence)
            out[r, 10] = share(common[n_sequence], n_sequence)
            out[r, 11] = share(common_stems - 1, shortest - 1) if common_stems > 1 else 0.0
            out[r, 12] = share(early, asked_idf)
            out[r, 13] = share(common_grams, n_asked_grams)
            out[r, 14] = share(common_grams, n_asked_grams + n_met_grams - common_grams)
            out[r, 15] = log(1 + length)

        for i in range(n_terms):
            term_place[asked_terms[i]] = 0
        for i in range(n_stems):
            stem_place[asked_stems[i]] = 0


@jit
def share(part: Any, whole: Any) -> Any:
    """``part / whole``, 0 of nothing."""
    return part / whole if whole > 0 else 0.0
