"""What in a passage may answer a query: overlaps of its parts, and traits of its words."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.overlap import share

__all__ = ["ARTICLE", "BEING", "COPULA", "NUMBER", "N_ANSWERS", "PLACE", "PRONOUN", "answers"]

N_ANSWERS = 21

# Traits of words that the kernel looks at; others are only collected.
NUMBER, PLACE, BEING, ARTICLE, COPULA, PRONOUN = 1, 2, 4, 8, 16, 32

_PRIME, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@jit
def answers(
    terms: Any,
    stems: Any,
    is_capital: Any,
    begins: Any,
    ends: Any,
    queries: Any,
    bounds: Any,
    rows: Any,
    is_stop: Any,
    traits: Any,
    prefixes: Any,
    n_prefixes: Any,
    term_idf: Any,
    stem_idf: Any,
    out: Any,
    seen: Any,
) -> None:
    """Fill ``out`` (n_rows, N_ANSWERS), and ``seen`` with the traits that some word has.

    `didyma.features.text.extended` says what the columns mean; texts are laid out as in `overlaps`.
    """
    longest = 1
    for i in range(len(begins)):
        longest = max(longest, ends[i] - begins[i])
    size = 1
    while size < 4 * longest:
        size *= 2
    keys, stamps = np.zeros((4, size), np.uint64), np.zeros((4, size), np.int64)
    # 1 + the last query or row that has it
    asked_term = np.zeros(len(term_idf), np.int64)
    met_term = np.zeros(len(term_idf), np.int64)
    asked_capital = np.zeros(len(term_idf), np.int64)
    met_capital = np.zeros(len(term_idf), np.int64)
    asked_stem = np.zeros(len(stem_idf), np.int64)
    met_stem = np.zeros(len(stem_idf), np.int64)
    subject_stem = np.zeros(len(stem_idf), np.int64)
    asked_prefix = np.zeros(n_prefixes, np.int64)
    met_prefix = np.zeros(n_prefixes, np.int64)
    for q in range(len(queries)):
        begin, end = begins[queries[q]], ends[queries[q]]
        every = True
        for t in range(begin, end):
            every = every and is_stop[terms[t]]
        asked_idf, asked_stem_idf, n_capitals, n_numbers, n_prefix = 0.0, 0.0, 0, 0, 0
        head, last, n_pairs, n_triples = -1, -1, 0, 0
        for t in range(begin, end):
            term, stem = terms[t], stems[t]
            if asked_term[term] != q + 1:
                asked_term[term] = q + 1
                asked_idf += term_idf[term]
                n_numbers += traits[term] & NUMBER != 0
            if is_capital[t] and t > begin and asked_capital[term] != q + 1:
                asked_capital[term] = q + 1
                n_capitals += 1
            if every or not is_stop[term]:
                head = stem if head < 0 else head
                last = stem
                if asked_stem[stem] != q + 1:
                    asked_stem[stem] = q + 1
                    asked_stem_idf += stem_idf[stem]
                if asked_prefix[prefixes[term]] != q + 1:
                    asked_prefix[prefixes[term]] = q + 1
                    n_prefix += 1
            if t > begin:
                n_pairs += _add(_pair(terms, t), keys[0], stamps[0], q + 1)
            if t > begin + 1:
                n_triples += _add(_triple(terms, t), keys[1], stamps[1], q + 1)

        for r in range(bounds[q], bounds[q + 1]):
            begin_row, end_row = begins[rows[r]], ends[rows[r]]
            length = end_row - begin_row
            common_idf, common_stem_idf, subject_idf, rarest = 0.0, 0.0, 0.0, 0.0
            common_capitals, common_numbers, new_number, common_prefix = 0, 0, 0, 0
            n_met_pairs, n_met_triples, common_pairs, common_triples = 0, 0, 0, 0
            n_capital, n_place, is_name, is_definition, opening = 0, 0, 0, 0, -1
            n_content, new_stems, found, in_subject = 0, 0, 0, True
            for t in range(begin_row, end_row):
                term, stem = terms[t], stems[t]
                found |= traits[term]
                n_place += traits[term] & PLACE != 0
                if traits[term] & COPULA != 0:
                    in_subject = False
                if t > begin_row:
                    before = terms[t - 1]
                    is_definition |= traits[before] & BEING != 0 and traits[term] & ARTICLE != 0
                    if is_capital[t]:
                        n_capital += 1
                        is_name |= t - 1 > begin_row and is_capital[t - 1]
                        if met_capital[term] != r + 1:
                            met_capital[term] = r + 1
                            common_capitals += asked_capital[term] == q + 1
                    if _add(_pair(terms, t), keys[2], stamps[2], r + 1):
                        n_met_pairs += 1
                        common_pairs += _has(_pair(terms, t), keys[0], stamps[0], q + 1)
                if t > begin_row + 1 and _add(_triple(terms, t), keys[3], stamps[3], r + 1):
                    n_met_triples += 1
                    common_triples += _has(_triple(terms, t), keys[1], stamps[1], q + 1)
                if met_term[term] != r + 1:
                    met_term[term] = r + 1
                    is_number = traits[term] & NUMBER != 0
                    if asked_term[term] == q + 1:
                        common_idf += term_idf[term]
                        common_numbers += is_number
                    else:
                        new_number |= is_number
                if is_stop[term] and not every:
                    continue
                n_content += 1
                opening = stem if opening < 0 else opening
                if met_prefix[prefixes[term]] != r + 1:
                    met_prefix[prefixes[term]] = r + 1
                    common_prefix += asked_prefix[prefixes[term]] == q + 1
                asked = asked_stem[stem] == q + 1
                if met_stem[stem] != r + 1:
                    met_stem[stem] = r + 1
                    new_stems += not asked
                    if asked:
                        common_stem_idf += stem_idf[stem]
                        rarest = max(rarest, stem_idf[stem])
                if asked and in_subject and subject_stem[stem] != r + 1:
                    subject_stem[stem] = r + 1
                    subject_idf += stem_idf[stem]
            missing = 0.0
            for t in range(begin, end):
                if asked_stem[stems[t]] == q + 1 and met_stem[stems[t]] != r + 1:
                    missing = max(missing, stem_idf[stems[t]])

            seen[r] = found
            out[r, 0] = share(common_idf, asked_idf)
            out[r, 1] = share(common_pairs, n_pairs + n_met_pairs - common_pairs)
            out[r, 2] = share(common_triples, n_triples)
            out[r, 3] = share(common_triples, n_triples + n_met_triples - common_triples)
            out[r, 4] = rarest
            out[r, 5] = missing
            out[r, 6] = share(common_prefix, n_prefix)
            out[r, 7] = 0.0 if in_subject else share(subject_idf, asked_stem_idf)
            out[r, 8] = opening >= 0 and asked_stem[opening] == q + 1
            out[r, 9] = head >= 0 and met_stem[head] == r + 1
            out[r, 10] = last >= 0 and met_stem[last] == r + 1
            out[r, 11] = share(common_capitals, n_capitals)
            out[r, 12] = share(common_numbers, n_numbers)
            out[r, 13] = log(1 + new_stems)
            out[r, 14] = share(n_capital, length)
            out[r, 15] = is_name
            out[r, 16] = share(n_place, length)
            out[r, 17] = is_definition
            out[r, 18] = length > 0 and traits[terms[begin_row]] & PRONOUN != 0
            out[r, 19] = n_content < 4
            out[r, 20] = new_number


@jit
def _pair(terms: Any, t: Any) -> Any:
    return (np.uint64(terms[t - 1]) << _HALF) | np.uint64(terms[t])


@jit
def _triple(terms: Any, t: Any) -> Any:
    return _pair(terms, t) * _PRIME + np.uint64(terms[t - 2])


@jit
def _place(key: Any, keys: Any, stamps: Any, stamp: Any) -> Any:
    """Where a key of this stamp stands, or would; what has another stamp is not there."""
    last = len(keys) - 1
    at = np.int64((key * _PRIME) >> _HALF) & last
    while stamps[at] == stamp and keys[at] != key:
        at = (at + 1) & last
    return at


@jit
def _has(key: Any, keys: Any, stamps: Any, stamp: Any) -> Any:
    return stamps[_place(key, keys, stamps, stamp)] == stamp


@jit
def _add(key: Any, keys: Any, stamps: Any, stamp: Any) -> Any:
    """Put a key in; whether it is new."""
    at = _place(key, keys, stamps, stamp)
    new = stamps[at] != stamp
    keys[at], stamps[at] = key, stamp
    return new
