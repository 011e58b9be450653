"""Readers of answer sentence selection."""

from __future__ import annotations

import gzip

import pytest

from didyma.data.texts.qa import read_trecqa, read_wikiqa
from didyma.errors import DataError

ROWS = "who ?\tAda .\t1\nwho ?\tA machine .\t0\nwhen ?\tIn 1843 .\t1\n"


def plain(lists):
    starts = lists.groups.starts
    return [
        (question, lists.texts[first:stop], lists.y[first:stop].tolist())
        for question, first, stop in zip(lists.query_texts, starts, starts[1:])
    ]


EXPECTED = [("who ?", ["Ada .", "A machine ."], [1, 0]), ("when ?", ["In 1843 ."], [1])]


def write(path, text):
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("text", [ROWS, ROWS[:-1], ROWS.replace("\n", "\r\n"), "\ufeff" + ROWS])
def test_wikiqa_without_header(tmp_path, text):
    assert plain(read_wikiqa(write(tmp_path / "dev.txt", text))) == EXPECTED


def test_wikiqa_with_the_header_of_the_release(tmp_path):
    lines = ["QuestionID\tQuestion\tDocumentTitle\tSentence\tLabel"]
    lines += ["Q1\twho ?\tT\tAda .\t1", "Q1\twho ?\tT\tA machine .\t0", "Q2\twho ?\tT\tBo .\t1"]
    found = read_wikiqa(write(tmp_path / "dev.tsv", "\n".join(lines)))
    assert plain(found) == [EXPECTED[0], ("who ?", ["Bo ."], [1])]


def test_wikiqa_gzip_and_odd_line_breaks(tmp_path):
    path = tmp_path / "dev.txt.gz"
    path.write_bytes(gzip.compress('who ?\tAda\u2028"Lovelace .\t1\n'.encode()))
    assert plain(read_wikiqa(path)) == [("who ?", ['Ada\u2028"Lovelace .'], [1])]


def folder_of(tmp_path, **changes):
    files = {
        "id": "7\n7\n8\n",
        "a": "Who ?\nWho ?\nWho ?\n",
        "b": "Ada .\nA machine .\nBo .\n",
        "sim": "1\n0\n0\n",
    } | changes
    names = {"id": "id.txt", "a": "a.toks", "b": "b.toks", "sim": "sim.txt"}
    for key, text in files.items():
        if text is not None:
            write(tmp_path / names[key], text)
    return tmp_path


def test_trecqa_folder(tmp_path):
    folder = folder_of(tmp_path)
    expected = [("who ?", ["ada .", "a machine ."], [1, 0]), ("who ?", ["bo ."], [0])]
    assert plain(read_trecqa(folder)) == expected
    assert read_trecqa(folder, lowercase=False).texts == ["Ada .", "A machine .", "Bo ."]


def test_trecqa_table(tmp_path):
    text = "question_id\tquestion\tsentence\tlabel\n7\tWho ?\tAda .\t1\n8\tWho ?\tBo .\t0\n"
    path = write(tmp_path / "train.tsv", text)
    assert plain(read_trecqa(path)) == [("who ?", ["ada ."], [1]), ("who ?", ["bo ."], [0])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected lines of question, sentence and label, found none"),
        ("who ?\tAda .\n", r"line 1: expected 3 fields \(question, sentence, label\), found 2"),
        (ROWS + "\n", "line 4: expected 3 fields .* found 1"),
        (ROWS + "who ?\tAda .\t2\n", "line 4, label: expected 0 or 1, found '2'"),
        (ROWS + "who ?\t \t1\n", "line 4, sentence: expected some text, found none"),
        (ROWS + "\tAda .\t1\n", "line 4, question: expected some text, found none"),
        ("question\tlabel\nwho ?\t1\n", "line 1: expected a column 'sentence' in the header"),
    ],
)
def test_wikiqa_errors_name_the_place(tmp_path, text, message):
    with pytest.raises(DataError, match=f"dev.txt.*{message}"):
        read_wikiqa(write(tmp_path / "dev.txt", text))


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "dev.txt"
    path.write_bytes(ROWS.encode() + b"who ?\t\xff\t1\n")
    with pytest.raises(DataError, match="line 4: expected UTF-8 text"):
        read_wikiqa(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sim": None}, "expected a file sim.txt"),
        ({"b": "Ada .\n"}, "b.toks: expected 3 lines, as in id.txt, found 1"),
        ({"sim": "1\n0\nyes\n"}, "sim.txt, line 3, label: expected 0 or 1, found 'yes'"),
        ({"a": "Who ?\n\nWho ?\n"}, "a.toks, line 2, question: expected some text"),
    ],
)
def test_trecqa_errors_name_the_place(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        read_trecqa(folder_of(tmp_path, **changes))


def test_real_wikiqa(shared_data):
    for split, n_questions, n_pairs, n_mixed in (
        ("train", 2118, 20360, 857),
        ("dev", 296, 2733, 122),
        ("test", 633, 6165, 237),
    ):
        questions = read_wikiqa(shared_data / "wikiqa" / f"{split}.txt")
        assert len(questions.groups) == n_questions
        assert len(questions) == n_pairs
        assert questions.mixed.sum() == n_mixed


def test_real_trecqa(shared_data):
    for name, n_questions, n_pairs in (
        ("train-all.tsv", 1229, 53417),
        ("clean-dev", 65, 1117),
        ("clean-test", 68, 1442),
    ):
        questions = read_trecqa(shared_data / "trecqa" / name)
        assert len(questions.groups) == n_questions
        assert len(questions) == n_pairs
