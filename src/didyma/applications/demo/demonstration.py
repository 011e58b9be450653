"""The whole path on real text: from passages and judgements to a reranker in one file."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from didyma import __version__
from didyma.applications.demo.corpus import (
    DEPTH,
    Candidates,
    Corpus,
    language_reference,
    retrieve,
    split,
)
from didyma.data import Lists
from didyma.files import PathName, replace_when_done
from didyma.metrics import Evaluation, Evaluator
from didyma.metrics.ranking import order, tie_break
from didyma.report import decimal
from didyma.report.html import Example, rankings_of, require_extra, write_report
from didyma.report.table import ComparisonTable, comparison
from didyma.text import TextReranker

__all__ = ["DemoResult", "run"]

FIRST_STAGE, OURS = "BM25", "TextReranker"
MEASURES = "AP RR P@1"
TITLE = "Python’s language reference: finding the passages of a topic by its title"


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found, and the files that it wrote.

    ``lists`` are the parts "train" and "test", ``answers`` a few test topics with both rankings,
    ``files`` the paths by what they hold; ``next_steps`` are commands that go on from these files.
    """

    table: ComparisonTable
    evaluations: Mapping[str, Evaluation]
    lists: Mapping[str, Lists]
    reranker: TextReranker
    answers: tuple[Example, ...]
    files: Mapping[str, Path]
    notes: tuple[str, ...]
    next_steps: tuple[str, ...]


def run(
    folder: PathName,
    *,
    random_state: int = 0,
    report: Callable[[str], None] | None = None,
    corpus: Corpus | None = None,
) -> DemoResult:
    """Learn to rank the passages of Python's language reference; write data, model and report.

    Queries are the titles of topics, candidates the first passages by BM25. A `TextReranker` learns
    from some topics to rerank them, and is compared with BM25 on the others. ``random_state`` deals
    out the topics, ``report`` is called with a line of text at each step, and ``corpus`` takes the
    place of the language reference.
    """
    require_extra()
    say = report or (lambda line: None)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    corpus = language_reference() if corpus is None else corpus
    say(f"{len(corpus.topics)} topics, {len(corpus.passages)} passages")
    candidates = retrieve(corpus)
    lists = split(candidates.lists, random_state)
    sizes = ", ".join(f"{len(part.groups)} to {name} on" for name, part in lists.items())
    say(f"{len(candidates.topics)} topics have candidates to rank: {sizes}")

    # Without the scores of BM25, the reranker can be asked about passages that come from elsewhere.
    alone = {name: replace(part, scores=None) for name, part in lists.items()}
    reranker = TextReranker(random_state=random_state).fit(alone["train"])
    say(str(reranker.gate_))

    test = lists["test"]
    assert test.scores is not None
    scores = {FIRST_STAGE: test.scores, OURS: reranker.predict(alone["test"])}
    evaluator = Evaluator(test.y, test.groups, MEASURES, docid=test.docid)
    evaluations = {name: evaluator(values) for name, values in scores.items()}
    table = comparison(evaluations, baseline=FIRST_STAGE)
    precision: dict[str, NDArray[np.float64]] = {
        name: values["AP"] for name, values in evaluations.items()
    }
    answers = tuple(_examples(test, scores, precision))
    notes = _notes(corpus, candidates, lists, reranker, random_state)

    files = _write(folder, lists, corpus, reranker)
    files["report"] = folder / "report.html"
    write_report(
        files["report"],
        title=TITLE,
        lead=f"BM25 finds {DEPTH} passages for the title of a topic; those that belong to the "
        "topic should stand first. A reranker learned this from some topics, and was tested on "
        f"{table.n_queries} others.",
        queries={topic.name: topic.title for topic in corpus.topics},
        table=table,
        evaluations=evaluations,
        weights={OURS: reranker.model_.weights},
        calibrations={OURS: reranker.calibration_},
        examples=answers,
        notes=notes,
    )
    steps = _next_steps(folder, answers[0].query)
    return DemoResult(table, evaluations, lists, reranker, answers, files, notes, steps)


