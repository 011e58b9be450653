"""Damaged files of every format: they are read, or refused with an error of ours, and never crash.

Each round damages a small valid file and gives it to the reader of its format; what the reader
accepts goes on to writers, `fit` and `predict`. The same files go through the command line.
`DIDYMA_FUZZ_ROUNDS=5000 pytest tests/fuzz` runs longer; a failure names the round, and
`DIDYMA_FUZZ_SEED` starts elsewhere.
"""

from __future__ import annotations

import gzip
import io
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import didyma
from didyma.cli import app
from didyma.data import Lists
from didyma.errors import DidymaError
from didyma.estimators.svm import SVMRanker
from didyma.estimators.tagger import TrigramTagger
from didyma.formats import (
    click_log,
    conll,
    coreference,
    fasta,
    json_texts,
    letor,
    nbest,
    nli,
    qa,
    texts,
    trec,
    vectors,
)
from didyma.learning import ClickModel
from didyma.metrics import evaluate_run

ROUNDS = int(os.environ.get("DIDYMA_FUZZ_ROUNDS", "40"))
SEED = int(os.environ.get("DIDYMA_FUZZ_SEED", "0"))

# What damages a file more cleverly than a random byte does.
WORDS = [
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b" "),
    *(b"0", b"-1", b"1e309", b"-1e-320", b"nan", b"inf", b"0x1p3", b"1_0", b"\xd9\xa1"),
    *(b"9" * 19, b"9" * 30, b"1" * 5000, b"9007199254740993", b"2147483647", b"4294967296"),
    *(b'"', b"'", b",", b":", b"#", b"|", b"(", b")", b"{", b"}", b"[", b"]", b"null", b"_", b"-"),
]


def damaged(contents: bytes, random: Random) -> bytes:
    """The contents with one to three faults."""
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(contents) + 1)
        stop = min(len(contents), at + random.choice([1, 1, 2, 8, 64]))
        match random.randrange(7):
            case 0:  # another byte
                contents = contents[:at] + bytes([random.randrange(256)]) + contents[at + 1 :]
            case 1:  # a bit
                flipped = bytes(byte ^ 1 << random.randrange(8) for byte in contents[at : at + 1])
                contents = contents[:at] + flipped + contents[at + 1 :]
            case 2:
                contents = contents[:at] + contents[stop:]
            case 3:
                contents = contents[:stop] + contents[at:]
            case 4:
                contents = contents[:at]
            case 5:
                contents = contents[:at] + random.choice(WORDS) + contents[at:]
            case 6:  # a word for a word
                parts = contents.split(b" ")
                parts[random.randrange(len(parts))] = random.choice(WORDS)
                contents = b" ".join(parts)
    return contents


def judged(sparse: bool) -> Lists:
    random = np.random.default_rng(1)
    X = random.normal(size=(8, 3)).round(2) * (random.random((8, 3)) < (0.4 if sparse else 1))
    return Lists(
        sp.csr_array(X) if sparse else X,
        np.array([1.0, 0, 2, 0, 0, 1, 0, 0]),
        np.repeat(["a", "b"], 4),
        np.array([f"d{k}" for k in range(8)]),
    )


def written(name: str, *, sparse: bool = False) -> Callable[[Path], bytes]:
    def make(folder: Path) -> bytes:
        didyma.write(judged(sparse), folder / name)
        return (folder / name).read_bytes()

    return make


def learn(path: Path) -> None:
    """Read, write in other formats, fit and predict."""
    data = didyma.read(path)
    for name in ("again.txt", "again.csv", "again.npz"):
        try:
            didyma.write(data, path.with_name(name))
        except DidymaError:  # not every format can write every text
            continue
        assert len(didyma.read(path.with_name(name))) == len(data)
    ranker = SVMRanker(max_iter=2).fit(data)
    assert np.isfinite(ranker.coef_).all()
    assert np.isfinite(ranker.predict(didyma.read(path, like=ranker))).all()


def restore(path: Path) -> None:
    didyma.load(path).predict(judged(sparse=False))


def model(folder: Path) -> bytes:
    SVMRanker(tol=0.5).fit(judged(sparse=False)).save(folder / "model")
    return (folder / "model").read_bytes()


def answer(path: Path) -> None:
    found = didyma.load(path).rank("who rings ?", ["They ring .", "It rains ."])
    assert {own.index for own in found} == {0, 1}


