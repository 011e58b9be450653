"""From what several judges said to one label for each pair, and to lists to learn from.

The rule, in two steps. Of several judgements of one judge on the same query and document the latest
counts, of equally late ones the last that was added; one without a label takes back what was said.
Of several judges the label is the weighted lower median: the least label that at least half of the
weight does not exceed. Of two judges who differ the lower label counts, of two grades that is the
majority, and no label is made up that nobody gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.judgements.judgement import Judgement


def latest(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The judgement of each judge on each pair that counts, in the order of first mention."""
    found: dict[tuple[str, str, str], Judgement] = {}
    for own in judgements:
        key = own.query, own.document, own.who
        before = found.get(key)
        if before is None or _time(own) >= _time(before):
            found[key] = own
    return [own for own in found.values() if own.label is not None]


def merge(
    judgements: Iterable[Judgement], weights: Mapping[str, float] | None = None
) -> list[Judgement]:
    """One judgement for each query and document, by the rule above.

    ``weights`` are those of judges by name, 1 for others; who weighs 0 is not heard.

    >>> said = [Judgement("q", "d", label, who=who) for who, label in zip("abc", [0, 2, 2])]
    >>> [own.label for own in merge(said)], [own.label for own in merge(said, {"c": 0.5})]
    ([2], [2])
    >>> [own.label for own in merge(said, {"a": 5})]
    [0]
    """
    given = weights or {}
    for who, weight in given.items():
        if not 0 <= weight < float("inf"):
            raise DataError(
                f"expected a number of 0 or more, found {weight}", field=f"weight {who}"
            )
    pairs: dict[tuple[str, str], list[Judgement]] = {}
    for own in latest(judgements):
        if given.get(own.who, 1.0) > 0:
            pairs.setdefault((own.query, own.document), []).append(own)
    return [_merged(said, given) for said in pairs.values()]


def _merged(said: list[Judgement], weights: Mapping[str, float]) -> Judgement:
    labels = [(float(own.label or 0), weights.get(own.who, 1.0)) for own in said]
    label = lower_median(labels)
    text = next((own.text for own in said if own.text is not None), None)
    qid = next((own.qid for own in said if own.qid is not None), None)
    whole = int(label) if label.is_integer() else label
    who = ", ".join(own.who for own in said if own.who)
    return replace(said[-1], label=whole, who=who, why="", shown=(), text=text, qid=qid)


def lower_median(labels: Iterable[tuple[float, float]]) -> float:
    """The least label whose own weight and that of lower ones is at least half of all.

    >>> lower_median([(0, 1), (1, 1)]), lower_median([(0, 1), (1, 1), (2, 1)])
    (0, 1)
    """
    ordered = sorted(labels)
    half = sum(weight for _, weight in ordered) / 2
    below = 0.0
    for label, weight in ordered:
        below += weight
        if below >= half * (1 - 1e-12):
            return label
    raise DataError("expected a label, found none")


def lists_of(judgements: Iterable[Judgement]) -> Lists:
    """Judged lists of texts, one for each query, as `TextReranker.fit` takes them.

    >>> lists_of([Judgement("who rang?", "They rang.", 1), Judgement("who rang?", "No.", 0)])
    Lists(2 rows of str, 1 queries)
    """
    queries: dict[str, list[Judgement]] = {}
    for own in judgements:
        queries.setdefault(own.query, []).append(own)
    if not queries:
        raise DataError("expected judgements, found none")
    passages = [own.passage for said in queries.values() for own in said]
    if all(text.isascii() and len(text.split()) == 1 for text in passages):
        raise DataError(
            f"expected texts of documents, found ids alone, such as {passages[0]!r:.40}: import "
            "them with --passages"
        )
    return Lists.of_texts(
        list(queries),
        [[own.passage for own in said] for said in queries.values()],
        [[float(own.label or 0) for own in said] for said in queries.values()],
        docid=[[own.document for own in said] for said in queries.values()],
    )


def _time(judgement: Judgement) -> float:
    return datetime.fromisoformat(judgement.when).timestamp() if judgement.when else 0.0
