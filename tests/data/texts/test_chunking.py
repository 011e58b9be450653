"""Documents cut into passages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from didyma.data.texts import chunking


def cut(text: str) -> list[tuple[tuple[str, ...], int, str]]:
    return [tuple(found) for found in chunking.passages(text.split("\n"))]


def test_headings_cut_and_go_before():
    text = "Intro.\n# A #\na\n\nb\n### C\nc\n## B\n\nE\n=\n\n===\nF\n===\nf"
    assert cut(text) == [
        ((), 1, "Intro."),
        (("A",), 3, "a\n\nb"),
        (("A", "C"), 7, "c"),
        (("A", "B"), 10, "E\n="),
        (("F",), 16, "f"),
    ]


def test_fences_hold_together():
    code = "```sh\n# no heading\n\nmake\n```"
    assert cut(f"# A\n\n{code}\n\n# B\nb") == [(("A",), 3, code), (("B",), 10, "b")]


def test_underlined_headings_have_levels_in_order_of_appearance():
    text = "A\n~~~\n\nB\n---\nb\n\nC\n---\nc\n\nD\n~~~\nd"
    assert [found[0] for found in cut(text)] == [("A", "B"), ("A", "C"), ("D",)]


def test_long_paragraphs_are_cut_after_sentences():
    sentence = " ".join(["word"] * 79) + " end."
    found = cut(" ".join([sentence] * 5))
    assert [text.count("end.") for _, _, text in found] == [2, 2, 1]
    assert all(text.endswith("end.") for _, _, text in found)


def test_scripts_without_spaces_are_cut_too():
    found = cut("北京是中国的首都。" * 100)
    assert len(found) == 4
    assert all(text.endswith("。") for _, _, text in found)


@given(st.lists(st.sampled_from(["word ", "北", ". ", "\n", "\n\n", "# ", "```\n", "--- "])))
def test_no_word_is_lost_and_no_passage_is_long(pieces):
    text = "".join(pieces * 40)
    found = cut(text)
    words = sum(chunking._n_words(part) for _, _, part in found)
    titled = chunking._n_words(" ".join(t for titles in {f[0] for f in found} for t in titles))
    assert all(chunking._n_words(part) <= chunking.LONGEST for _, _, part in found)
    assert words + titled <= chunking._n_words(text)
    if "#" not in text and "---" not in text:
        assert words == chunking._n_words(text)
    lines = [line for _, line, _ in found]
    assert lines == sorted(lines)