def reranker(folder: Path) -> bytes:
    passages = [["They ring .", "It rains ."], ["It is late .", "They rang ."]]
    fitted = didyma.TextReranker(quick=True).fit(
        ["who rings ?", "who ?"], passages, [[1, 0], [0, 1]]
    )
    fitted.save(folder / "model")
    return (folder / "model").read_bytes()


def judge(path: Path) -> None:
    if path.name.startswith("run"):
        run = trec.read_run(path)
        qrels = trec.Qrels(run.qid[:1], run.docid[:1], np.ones(1, np.int64))
    else:
        qrels = trec.read_qrels(path)
        run = trec.Run(qrels.qid, qrels.docid, np.arange(float(len(qrels))), "t")
    evaluate_run(run, qrels, "AP, nDCG@10")
    trec.join([run], qrels)
    trec.write_run(run.qid, run.docid, run.score, path.with_name("again"))


def tag(path: Path) -> None:
    sentences = conll.read(path)
    conll.write(sentences, path.with_name("again"))
    assert [s.lines for s in conll.read(path.with_name("again"))] == [s.lines for s in sentences]
    for sentence in sentences:
        _ = sentence.heads, sentence.sent_id
    words = [sentence.words for sentence in sentences]
    TrigramTagger().fit(words, [s.column(conll.Field.UPOS) for s in sentences]).predict(words)
    conll.read(path, trees=True)


def resolve(path: Path) -> None:
    documents = coreference.read(path)
    coreference.write(documents, path.with_name("again"))
    for old, new in zip(documents, coreference.read(path.with_name("again")), strict=True):
        assert old.words == new.words


def rerank(path: Path) -> None:
    lists = nbest.read(path)
    for name in ("again.jsonl", "again.moses"):
        try:
            nbest.write(lists, path.with_name(name))
        except DidymaError:
            continue
        assert len(nbest.read(path.with_name(name))) == len(lists)
    nbest.losses(lists)


def entail(path: Path) -> None:
    pairs = nli.read(path)
    guesses, shares = ["neutral"] * len(pairs), [{"neutral": 1.0}] * len(pairs)
    nli.write_predictions(pairs, guesses, shares, path.with_name("again"))
    assert nli.read(path.with_name("again")) == pairs


def collect(path: Path) -> None:
    """Read a folder of which this file is a part."""
    for name, contents in {
        "queries.tsv": "q\twho ?\nr\twhy ?\n",
        "corpus.tsv": "d1\tAda .\nd2\tNobody .\n",
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq\td1\t1\n",
        "run.tsv": "q\td1\t1\nq\td2\t2\n",
    }.items():
        if name.partition(".")[0] != path.name.partition(".")[0]:
            path.with_name(name).write_text(contents)
    texts.read(path.parent, run=path if path.name.startswith("top") else None)


def sizes(path: Path) -> None:
    data = path.with_name("plain.txt")
    data.write_text("1 1:1\n0 1:2\n1 1:3\n")
    letor.read(data, group=path)


def click(path: Path) -> None:
    log = click_log.read(path)
    assert (log.clicks <= log.impressions).all()
    judged = ClickModel(bootstrap=2, min_impressions=1).fit(log).judge(log)
    assert ((judged.lists.y >= 0) & (judged.lists.y <= 1)).all()
    json_texts.write(judged.lists, path.with_name("again.jsonl"))
    assert len(texts.read(path.with_name("again.jsonl"))) == len(judged.lists)


def text(contents: str) -> Callable[[Path], bytes]:
    return lambda folder: contents.encode()


