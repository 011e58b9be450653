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
from didyma.judgements.store import Judgement


def latest(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The judgement of each judge on each pair that counts, in the order of first mention."""
    counting: dict[tuple[str, str, str], Judgement] = {}
    for one in judgements:
        key = one.query, one.document, one.who
        before = counting.get(key)
        if before is None or _time(one) >= _time(before):
            counting[key] = one
    return [one for one in counting.values() if one.label is not None]


def merge(
    judgements: Iterable[Judgement], weights: Mapping[str, float] | None = None
) -> list[Judgement]:
    """One judgement for each query and document, by the rule above.

    ``weights`` are those of judges by name, 1 for others; who weighs 0 is not heard.

    >>> said = [Judgement("q", "d", label, who=who) for who, label in zip("abc", [0, 2, 2])]
    >>> [one.label for one in merge(said)], [one.label for one in merge(said, {"c": 0.5})]
    ([2], [2])
    >>> [one.label for one in merge(said, {"a": 5})]
    [0]
    """
    weights = weights or {}
    for who, weight in weights.items():
        if not 0 <= weight < float("inf"):
            raise DataError(
                f"expected a number of 0 or more, found {weight}", field=f"weight {who}"
            )
    heard = (one for one in latest(judgements) if weights.get(one.who, 1.0) > 0)
    return [_merged(said, weights) for said in by_pair(heard).values()]


def by_pair(judgements: Iterable[Judgement]) -> dict[tuple[str, str], list[Judgement]]:
    """Judgements by query and document."""
    pairs: dict[tuple[str, str], list[Judgement]] = {}
    for one in judgements:
        pairs.setdefault((one.query, one.document), []).append(one)
    return pairs


def _merged(said: list[Judgement], weights: Mapping[str, float]) -> Judgement:
    label = lower_median((float(one.label or 0), weights.get(one.who, 1.0)) for one in said)
    text = next((one.text for one in said if one.text is not None), None)
    qid = next((one.qid for one in said if one.qid is not None), None)
    who = ", ".join(one.who for one in said if one.who)
    return replace(said[-1], label=whole(label), who=who, why="", shown=(), text=text, qid=qid)


def whole(label: float) -> float:
    """The label, as an int where it is a whole number."""
    return int(label) if label.is_integer() else label


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
    for one in judgements:
        queries.setdefault(one.query, []).append(one)
    if not queries:
        raise DataError("expected judgements, found none")
    passages = [one.passage for said in queries.values() for one in said]
    if all(text.isascii() and len(text.split()) == 1 for text in passages):
        raise DataError(
            f"expected texts of documents, found ids alone, such as {passages[0]!r:.40}: import "
            "them with --passages"
        )
    return Lists.of_texts(
        list(queries),
        [[one.passage for one in said] for said in queries.values()],
        [[float(one.label or 0) for one in said] for said in queries.values()],
        docid=[[one.document for one in said] for said in queries.values()],
    )


def _time(judgement: Judgement) -> float:
    return datetime.fromisoformat(judgement.when).timestamp() if judgement.when else 0.0
