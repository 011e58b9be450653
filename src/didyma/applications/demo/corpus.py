"""Real text that is on every machine: the language reference that Python's own `help` shows.

Each heading of the reference is a topic, and its title a query. The paragraphs below a heading,
those of its sections included, are the topic's passages. The reference repeats some titles and many
paragraphs; each counts once, so that a passage may belong to several topics. The first stage, BM25,
finds candidates for each topic, which are judged by whether they belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from didyma import DataError
from didyma.data import Lists
from didyma.text import BM25

SHORT = 8  # words below which a paragraph says too little by itself
UNDERLINES = "*=-~^"  # of headings, from pages down to the smallest section

DEPTH = 50  # candidates of a topic
PARTS = {"train": 0.6, "test": 0.4}

_WORD = re.compile(r"\w+")
_BLANK = re.compile(r"\n\s*\n")
_TABLE = re.compile(r"^ *[+|][-=+|]+$|^ *\||\|$| \| ", re.MULTILINE)


@dataclass(frozen=True)
class Topic:
    """A query, by a name without spaces and by its text, and the names of its passages."""

    name: str
    title: str
    passages: frozenset[str]


@dataclass(frozen=True)
class Corpus:
    """Topics, and the passages, by name, among which theirs are to be found."""

    topics: tuple[Topic, ...]
    passages: dict[str, str]


def language_reference() -> Corpus:
    """The topics of Python's language reference; those of the Python that runs this."""
    from pydoc_data.topics import topics

    return read_corpus(topics)


def read_corpus(pages: Mapping[str, str]) -> Corpus:
    """Topics and passages of pages of text, whose headings are underlined.

    >>> page = "Lists\\n*****\\n\\nA list display yields a new list object. It may be empty."
    >>> read_corpus({"lists": page})  # doctest: +NORMALIZE_WHITESPACE
    Corpus(topics=(Topic(name='list', title='Lists', passages=frozenset({'p0001'})),),
           passages={'p0001': 'A list display yields a new list object. It may be empty.'})
    """
    from Stemmer import Stemmer

    stem = Stemmer("english").stemWords
    names: dict[str, str] = {}
    titles: dict[str, str] = {}
    members: dict[str, set[str]] = {}
    for page in sorted(pages):
        for headings, passage in _passages(pages[page]):
            name = names.setdefault(passage, f"p{len(names) + 1:04}")
            for title in headings:
                topic = "-".join(stem(_WORD.findall(title.lower())))
                titles.setdefault(topic, title)
                members.setdefault(topic, set()).add(name)
    topics = (Topic(name, title, frozenset(members[name])) for name, title in titles.items())
    return Corpus(tuple(topics), {name: passage for passage, name in names.items()})


def _passages(page: str) -> Iterator[tuple[list[str], str]]:
    """Each passage of a page, with the headings that it stands under.

    What is short (a signature) or ends in a colon leads to the next paragraph, and is joined to it.
    """
    headings: dict[int, str] = {}
    lead = ""
    for block in _BLANK.split(page.strip()):
        if heading := _heading(block):
            level, title = heading
            headings = {above: headings[above] for above in headings if above < level}
            headings[level] = title
            lead = ""
            continue
        passage = f"{lead} {' '.join(_TABLE.sub(' ', block).split())}".strip().removeprefix("* ")
        n_words = len(_WORD.findall(passage))
        if n_words < SHORT or passage.endswith(":"):
            lead = passage if n_words else ""
            continue
        lead = ""
        yield list(headings.values()), passage


def _heading(block: str) -> tuple[int, str] | None:
    """Level and title of a heading: a line with words, underlined in full."""
    title, _, line = block.partition("\n")
    mark = line[:1]
    if not mark or mark not in UNDERLINES or line != mark * len(title) or not _WORD.search(title):
        return None
    return UNDERLINES.index(mark), re.sub(r'["*]', "", title)


@dataclass(frozen=True)
class Candidates:
    """The passages that the first stage finds for each topic, judged by membership.

    ``recall`` is the share of a topic's passages that are found, averaged over all topics. Topics
    in ``dropped`` have no candidate that is relevant, or none that is not: nothing to rank.
    """

    lists: Lists
    topics: tuple[Topic, ...]
    dropped: tuple[Topic, ...]
    recall: float


def retrieve(corpus: Corpus, depth: int = DEPTH) -> Candidates:
    """The best ``depth`` passages by BM25 for each title."""
    names, texts = list(corpus.passages), list(corpus.passages.values())
    best = BM25().fit(texts).top([topic.title for topic in corpus.topics], depth)
    candidates = [[names[place] for place in places] for places, _ in best]
    judged = [
        [name in topic.passages for name in listed]
        for topic, listed in zip(corpus.topics, candidates)
    ]
    recall = [sum(relevant) / len(topic.passages) for topic, relevant in zip(corpus.topics, judged)]
    chosen = [n for n, relevant in enumerate(judged) if any(relevant) and not all(relevant)]
    if not chosen:
        raise DataError("no topic has candidates that are relevant and others that are not")
    topics = tuple(corpus.topics[n] for n in chosen)
    lists = Lists(
        [corpus.passages[name] for n in chosen for name in candidates[n]],
        np.array([value for n in chosen for value in judged[n]], dtype=np.float64),
        np.repeat([topic.name for topic in topics], [len(candidates[n]) for n in chosen]),
        np.array([name for n in chosen for name in candidates[n]]),
        queries=[topic.title for topic in topics],
        scores=np.concatenate([best[n][1] for n in chosen]),
    )
    dropped = tuple(topic for topic in corpus.topics if topic not in topics)
    return Candidates(lists, topics, dropped, float(np.mean(recall)))


def split(lists: Lists, random_state: int) -> dict[str, Lists]:
    """Lists to learn from and lists to test on: they are shuffled and dealt out by `PARTS`."""
    n_queries = len(lists.groups)
    shuffled = np.random.default_rng(random_state).permutation(n_queries)
    bounds = np.round(np.cumsum(list(PARTS.values())) * n_queries).astype(np.int64)
    parts = zip(PARTS, np.split(shuffled, bounds[:-1]))
    return {name: lists.select_lists(np.sort(numbers)) for name, numbers in parts}
