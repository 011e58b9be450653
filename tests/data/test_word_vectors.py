from __future__ import annotations

import gzip

import numpy as np
import pytest

from didyma.data import word_vectors as vectors
from didyma.errors import DataError


def test_with_and_without_a_header(tmp_path):
    plain, headed = tmp_path / "plain.txt", tmp_path / "headed.txt.gz"
    text = "the 1 2 3\ncat -1e-3 .5 0\nthe 7 7 7\n"
    plain.write_text(text)
    headed.write_bytes(gzip.compress(f"3 3\n{text}".encode()))
    for path in (plain, headed):
        words, matrix = vectors.read(path)
        assert words == ["the", "cat"]
        np.testing.assert_allclose(matrix, [[1, 2, 3], [-0.001, 0.5, 0]], rtol=1e-6)


def test_only_what_is_asked_for(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("a 1 2\nb 3 4\n")
    words, matrix = vectors.read(path, keep={"b", "z"})
    assert (words, matrix.tolist()) == (["b"], [[3.0, 4.0]])
    words, matrix = vectors.read(path, keep=set())
    assert (words, matrix.shape) == ([], (0, 2))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a 1 2\nb 3\n", "line 2: expected 2 numbers after the word, found 1"),
        ("2 3\na 1 2\n", "line 2: expected 3 numbers after the word, found 2"),
        ("a 1 2\nb x 3\n", "line 2: expected numbers"),
        ("a 1 2\nb nan 3\n", "line 2: expected finite numbers"),
        ("9" * 5000 + " 2\n1 2 3\n", "line 2: expected 1 numbers after the word, found 2"),
        ("2 " + "9" * 5000 + "\n1 2 3\n", "line 1: expected finite numbers"),
        ("a\n", "line 1: expected a word and its vector"),
        ("", "line 1: expected a word and its vector"),
    ],
)
def test_damaged_files(tmp_path, text, problem):
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=f"v.txt, {problem}"):
        vectors.read(path)