WORD = "\t_\tNN\t_\t_\t{}\t_\t_\t_\n"
# A name for the file, valid contents, and what is done with it.
FORMATS: dict[str, tuple[Callable[[Path], bytes], Callable[[Path], Any]]] = {
    "dense.txt": (written("dense.txt"), learn),
    "sparse.txt": (written("sparse.txt", sparse=True), learn),
    "packed.txt.gz": (written("packed.txt.gz"), learn),
    "table.csv": (written("table.csv"), learn),
    "table.tsv": (written("table.tsv"), learn),
    "table.parquet": (written("table.parquet"), learn),
    "dense.npz": (written("dense.npz"), learn),
    "sparse.npz": (written("sparse.npz", sparse=True), learn),
    "model.safetensors": (model, restore),
    "reranker.safetensors": (reranker, answer),
    "sizes": (text("2\n1\n"), sizes),
    "run": (text("q Q0 d1 1 2.5 tag\nq Q0 d2 2 1.5 tag\nr Q0 d1 1 0 tag\n"), judge),
    "qrels": (text("q 0 d1 1\nq 0 d2 0\nr 0 d1 2\n"), judge),
    "words.conllu": (
        text(
            f"# sent_id = 1\n1-2\tab{WORD.format('_')}1\ta{WORD.format(2)}2\tb{WORD.format(0)}\n"
            f"1\tc{WORD.format(0)}\n"
        ),
        tag,
    ),
    "tale.conll": (
        text(
            "#begin document (d); part 0\nd 0 0 a (1|(2\nd 0 1 b 2)\nd 0 2 c 1)\n\n"
            "d 0 0 d (1)\n\n#end document\n# begin document e\n0\ta\t(1)\n# end document\n"
        ),
        resolve,
    ),
    "lists.jsonl": (
        text(
            '{"id": "1", "input": "a", "reference": "b c", "vector": [1, 2.5], "candidates": '
            '[{"text": "b", "score": -1.5, "features": {"lm": 2}}, {"text": "c", "score": 0}]}\n'
            '{"candidates": [{"text": "\\u00e9", "score": 1}]}\n'
        ),
        rerank,
    ),
    "lists.moses": (text("0 ||| a b ||| lm= 1 tm= 2 3 ||| 2\n1 ||| b ||| lm= 3 ||| 4\n"), rerank),
    "pairs.jsonl": (
        text('{"sentence1": "a", "sentence2": "b", "gold_label": "neutral", "pairID": "7"}\n' * 2),
        entail,
    ),
    "pairs.tsv": (text("a b\tc\t0\nd\te\t2\n"), entail),
    "sick.tsv": (text("pair_ID\tsentence_A\tsentence_B\n1\ta\tb\n2\tc\td\n"), entail),
    "wikiqa.tsv": (text("who ?\tAda .\t1\nwho ?\tNobody .\t0\nwhy ?\tSo .\t1\n"), qa.read_wikiqa),
    "texts.jsonl": (
        text(
            '{"query": "who ?", "passages": [{"id": 1, "title": "a", "text": "b"}], '
            '"labels": [1]}\n'
            '{"query": "who ?", "passage": "c", "docid": "2", "label": 0.5}\n'
            '{"query": "why ?", "positive": {"id": 3, "text": "d"}, '
            '"neg": [{"id": 4, "text": "e"}]}\n'
        ),
        texts.read,
    ),
    "texts.tsv": (text("query\tpassage\tlabel\nwho ?\tAda .\t1\nwhy ?\tSo .\t0\n"), texts.read),
    "texts.csv": (text('query,passage,score,qid\n"who, me ?",Ada .,2,a\nwhy,b,1,c\n'), texts.read),
    "triples.tsv": (text("who ?\tAda .\tNobody .\nwhy ?\tSo .\tNo .\n"), texts.read),
    "corpus.jsonl": (
        text('{"_id": "d1", "title": "Ada", "text": "She ."}\n{"_id": "d2", "text": "No ."}\n'),
        collect,
    ),
    "queries.tsv": (text("q\twho ?\nr\twhy ?\n"), collect),
    "qrels.tsv": (text("query-id\tcorpus-id\tscore\nq\td1\t1\nq\td2\t0\n"), collect),
    "run.tsv": (text("q\td1\t1\t2.5\nq\td2\t2\t1\n"), collect),
    "top1000.tsv": (text("q\td1\twho ?\tAda .\nq\td2\twho ?\tNobody .\n"), collect),
    "clicks.jsonl": (
        text(
            '{"query": "who ?", "qid": 7, "document": "Ada .", "position": 1, "clicked": true}\n'
            '{"query": "who ?", "qid": 7, "document": "Ada .", "position": 2, "clicked": 1}\n'
            '{"query": "why ?", "qid": 8, "document": "So .", "position": 1, "clicked": false}\n'
        ),
        click,
    ),
    "clicks.csv": (
        text("query,docid,rank,click,impression\nq,d,1,1,a\nq,e,2,0,a\nq,d,2,1,b\nq,e,1,0,b\n"),
        click,
    ),
    "vectors.txt": (text("2 2\na 1 2\nb 3 .5\n"), vectors.read),
    "dna.fa": (text(">a one\nACGT\nNN\n>b\nAC\n"), lambda path: [*map(len, fasta.read(path))]),
}