def _examples(
    data: Lists,
    scores: Mapping[str, NDArray[np.float64]],
    precision: Mapping[str, NDArray[np.float64]],
) -> list[Example]:
    """The topic that gains most, one that is ranked neither well nor badly, and the worst loss.

    ``scores`` (one per row) and ``precision`` (AP, one per query) are those of two systems.
    """
    assert data.queries is not None
    first, second = precision
    ties = tie_break(data.groups, data.docid)
    ranked = {name: order(values, data.groups, ties) for name, values in scores.items()}
    gain = precision[second] - precision[first]
    chosen = {int(gain.argmax()): "The greatest gain of all."}
    chosen.setdefault(_middle(precision[second]), f"A topic in the middle by AP of {second}.")
    chosen.setdefault(int(gain.argmin()), "The greatest loss, or the smallest gain, of all.")
    relevant, starts = data.y > 0, data.groups.starts
    return [
        Example(
            str(data.queries[query]),
            f"{remark} AP {decimal(precision[first][query])} by {first}, "
            f"{decimal(precision[second][query])} by {second}.",
            rankings_of(
                {
                    name: rows[starts[query] : starts[query + 1]].tolist()
                    for name, rows in ranked.items()
                },
                data.texts,
                relevant,
            ),
        )
        for query, remark in chosen.items()
    ]


def _middle(values: NDArray[np.float64]) -> int:
    return int(np.argsort(values, kind="stable")[len(values) // 2])


def _notes(
    corpus: Corpus,
    candidates: Candidates,
    lists: Mapping[str, Lists],
    reranker: TextReranker,
    random_state: int,
) -> tuple[str, ...]:
    relevant = candidates.lists.y.sum() / len(candidates.topics)
    dropped = ", ".join(f"“{topic.title}”" for topic in candidates.dropped)
    sizes = ", ".join(f"{len(part.groups)} topics to {name} on" for name, part in lists.items())
    return (
        f"Text: the language reference that Python {platform.python_version()} carries "
        f"(pydoc_data.topics). Each of its {len(corpus.topics)} headings is a topic and the title "
        f"is the query; relevant are those of all {len(corpus.passages)} paragraphs that stand "
        "below the heading. The texts, and so the numbers, differ between versions of Python.",
        f"Candidates: the first {DEPTH} passages by BM25. They hold "
        f"{candidates.recall:.0%} of a topic’s passages on average; what they miss, no reranking "
        "brings back, and no measure here counts it. "
        f"A topic has {relevant:.1f} relevant candidates on average.",
        f"Left out, as their candidates are all relevant or all not: {len(candidates.dropped)} "
        f"topics ({dropped or 'none'}).",
        f"Split: {sizes}, drawn with seed {random_state}. Topics are disjoint; passages may be "
        "shared, as sections repeat parts of chapters.",
        f"Chosen by cross-validation over the training topics. {reranker.gate_}",
        f"Made by didyma {__version__}.",
    )


def _write(
    folder: Path, lists: Mapping[str, Lists], corpus: Corpus, reranker: TextReranker
) -> dict[str, Path]:
    """The parts as JSON lines, all passages one a line, and the reranker."""
    files = {name: folder / f"{name}.jsonl" for name in lists}
    for name, part in lists.items():
        with replace_when_done(files[name]) as file:
            file.writelines(f"{json.dumps(record)}\n" for record in _records(part))
    files["passages"] = folder / "passages.txt"
    with replace_when_done(files["passages"]) as file:
        file.writelines(f"{passage}\n" for passage in corpus.passages.values())
    files["reranker"] = folder / "reranker.safetensors"
    reranker.save(files["reranker"])
    return files


def _records(lists: Lists) -> list[dict[str, object]]:
    assert lists.queries is not None
    assert lists.docid is not None
    return [
        {
            "qid": str(lists.groups.names[n]),
            "query": query,
            "passages": [
                {"id": str(name), "text": text}
                for name, text in zip(
                    lists.docid[rows].tolist(), (lists.items[row] for row in rows)
                )
            ],
            "labels": lists.y[rows].astype(int).tolist(),
        }
        for n, query in enumerate(lists.queries)
        for rows in [lists.groups.rows_of(n).tolist()]
    ]


def _next_steps(folder: Path, query: str) -> tuple[str, ...]:
    names = "reranker.safetensors", "passages.txt", "test.jsonl", "train.jsonl", "mine.safetensors"
    reranker, passages, test, train, trained = (shlex.quote(str(folder / name)) for name in names)
    asked = f"{reranker} --query {shlex.quote(query)} {passages}"
    return (
        f"didyma rerank rank {asked} --top-k 3",
        f"didyma rerank explain {asked}",
        f"didyma rerank eval {reranker} {test}",
        f"didyma rerank fit {train} -o {trained}",
        f"didyma serve {reranker}",
    )
