"""Coreference files: brackets of all kinds, what is kept, and what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.applications.coreference import reader as coreference
from didyma.applications.coreference.reader import Document, find, read, write
from didyma.errors import DataError


def text_of(*sentences, name="tale", separator="\t", middle="_", part="0"):
    """A file with sentences of (word, brackets)."""
    lines = [f"#begin document ({name}); part {part}"]
    for sentence in sentences:
        for k, (word, brackets) in enumerate(sentence):
            lines.append(separator.join([name, part, str(k), word, *[middle] * 8, brackets]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


NESTED = text_of(
    [("Emma", "(3)"), ("met", "-"), ("her", "(5|(3)"), ("uncle", "5)"), (".", "-")],
    [("He", "(5)"), ("smiled", "-")],
)


def one(tmp_path, text):
    path = tmp_path / "tale.conll"
    path.write_text(text, encoding="utf-8")
    (document,) = read(path)
    return document


def test_mentions_words_and_sentences(tmp_path):
    document = one(tmp_path, NESTED)
    assert (document.name, document.part) == ("tale", "0")
    assert document.words[:4] == ("Emma", "met", "her", "uncle")
    assert document.sentences.tolist() == [0] * 5 + [1] * 2
    found = [(document.text(m), m.cluster) for m in document.mentions]
    assert found == [("Emma", "3"), ("her uncle", "5"), ("her", "3"), ("He", "5")]
    assert document.labels.tolist() == [0, 1, 0, 1]


def test_crossing_and_repeated_brackets(tmp_path):
    document = one(
        tmp_path, text_of([("a", "(1|(2"), ("b", "(3|1)"), ("c", "2)|(2)"), ("d", "3)|(4)|(5)")])
    )
    found = sorted((document.text(m), m.cluster) for m in document.mentions)
    assert found == sorted(
        [("a b", "1"), ("a b c", "2"), ("b c d", "3"), ("c", "2"), ("d", "4"), ("d", "5")]
    )


def test_a_bracket_closes_what_was_opened_last(tmp_path):
    document = one(tmp_path, text_of([("a", "(1"), ("b", "(1"), ("c", "1)"), ("d", "1)")]))
    assert [m[:2] for m in document.mentions] == [(0, 4), (1, 3)]


def test_speakers_stand_in_the_tenth_column(tmp_path):
    row = "tale 0 0 I x x x x x Anna x (1)"
    document = one(tmp_path, f"#begin document (tale); part 000\n{row}\n\n#end document\n")
    assert (document.speakers, document.part) == (("Anna",), "000")


def test_columns_with_spaces_and_gzip(tmp_path):
    path = tmp_path / "tale.gold_conll.gz"
    text = text_of([("A", "(0)"), ("b", "-")], separator="    ", middle="-")
    path.write_bytes(gzip.compress(text.encode()))
    (document,) = read(path)
    assert document.words == ("A", "b")
    write([document], tmp_path / "again.conll", [[7]])
    assert (tmp_path / "again.conll").read_text() == text.replace("(0)", "(7)")


@pytest.mark.parametrize("separator", ["\t", " "])
def test_three_columns_and_a_space_before_begin(tmp_path, separator):
    rows = [("1", "Emma", "(3)"), ("2", "left", "_")]
    lines = [separator.join(row) for row in rows]
    text = "\n".join(["# begin document tale_1", *lines, "", "# end document", ""])
    document = one(tmp_path, text)
    assert (document.name, document.part, document.words) == ("tale_1", "0", ("Emma", "left"))
    assert [(document.text(m), m.cluster) for m in document.mentions] == [("Emma", "3")]
    write([document], tmp_path / "new.conll", [[8]])
    assert (tmp_path / "new.conll").read_text() == text.replace("(3)", "(8)")
    with pytest.raises(DataError, match=r"line 2: expected at least 5 columns .* or 3 .*, found 4"):
        one(tmp_path, text.replace("Emma", separator.join(["Emma", "x"])))


def test_writing_keeps_all_but_the_clusters(tmp_path):
    text = NESTED.replace("Emma\t_\t_", "Emma\tNNP\t(S*").replace("#end", "# a comment\n#end")
    document = one(tmp_path, text)
    write([document, document], tmp_path / "new.conll", [[0, 1, 2, 3], [0, 0, 0, 0]])
    lines = (tmp_path / "new.conll").read_text().splitlines()
    assert [line.rsplit("\t", 1)[0] for line in lines] == [
        line.rsplit("\t", 1)[0] for line in text.splitlines() * 2
    ]
    first, second = read(tmp_path / "new.conll")
    assert first.labels.tolist() == [0, 1, 2, 3]
    assert second.labels.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("none", ["", "-", "_"])
def test_the_mark_of_no_mention_is_kept(tmp_path, none):
    text = text_of([("A", "(0)"), ("b", none)])
    document = one(tmp_path, text)
    write([document], tmp_path / "new.conll")
    assert (tmp_path / "new.conll").read_text() == text


spans = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 3)), max_size=8, unique=True
)


@given(spans)
def test_what_is_written_is_read_again(tmp_path_factory, found):
    """Any mentions, but for crossing ones of one cluster, which brackets cannot express."""
    folder = tmp_path_factory.mktemp("coref")
    mentions: list[tuple[int, int, int]] = []
    for a, b, label in found:
        first, last = min(a, b), max(a, b)
        if not any(
            label == other and (f < first <= last_ < last or first < f <= last < last_)
            for f, last_, other in mentions
        ):
            mentions.append((first, last, label))
    document = one(folder, text_of([(f"w{k}", "-") for k in range(8)]))
    ordered = sorted(mentions, key=lambda m: (m[0], -m[1]))
    marked = Document(
        document.name,
        document.part,
        document.words,
        document.sentences,
        document.speakers,
        tuple(coreference.Mention(f, last + 1, str(label)) for f, last, label in ordered),
        document.path,
        document.lines,
        document.token_lines,
    )
    write([marked], folder / "new.conll", [[label for *_, label in ordered]])
    (again,) = read(folder / "new.conll")
    assert sorted(again.mentions) == sorted(marked.mentions)


def test_crossing_mentions_of_one_cluster_are_written_apart(tmp_path):
    document = one(tmp_path, text_of([("a", "(1"), ("b", "(2"), ("c", "1)"), ("d", "2)")]))
    with pytest.warns(UserWarning, match="'a b c' and 'b c d' cross"):
        write([document], tmp_path / "new.conll", [[0, 0]])
    (again,) = read(tmp_path / "new.conll")
    assert [m[:2] for m in again.mentions] == [(0, 3), (1, 4)]
    assert again.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of([("a", "(1"), ("b", "-")]), "line 2, coreference: the mention of cluster 1 that"),
        (
            text_of([("a", "(1")], [("b", "1)")]),
            "line 2, coreference: the mention of cluster 1 that begins here does not end in its",
        ),
        (text_of([("a", "-"), ("b", "4)")]), "line 3, coreference: a mention of cluster 4 ends"),
        (text_of([("a", "12")]), "line 2, coreference: expected '(3', '3)' or '(3)', found '12'"),
        (text_of([("a", "(1)|")]), "line 2, coreference: expected '(3', '3)' or '(3)', found ''"),
        (text_of([("a", "(1 (2")]), "line 2, coreference: expected '(3'"),
        ("#begin document (x); part 0\nx 0 0 a\n#end document\n", "line 2: expected at least 5"),
        ("x 0 0 a -\n", "line 1: expected '#begin document (name); part 0' before tokens"),
        ("#begin document (x); part 0\n", "line 1: expected '#end document', found none"),
        ("#end document\n", "line 1: no document was begun"),
        (
            "#begin document (x)\n#begin document (y)\n",
            "line 2: expected '#end document' before the next document",
        ),
        ("#begin document ();\n#end document\n", "line 1, document: expected '#begin document"),
        ("", "expected documents that start with '#begin document', found none"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(DataError) as error:
        one(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "tale.conll"))
    assert message in str(error.value)


def test_text_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "tale.conll"
    path.write_bytes(
        NESTED.replace("uncle", "\N{LATIN SMALL LETTER E WITH ACUTE}").encode("latin1")
    )
    with pytest.raises(DataError, match="line 5: expected UTF-8 text"):
        read(path)


def test_labels_must_fit_the_mentions(tmp_path):
    document = one(tmp_path, NESTED)
    target = tmp_path / "new.conll"
    with pytest.raises(DataError, match="expected 4 labels, one per mention of tale"):
        write([document], target, [[0]])
    with pytest.raises(DataError, match="expected labels for 1 documents, found 2"):
        write([document], target, [[0] * 4] * 2)
    assert not target.exists()


def test_a_folder_stands_for_its_files(tmp_path):
    for name in ("b.conll", "a.gold_conll", "c.txt", ".d.txt"):
        (tmp_path / name).write_text(NESTED)
    (tmp_path / "d.coref.gz").write_bytes(gzip.compress(b"\n# begin document x\n# end document\n"))
    (tmp_path / "notes.txt").write_text("no document")
    (tmp_path / "damaged.gz").write_bytes(b"\x1f\x8b\x08")
    (tmp_path / "empty.conll").touch()  # which is refused when it is read
    found = ["a.gold_conll", "b.conll", "c.txt", "d.coref.gz", "empty.conll"]
    assert [path.name for path in find(tmp_path)] == found
    assert find(tmp_path / "b.conll") == [tmp_path / "b.conll"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="expected files that begin with '#begin document', or"):
        find(empty)


def test_litbank_is_read_and_written_whole(shared_data, tmp_path):
    folder = shared_data / "litbank" / "coref" / "conll"
    if not folder.is_dir():
        pytest.skip("LitBank is not among the real data sets")
    files = find(folder)
    documents = [document for path in files for document in read(path)]
    assert (len(documents), sum(len(d.mentions) for d in documents)) == (100, 29103)
    for document in documents[::10]:
        write([document], tmp_path / "again.conll")
        (again,) = read(tmp_path / "again.conll")
        assert [m[:2] for m in again.mentions] == [m[:2] for m in document.mentions]
        np.testing.assert_array_equal(again.labels, document.labels)