def rounds(name: str, folder: Path) -> Iterator[tuple[int, Path]]:
    """A damaged file, again and again; some are packed before the damage, some after it."""
    contents = FORMATS[name][0](folder)
    for number in range(SEED, SEED + ROUNDS):
        random = Random(f"{name} {number}")
        path = folder / name
        changed = damaged(contents, random)
        if not name.endswith((".npz", ".gz")) and random.random() < 0.1:
            changed = random.choice(
                [gzip.compress(changed), damaged(gzip.compress(contents), random)]
            )
        path.write_bytes(changed)
        yield number, path


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    for number, path in rounds(name, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                FORMATS[name][1](path)
            except DidymaError:
                continue
            except Exception as error:
                error.add_note(f"round {number} of {name}: {path.read_bytes()[:2000]!r}")
                raise


COMMANDS: dict[str, tuple[str, ...]] = {
    "dense.txt": ("inspect {}", "convert {} {}.csv", "fit {} -o {}.model --max-iter 2"),
    "sparse.npz": ("inspect {}", "convert {} {}.txt", "fit {} -o {}.model --max-iter 2"),
    "table.csv": ("convert {} {}.parquet", "fit {} -o {}.model --scale query-minmax --max-iter 2"),
    "table.parquet": ("convert {} {}.txt",),
    "model.safetensors": ("inspect {}", "predict {} {}.data"),
    "qrels": ("eval {}.run {}",),
    "words.conllu": ("tag fit {} -o {}.model --tags upos",),
    "tale.conll": ("coref eval {} {}",),
    "lists.jsonl": ("nbest oracle {}",),
    "texts.jsonl": ("rerank fit {} -o {}.model --quick",),
    "dna.fa": ("motif fit {} --negatives {} -o {}.model -l 2 --restarts 1",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_with_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "qrels.run").write_text("q Q0 d1 1 2.5 tag\n")
    (tmp_path / "model.safetensors.data").write_text("1 qid:a 1:2 3:1\n")
    for number, path in rounds(name, tmp_path):
        if number % 4:
            continue
        command = COMMANDS[name][number // 4 % len(COMMANDS[name])].replace("{}", str(path))
        found = CliRunner().invoke(app, command.split())
        place = f"round {number} of {name}: {command}\n{path.read_bytes()[:2000]!r}\n{found.output}"
        assert found.exception is None or isinstance(found.exception, SystemExit), place
        assert found.exit_code in (0, 1), place
        if found.exit_code == 1:
            assert found.stderr.splitlines()[-1].startswith("error: "), place
        assert "Traceback" not in found.output, place


def test_sparse_parts_are_refused_or_learned_from(tmp_path: Path) -> None:
    """Parts of a CSR matrix with other numbers in them."""
    whole = judged(sparse=True)
    parts = {name: np.asarray(getattr(whole.X, name)) for name in ("data", "indices", "indptr")}
    parts |= {"shape": np.array(whole.X.shape), "y": whole.y, "qid": whole.qid}
    odd = [-1, 0, 1, 3, 7, 8, 100, 2**31 - 1, 2**31, 2**40, -(2**31), 2**63 - 1]
    for number in range(SEED, SEED + 5 * ROUNDS):
        random = Random(number)
        changed = dict(parts)
        for _ in range(random.randint(1, 2)):
            name = random.choice(["data", "indices", "indptr", "shape", "y"])
            array = changed[name].astype(random.choice([np.int64, np.int64, np.float64, np.uint64]))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = np.array(random.choice(odd)).astype(array.dtype)
            if len(array):
                array[random.randrange(len(array))] = value
            if random.random() < 0.2:
                array = array[: random.randrange(len(array) + 1)]
            changed[name] = array
        buffer = io.BytesIO()
        np.savez(buffer, **changed)
        path = tmp_path / "parts.npz"
        path.write_bytes(buffer.getvalue())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                learn(path)
            except DidymaError:
                continue
