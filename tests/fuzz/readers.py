"""Readers of files, indexes and checkpoints, as targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import didyma
from didyma import nbest
from didyma.applications.alignment import reader as nli
from didyma.applications.clicks import ClickModel
from didyma.applications.clicks import log as click_log
from didyma.applications.coreference import reader as coreference
from didyma.applications.motif import fasta
from didyma.applications.tagging.tagger import TrigramTagger
from didyma.checkpoints import Checkpoint, checkpoint
from didyma.cli.inputs import read_passages
from didyma.data import conll, letor, lists_folder, trec
from didyma.data import word_vectors as vectors
from didyma.data.lists import Lists
from didyma.data.texts import by_id, corpus, qa
from didyma.data.texts import json_lines as json_texts
from didyma.data.texts import reader as texts
from didyma.errors import DidymaError
from didyma.metrics import evaluate_run
from didyma.ranking.svm import SVMRanker
from didyma.serve.access import BearerTokens
from didyma.text.index import PassageIndex
from tests.fuzz.mutators import Parts
from tests.fuzz.target import Fault, Target, parts_of

__all__ = ["READERS", "judged"]

Seed = Callable[[Path], Parts]
Read = Callable[[Path], Any]


def judged(*, sparse: bool = False) -> Lists:
    """Two queries of four rows."""
    random = np.random.default_rng(1)
    X = random.normal(size=(8, 3)).round(2) * (random.random((8, 3)) < (0.4 if sparse else 1))
    return Lists(
        sp.csr_array(X) if sparse else X,
        np.array([1.0, 0, 2, 0, 0, 1, 0, 0]),
        np.repeat(["a", "b"], 4),
        np.array([f"d{k}" for k in range(8)]),
    )


def given(**files: str) -> Seed:
    """Files of these contents, whose names have a dot where there are two underscores."""
    contents = {name.replace("__", "."): text.encode() for name, text in files.items()}
    return lambda folder: contents


# Rows of features


def rows(name: str, *, sparse: bool = False) -> Target:
    """Rows in the format that a name tells."""

    def seed(folder: Path) -> Parts:
        didyma.write(judged(sparse=sparse), folder / name)
        return parts_of(folder)

    return Target(
        f"rows-{'sparse-' * sparse}{name}", seed, lambda place: read_rows(place / name), learn
    )


def read_rows(path: Path) -> Lists:
    """All rows at once, and some at a time."""
    found = didyma.read(path)
    if sum(map(len, didyma.data.blocks(path))) != len(found):
        raise Fault("blocks have other rows")
    if path.is_dir():
        lists_folder.check(path)
    return found


def learn(data: Lists, folder: Path) -> None:
    """Write in other formats, fit and predict."""
    for name in ("again.txt", "again.csv", "again.npz", "again.lists", "again.jsonl"):
        try:
            didyma.write(data, folder / name)
        except DidymaError:  # not every format can write every text
            continue
        if len(didyma.read(folder / name)) != len(data):
            raise Fault(f"{name} has other rows")
    ranker = SVMRanker(max_iter=2).fit(data)
    if not (np.isfinite(ranker.coef_).all() and np.isfinite(ranker.predict(data)).all()):
        raise Fault("weights or scores that are no numbers")


# Runs, treebanks, texts


def judge(read: Callable[[Path], Any]) -> Callable[[Any, Path], None]:
    def use(found: Any, folder: Path) -> None:
        if read is trec.read_run:
            run, qrels = found, trec.Qrels(found.qid[:1], found.docid[:1], np.ones(1, np.int64))
        else:
            qrels = found
            run = trec.Run(qrels.qid, qrels.docid, np.arange(float(len(qrels))), "t")
        evaluate_run(run, qrels, "AP, nDCG@10")
        trec.join([run], qrels)
        trec.write_run(run.qid, run.docid, run.score, folder / "again")

    return use


def tag(sentences: list[conll.Sentence], folder: Path) -> None:
    conll.write(sentences, folder / "again")
    if [s.lines for s in conll.read(folder / "again")] != [s.lines for s in sentences]:
        raise Fault("other lines were written")
    for sentence in sentences:
        _ = sentence.heads, sentence.sent_id
    words = [sentence.words for sentence in sentences]
    TrigramTagger().fit(words, [s.column(conll.Field.UPOS) for s in sentences]).predict(words)
    conll.read(folder / "again", trees=True)


def resolve(documents: list[coreference.Document], folder: Path) -> None:
    coreference.write(documents, folder / "again")
    again = coreference.read(folder / "again")
    if [own.words for own in documents] != [own.words for own in again]:
        raise Fault("other words were written")


def rerank(lists: Lists, folder: Path) -> None:
    for name in ("again.jsonl", "again.moses"):
        try:
            nbest.write(lists, folder / name)
        except DidymaError:
            continue
        if len(nbest.read(folder / name)) != len(lists):
            raise Fault(f"{name} has other candidates")
    with suppress(DidymaError):  # where there are no references
        nbest.losses(lists)


def entail(pairs: list[nli.Pair], folder: Path) -> None:
    guesses, shares = ["neutral"] * len(pairs), [{"neutral": 1.0}] * len(pairs)
    nli.write_predictions(pairs, guesses, shares, folder / "again")
    if nli.read(folder / "again") != pairs:
        raise Fault("other pairs were written")


def click(log: click_log.ClickLog, folder: Path) -> None:
    found = ClickModel(bootstrap=2, min_impressions=1).fit(log).judge(log)
    if not ((found.lists.y >= 0) & (found.lists.y <= 1)).all():
        raise Fault("a chance that is none")
    json_texts.write(found.lists, folder / "again.jsonl")
    if len(texts.read(folder / "again.jsonl")) != len(found.lists):
        raise Fault("other judgements were written")


def compare_texts(lists: Lists, folder: Path) -> None:
    json_texts.write(lists, folder / "again.jsonl")
    if len(texts.read(folder / "again.jsonl")) != len(lists):
        raise Fault("other texts were written")


def search(passages: list[Any], folder: Path) -> None:
    PassageIndex.build([own.text for own in passages], folder / "index").search("who ?")


WORD = "\t_\tNN\t_\t_\t{}\t_\t_\t_\n"
CONLLU = (
    f"# sent_id = 1\n1-2\tab{WORD.format('_')}1\ta{WORD.format(2)}2\tb{WORD.format(0)}\n"
    f"1\tc{WORD.format(0)}\n"
)
COREFERENCE = (
    "#begin document (d); part 0\nd 0 0 a (1|(2\nd 0 1 b 2)\nd 0 2 c 1)\n\n"
    "d 0 0 d (1)\n\n#end document\n# begin document e\n0\ta\t(1)\n# end document\n"
)
NBEST = (
    '{"id": "x", "input": "a", "reference": "b c", "vector": [1, 2.5], "candidates": '
    '[{"text": "b", "score": -1.5, "features": {"lm": 2}}, {"text": "c", "score": 0}]}\n'
    '{"reference": "e", "vector": [0, 1], "candidates": [{"text": "\\u00e9", "score": 1}]}\n'
)
TEXTS = (
    '{"query": "who ?", "passages": [{"id": 1, "title": "a", "text": "b"}], "labels": [1]}\n'
    '{"query": "who ?", "passage": "c", "docid": "2", "label": 0.5}\n'
    '{"query": "why ?", "positive": {"id": 3, "text": "d"}, "neg": [{"id": 4, "text": "e"}]}\n'
)
CLICKS = (
    '{"query": "who ?", "qid": 7, "document": "Ada .", "position": 1, "clicked": true}\n'
    '{"query": "who ?", "qid": 7, "document": "Ada .", "position": 2, "clicked": 1}\n'
    '{"query": "why ?", "qid": 8, "document": "So .", "position": 1, "clicked": false}\n'
)
COLLECTION = {
    "corpus__jsonl": '{"_id": "d1", "title": "A", "text": "She ."}\n{"_id": "d2", "text": "No"}\n',
    "queries__tsv": "q\twho ?\nr\twhy ?\n",
    "qrels__tsv": "query-id\tcorpus-id\tscore\nq\td1\t1\nq\td2\t0\n",
    "run__tsv": "q\td1\t1\t2.5\nq\td2\t2\t1\n",
}


def one(
    name: str,
    text: str,
    read: Read,
    use: Callable[[Any, Path], object] = lambda found, folder: None,
) -> Target:
    """A file of a name and contents."""
    seed = given(**{name.replace(".", "__"): text})
    return Target(name, seed, lambda place: read(place / name), use)


def read_corpus(path: Path) -> list[Any]:
    return list(corpus.read(path))


def wide_texts(folder: Path) -> Parts:
    import polars

    table = {"query": ["who ?", "why ?"], "passage": ["Ada .", "So ."], "label": [1, 0]}
    polars.DataFrame(table).write_parquet(folder / "texts.parquet")
    return parts_of(folder)


# Folders


def index(folder: Path) -> Parts:
    passages = ["They ring .", {"id": "x", "text": "A ring is round .", "year": 7}, "It rains ."]
    PassageIndex.build(passages, folder / "index")
    return parts_of(folder)


def ask(found: PassageIndex, folder: Path) -> None:
    for query in ("ring", "who rains ?", "x"):
        for own in found.search(query):
            found.spans(query, [own.text])
    found.verify()


class Died(Exception):
    """The end of a process."""


def train() -> Any:
    return SVMRanker(C=100.0, tol=1e-3, callback=None).fit(judged()).coef_


def saved(folder: Path) -> Parts:
    """A checkpoint of training that died on its way."""
    save, count = Checkpoint.save, 0

    def save_and_die(self: Checkpoint) -> None:
        nonlocal count
        save(self)
        count += 1
        if count == 2:
            raise Died

    Checkpoint.save = save_and_die  # type: ignore[method-assign]
    try:
        with checkpoint(folder / "kept", every=0.0):
            train()
    except Died:
        return parts_of(folder)
    finally:
        Checkpoint.save = save  # type: ignore[method-assign]
    raise AssertionError("training was done before it died")


def resume(place: Path) -> Any:
    """Training that goes on, and leaves the checkpoint as it was."""
    save, remove = Checkpoint.save, Checkpoint.remove
    Checkpoint.save = Checkpoint.remove = lambda self: None  # type: ignore[method-assign]
    try:
        with checkpoint(place / "kept", every=0.0):
            return train()
    finally:
        Checkpoint.save, Checkpoint.remove = save, remove  # type: ignore[method-assign]


def targets() -> Iterator[Target]:
    for name in ("data.txt", "data.txt.gz", "data.csv", "data.tsv", "data.jsonl", "data.parquet"):
        yield rows(name)
    for name in ("data.npz", "data.lists"):
        yield rows(name)
        yield rows(name, sparse=True)
    yield rows("data.txt", sparse=True)
    grouped = given(data__txt="1 1:1\n0 1:2\n1 1:3\n", sizes="2\n1\n")
    yield Target(
        "sizes", grouped, lambda place: letor.read(place / "data.txt", group=place / "sizes"), learn
    )
    run, qrels = (
        "q Q0 d1 1 2.5 t\nq Q0 d2 2 1.5 t\nr Q0 d1 1 0 t\n",
        "q 0 d1 1\nq 0 d2 0\nr 0 d1 2\n",
    )
    yield one("run", run, trec.read_run, judge(trec.read_run))
    yield one("qrels", qrels, trec.read_qrels, judge(trec.read_qrels))
    yield one("words.conllu", CONLLU, conll.read, tag)
    yield one("tale.conll", COREFERENCE, coreference.read, resolve)
    yield one("lists.jsonl", NBEST, nbest.read, rerank)
    moses = "0 ||| a b ||| lm= 1 tm= 2 3 ||| 2\n1 ||| b ||| lm= 3 ||| 4\n"
    yield one("lists.moses", moses, nbest.read, rerank)
    yield Target(
        "parallel",
        given(lists=moses, inputs="a\nb\n", references="c\nd\n"),
        lambda place: nbest.read(
            place / "lists", inputs=place / "inputs", references=place / "references"
        ),
        rerank,
    )
    pairs = '{"sentence1": "a", "sentence2": "b", "gold_label": "neutral", "pairID": "7"}\n' * 2
    yield one("pairs.jsonl", pairs, nli.read, entail)
    yield one("pairs.tsv", "a b\tc\t0\nd\te\t2\n", nli.read, entail)
    yield one("sick.tsv", "pair_ID\tsentence_A\tsentence_B\n1\ta\tb\n2\tc\td\n", nli.read, entail)
    wiki = "who ?\tAda .\t1\nwho ?\tNobody .\t0\nwhy ?\tSo .\t1\n"
    yield one("wikiqa.tsv", wiki, qa.read_wikiqa, compare_texts)
    trecqa = given(
        id__txt="1\n1\n", a__toks="who ?\nwho ?\n", b__toks="Ada .\nNo .\n", sim__txt="1\n0\n"
    )
    yield Target("trecqa", trecqa, qa.read_trecqa, compare_texts)
    yield one("texts.jsonl", TEXTS, texts.read, compare_texts)
    table = "query\tpassage\tlabel\nwho ?\tAda .\t1\nwhy ?\tSo .\t0\n"
    yield one("texts.tsv", table, texts.read, compare_texts)
    comma = 'query,passage,score,qid\n"who, me ?",Ada .,2,a\nwhy,b,1,c\n'
    yield one("texts.csv", comma, texts.read, compare_texts)
    yield Target(
        "texts.parquet",
        wide_texts,
        lambda place: texts.read(place / "texts.parquet"),
        compare_texts,
    )
    triples = "who ?\tAda .\tNobody .\nwhy ?\tSo .\tNo .\n"
    yield one("triples.tsv", triples, texts.read, compare_texts)
    yield Target("collection", given(**COLLECTION), texts.read, compare_texts)
    yield Target(
        "files",
        given(**COLLECTION),
        lambda place: texts.read_files(
            queries=place / "queries.tsv",
            passages=place / "corpus.jsonl",
            qrels=place / "qrels.tsv",
            run=place / "run.tsv",
        ),
        compare_texts,
    )
    top = given(**COLLECTION, top__tsv="q\td1\twho ?\tAda .\nq\td2\twho ?\tNobody .\n")
    yield Target("top", top, lambda place: texts.read(place, run=place / "top.tsv"), compare_texts)
    yield one("queries.tsv", COLLECTION["queries__tsv"], by_id.read)
    queries = '{"_id": "q", "text": "who ?"}\n{"qid": 7, "query": "why ?"}\n'
    yield one("queries.jsonl", queries, by_id.read)
    for name, text in {
        "corpus.jsonl": '{"_id": "d1", "title": "Ada", "text": "She ."}\n{"id": 2, "text": "No"}\n',
        "corpus.csv": "id,passage,year\n1,Ada rings .,7\n2,So .,8\n",
        "corpus.tsv": "1\tAda rings .\n2\tSo .\n",
        "corpus.md": "# Ada\n\nShe rings .\n\n## Late\n\nIt rains .\n",
    }.items():
        yield one(name, text, read_corpus, search)
    notes = given(a__txt="Ada rings .\n\nIt rains .\n", b__md="# Late\n\nSo .\n")
    yield Target("documents", notes, read_corpus, search)
    yield one("passages", '{"text": "a", "score": 1}\n{"text": "b", "score": 2}\n', read_passages)
    yield one("clicks.jsonl", CLICKS, click_log.read, click)
    clicks = "query,docid,rank,click,impression\nq,d,1,1,a\nq,e,2,0,a\nq,d,2,1,b\nq,e,1,0,b\n"
    yield one("clicks.csv", clicks, click_log.read, click)
    yield one("vectors.txt", "2 2\na 1 2\nb 3 .5\n", vectors.read)
    yield one("dna.fa", ">a one\nACGT\nNN\n>b\nAC\n", fasta.read)
    yield one("tokens", "# ours\nfirst\nsecond\n", BearerTokens.read)
    yield Target("index", index, lambda place: PassageIndex.open(place / "index"), ask)
    yield Target("checkpoint", saved, resume)


READERS = list(targets())
