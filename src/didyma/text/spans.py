"""Where a passage has the words of its query, for highlighting."""

from __future__ import annotations

import numpy as np

from didyma.ranking.explanation import MatchedSpan
from didyma.text.features.reading import Reading


def matched_spans(
    reading: Reading, row: int, window: tuple[int, int] | None = None
) -> list[MatchedSpan]:
    """The words of a row's passage that its query has, as words or as stems.

    Looked for are the query's content words, or all of its words if it has no others. Words that
    touch or overlap, as the pairs of characters do that stand for words in some scripts, are one
    span. ``window`` restricts the search to a part of the passage.

    >>> from didyma import Lists
    >>> from didyma.text.features.reading import Reader
    >>> passages = [["Jane Austen writes and wrote novels.", "It is late in the evening."]]
    >>> lists = Lists.of_texts(["who wrote the novel Emma"], passages)
    >>> for span in matched_spans(Reader.fit(lists).read(lists), 0):
    ...     print(span)
    MatchedSpan(start=23, stop=28, matched=('wrote',), kind='word')
    MatchedSpan(start=29, stop=35, matched=('novel',), kind='stem')
    """
    query = reading.queries[np.searchsorted(reading.bounds, row, side="right") - 1]
    text = reading.rows[row]
    query_tokens = np.arange(reading.begins[query], reading.ends[query])
    content = query_tokens[~reading.is_stop[reading.terms[query_tokens]]]
    query_tokens = content if len(content) else query_tokens
    written = [
        reading.texts[query][reading.tokens.starts[t] : reading.tokens.stops[t]]
        for t in query_tokens
    ]
    of_term = dict(zip(reading.terms[query_tokens].tolist(), written))
    of_stem = dict(zip(reading.stems[query_tokens].tolist(), written))
    tokens = np.arange(reading.begins[text], reading.ends[text])
    spans: list[MatchedSpan] = []
    for token in tokens[np.isin(reading.stems[tokens], reading.stems[query_tokens])].tolist():
        start, stop = int(reading.tokens.starts[token]), int(reading.tokens.stops[token])
        if window is None or (window[0] <= start and stop <= window[1]):
            exact = of_term.get(int(reading.terms[token]))
            matched = of_stem[int(reading.stems[token])] if exact is None else exact
            word = MatchedSpan(start, stop, (matched,), "stem" if exact is None else "word")
            touches = spans and start <= spans[-1].stop
            spans.append(_joined(spans.pop(), word) if touches else word)
    return spans


def _joined(first: MatchedSpan, second: MatchedSpan) -> MatchedSpan:
    matched = tuple(dict.fromkeys(first.matched + second.matched))
    kind = "word" if first.kind == second.kind == "word" else "stem"
    return MatchedSpan(first.start, max(first.stop, second.stop), matched, kind)
