from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data import conll
from didyma.data.conll import Field, Sentence
from didyma.errors import DataError

TEXT = """\
# newdoc id = one
# text = I'll go .
1-2\tI'll\t_\t_\t_\t_\t_\t_\t_\t_
1\tI\tI\tPRON\tPRP\t_\t3\tnsubj\t_\t_
2\t'll\twill\tAUX\tMD\t_\t3\taux\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\there\there\tADV\tRB\t_\t_\t_\t3:advmod\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\tSpaceAfter=No

# a comment alone

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_

"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.conllu"
    path.write_text(TEXT)
    return path


def row(number, head="0", form="word"):
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t_\t_\t_"


def test_words_and_columns(path):
    first, comment, last = conll.read(path, trees=True)
    assert first.words == ("I", "'ll", "go", ".")
    assert first.column(Field.XPOS) == ("PRP", "MD", "VB", ".")
    np.testing.assert_array_equal(first.heads, [3, 3, 0, 3])
    assert (len(first), len(comment), len(last)) == (4, 0, 1)
    assert comment.words == ()


def test_what_is_read_is_written(path, tmp_path):
    target = tmp_path / "again.conllu"
    conll.write(conll.read(path), target)
    assert target.read_text() == TEXT


def test_gzip_and_carriage_returns(path, tmp_path):
    packed = tmp_path / "packed.conllu.gz"
    packed.write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode("utf-8-sig")))
    assert [s.words for s in conll.read(packed)] == [s.words for s in conll.read(path)]


def test_replaced_columns_leave_the_rest_alone(path):
    first = conll.read(path)[0]
    changed = first.replaced({Field.HEAD: [2, 0, 2, 2], Field.DEPREL: "abcd"})
    assert changed.heads.tolist() == [2, 0, 2, 2]
    assert changed.column(Field.DEPREL) == tuple("abcd")
    assert changed.lines[3] == "1\tI\tI\tPRON\tPRP\t_\t2\ta\t_\t_"
    kept = [0, 1, 2, 6]
    assert [changed.lines[k] for k in kept] == [first.lines[k] for k in kept]
    assert first.heads.tolist() == [3, 3, 0, 3]
    with pytest.raises(DataError, match="HEAD: expected 4 values, one per word, found 1"):
        first.replaced({Field.HEAD: [0]})


@pytest.mark.parametrize("value", ["a\tb", "a\n", "\r", "a\r\n1\tb"])
def test_what_could_not_be_read_again_is_refused(path, value):
    first = conll.read(path)[0]
    for column in (Field.FORM, Field.DEPREL, Field.MISC):
        with pytest.raises(DataError, match=rf"{column.name}: expected no tab and no line end"):
            first.replaced({column: ["x", "y", value, "z"]})
    with pytest.raises(DataError, match="FORM: expected no tab and no line end"):
        Sentence.from_words(["x", value])
    with pytest.raises(DataError, match="HEAD: expected the id of the head"):
        first.replaced({Field.HEAD: [0, 1, "two", 1]})
    with pytest.raises(DataError, match="FORM: expected a word"):
        first.replaced({Field.FORM: ["x", "y", "", "z"]})
    with pytest.raises(DataError, match="comments of one line"):
        first.with_comments(["right", "wrong\n"])


def test_added_comments_stand_after_the_others(path):
    first = conll.read(path)[0].with_comments(["probability = 1"])
    assert first.lines[2] == "# probability = 1"
    assert first.replaced({Field.UPOS: "ABCD"}).column(Field.UPOS) == tuple("ABCD")
    assert first.lines[first.token_lines[0]].startswith("1\tI\t")


def test_open_heads(tmp_path):
    path = tmp_path / "open.conll"
    path.write_text(f"{row(1, '_')}\n{row(2, '0')}\n")
    (sentence,) = conll.read(path)
    assert sentence.heads is None
    with pytest.raises(DataError, match=r"line 1, HEAD: expected the id of the head, or 0, found"):
        conll.read(path, trees=True)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["1 word"], "line 3: expected 10 columns separated by tabs, found 1"),
        ([row(2)], "line 3, ID: expected 1, found '2'"),
        ([row(1), row(1)], "line 4, ID: expected 2, found '1'"),
        ([row("x")], "line 3, ID: expected 1, found 'x'"),
        ([row("2-3"), row(1)], "line 3, ID: expected a range from 1, found '2-3'"),
        ([row("1-3"), row(1)], "line 4, ID: a multiword token reaches to 3, but the last word"),
        ([row(1), row("3.1")], "line 4, ID: expected an empty node after word 1, found '3.1'"),
        (
            [row(1), row(2), row("1.1")],
            "line 5, ID: expected an empty node after word 2, found '1.1'",
        ),
        ([row(1, "x")], "line 3, HEAD: expected the id of the head, 0 or _, found 'x'"),
        ([row(1, "-1")], "line 3, HEAD: expected the id of the head, 0 or _, found '-1'"),
        ([row(1, "9" * 19)], "line 3, HEAD: expected the id of the head, 0 or _, found '9999"),
        ([row(1, "9" * 5000)], "line 3, HEAD: expected the id of the head, 0 or _, found '9999"),
        ([row("1-" + "9" * 5000), row(1)], "line 3, ID: expected 1, found '1-9999"),
        ([row(1), row("1." + "9" * 5000)], "line 4, ID: expected 2, found '1.9999"),
        ([row("9" * 5000)], "line 3, ID: expected 1, found '9999"),
        ([row(1, form="")], "line 3, FORM: expected a word, found nothing"),
        ([row(1, 2), row(2, 3), row(3, 1)], "line 3, HEAD: the sentence has no root"),
        ([row(1, 0), row(2, 3), row(3, 2)], "line 4, HEAD: the heads form a cycle, 2 → 3 → 2"),
        ([row(1, 0), row(2, 7)], "line 4, HEAD: expected a head up to 2, found 7"),
        ([row(1, 0), row(2, 2)], "line 4, HEAD: word 2 is its own head"),
    ],
)
def test_damaged_files(tmp_path, rows, problem):
    path = tmp_path / "bad.conllu"
    path.write_text("\n".join(["# a", "# b", *rows, "", ""]))
    with pytest.raises(DataError, match=rf"bad\.conllu, {problem}"):
        conll.read(path, trees=True)


def test_empty_files(tmp_path):
    path = tmp_path / "empty.conllu"
    path.write_text("\n\n")
    with pytest.raises(DataError, match="expected sentences, found none"):
        conll.read(path)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_trees_are_what_leads_to_the_root(heads):
    heads = [head % (len(heads) + 1) for head in heads]

    def leads_to_root(word):
        for _ in heads:
            if word:
                word = heads[word - 1]
        return word == 0

    sentence = Sentence.from_words("w" * len(heads)).replaced({Field.HEAD: heads})
    if all(leads_to_root(word) for word in range(1, len(heads) + 1)):
        sentence.check_tree()
    else:
        with pytest.raises(DataError, match="HEAD"):
            sentence.check_tree()


def test_real_treebanks(shared_data, tmp_path):
    source = shared_data / "ud" / "vi_vtb_ud2.0" / "vi-ud-dev.conllu"
    sentences = conll.read(source, trees=True)
    assert (len(sentences), sum(map(len, sentences))) == (800, 11514)
    conll.write(sentences, tmp_path / "again")
    assert (tmp_path / "again").read_text() == source.read_text()
