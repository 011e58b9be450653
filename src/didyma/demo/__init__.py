"""The whole path on real text: judged results, three rankers, a comparison and a report."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from didyma import __version__
from didyma.data import Lists
from didyma.demo.candidates import DEPTH, Candidates, retrieve, split
from didyma.demo.corpus import Corpus, language_reference
from didyma.demo.examples import examples
from didyma.demo.experiment import CS, RANKERS, train
from didyma.files import PathName, replace_when_done
from didyma.formats import letor
from didyma.metrics import Evaluation, Evaluator, wilcoxon
from didyma.report.html import require_extra, write_report
from didyma.report.table import ComparisonTable, comparison, decimal

__all__ = ["DemoResult", "run"]

FIRST_STAGE = "BM25"
MEASURES = "AP RR P@1"
TITLE = "Python’s language reference: finding the passages of a topic by its title"


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found, and the files that it wrote.

    ``data`` are the parts "train", "dev" and "test", ``models`` the rankers by name, ``files`` the
    paths by what they hold; ``next_steps`` are commands that go on from these files.
    """

    table: ComparisonTable
    evaluations: Mapping[str, Evaluation]
    data: Mapping[str, Lists]
    models: Mapping[str, Any]
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
    """Learn to rank the passages of Python's language reference; write data, models and a report.

    Queries are the titles of topics, candidates the first passages by BM25. SVMmap, SVMroc and
    SVMacc learn to rerank them on some topics, with the C that is best on others, and are compared
    with BM25 on the rest. ``random_state`` deals out the topics, ``report`` is called with a line
    of text at each step, and ``corpus`` takes the place of the language reference.
    """
    require_extra()
    say = report or (lambda line: None)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    corpus = language_reference() if corpus is None else corpus
    say(f"{len(corpus.topics)} topics, {len(corpus.passages)} passages")
    candidates = retrieve(corpus)
    data = split(candidates.data, random_state)
    sizes = ", ".join(f"{len(part.groups)} {name}" for name, part in data.items())
    say(f"{len(candidates.topics)} topics have candidates to rank: {sizes}")

    trained = {}
    for name, ranker in RANKERS.items():
        trained[name] = train(ranker, data["train"], data["dev"])
        best = max(value for _, value in trained[name].curve)
        say(f"{name}: C = {trained[name].ranker.C:g}, development AP {decimal(best)}")
    models = {name: result.ranker for name, result in trained.items()}

    test = data["test"]
    evaluator = Evaluator(test.y, test.groups, MEASURES, docid=test.docid)
    assert test.scores is not None
    scores = {FIRST_STAGE: test.scores}
    scores |= {name: model.predict(test.X) for name, model in models.items()}
    evaluations = {name: evaluator(values) for name, values in scores.items()}
    table = comparison(evaluations, baseline=FIRST_STAGE)
    notes = (*_notes(corpus, candidates, data, random_state), _among_themselves(evaluations))

    files = _write_data(folder, data, corpus) | _write_models(folder, models, candidates.features)
    files["report"] = folder / "report.html"
    shown = (FIRST_STAGE, "SVMmap")
    write_report(
        files["report"],
        title=TITLE,
        lead=f"BM25 finds {DEPTH} passages for the title of a topic; those that belong to the "
        "topic should stand first. Three rankers learned this from some topics, and were tested on "
        f"{table.n_queries} others.",
        queries={topic.name: topic.title for topic in corpus.topics},
        table=table,
        evaluations=evaluations,
        histories={name: result.history for name, result in trained.items()},
        curves={name: result.curve for name, result in trained.items()},
        weights={
            name: dict(zip(candidates.features, model.coef_.tolist()))
            for name, model in models.items()
        },
        examples=examples(
            test,
            {name: scores[name] for name in shown},
            {name: evaluations[name]["AP"] for name in shown},
            corpus,
        ),
        notes=notes,
    )
    return DemoResult(table, evaluations, data, models, files, notes, _next_steps(folder))


def _notes(
    corpus: Corpus, candidates: Candidates, data: Mapping[str, Lists], random_state: int
) -> list[str]:
    """How the numbers came about."""
    relevant = candidates.data.y.sum() / len(candidates.topics)
    dropped = ", ".join(f"“{topic.title}”" for topic in candidates.dropped)
    sizes = ", ".join(f"{len(part.groups)} topics for {name}" for name, part in data.items())
    return [
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
        f"Features: {len(candidates.features)} lexical similarities of title and passage, "
        "standardised within each topic.",
        f"Split: {sizes}, drawn with seed {random_state}. Topics are disjoint; passages may be "
        "shared, as sections repeat parts of chapters.",
        f"C: the value among {', '.join(f'{C:g}' for C in CS)} with the best AP on the development "
        "topics. Models are fitted on the training topics alone.",
        f"Made by didyma {__version__}. SVMmap minimises a bound on 1 − AP, SVMroc on the share of "
        "wrongly ordered pairs, SVMacc is a linear SVM that classifies passages one by one.",
    ]


def _among_themselves(evaluations: Mapping[str, Evaluation]) -> str:
    """The learned rankers against each other, which the table does not show."""
    found = []
    for a, b in combinations(RANKERS, 2):
        gain = evaluations[a].mean("AP") - evaluations[b].mean("AP")
        p_value = wilcoxon(evaluations[a]["AP"], evaluations[b]["AP"])
        found.append(f"{a} − {b} {decimal(gain, signed=True)} (p = {decimal(p_value)})")
    return (
        f"The learned rankers against each other, difference in AP: {'; '.join(found)}. "
        "Another seed may order them differently."
    )


def _write_data(folder: Path, data: Mapping[str, Lists], corpus: Corpus) -> dict[str, Path]:
    """The parts as LETOR files, and the texts that their query and document ids stand for."""
    files = {name: folder / f"{name}.letor" for name in data}
    for name, part in data.items():
        letor.write(part, files[name])
    texts = {
        "queries": {topic.name: topic.title for topic in corpus.topics},
        "passages": corpus.passages,
    }
    for name, text in texts.items():
        files[name] = folder / f"{name}.tsv"
        with replace_when_done(files[name]) as file:
            file.writelines(f"{key}\t{line}\n" for key, line in text.items())
    return files


def _write_models(
    folder: Path, models: Mapping[str, Any], features: tuple[str, ...]
) -> dict[str, Path]:
    files = {}
    for name, model in models.items():
        model.feature_names_in_ = np.array(features, dtype=object)
        files[name] = folder / f"{name.lower()}.safetensors"
        model.save(files[name])
    return files


def _next_steps(folder: Path) -> tuple[str, ...]:
    names = "train.letor", "dev.letor", "test.letor", "svmmap.safetensors", "mine.safetensors"
    train, dev, test, svmmap, own = (shlex.quote(str(folder / name)) for name in names)
    return (
        f"didyma fit {train} --dev {dev} --loss ndcg --C 1,10,100 -o {own}",
        f"didyma compare --data {test} {svmmap} {own}",
        f"didyma inspect {svmmap}",
    )
