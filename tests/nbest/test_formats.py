"""N-best lists: both formats, everything that may be wrong with them, and losses by references."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.formats import is_jsonl, of_outputs, read, write
from didyma.nbest.loss import losses
from tests.cases import Case, Guess, cases, stack

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"

LINE = {
    "id": "7",
    "input": "time flies",
    "reference": "NN VBZ",
    "vector": [0.5, 1.0],
    "reference_vector": [1.0, 2.0, 3.0],
    "source": {"page": 3},
    "candidates": [
        {
            "text": "NN NNS",
            "score": -9.1,
            "loss": 1.0,
            "features": {"lm": -3.2, "tm": 0.25},
            "vector": [1.0, 0.0, 1.0],
            "colour": "red",
        },
        {"text": "NN VBZ", "score": -9.5, "loss": 0.0, "vector": [0.0, 0.0, 1.0]},
    ],
}
MOSES = """0 ||| he goes ||| lm= -3.5 tm= -1.0 -0.5 -2.0 ||| -9.1 ||| 0-0 1-1
0 ||| him goes ||| lm= -4.5 tm= -1.0 -0.5 -2.5 ||| -9.5 ||| 0-0 1-1
1 ||| yes ||| lm= -1.0 tm= 0.0 0.0 0.0 ||| -1.25 ||| 0-0
"""


def plain(lists: Lists | list[Case]) -> list:
    """Lists as values that can be compared."""
    found = cases(lists) if isinstance(lists, Lists) else lists
    return json.loads(json.dumps(found, default=np.ndarray.tolist))


def save(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_json_lines_keep_everything(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jsonl", LINE, {"candidates": []}, {"id": 9, "candidates": []})
    first, second, third = cases(read(path))
    assert (first.id, first.input, first.reference) == ("7", "time flies", "NN VBZ")
    assert first.vector is not None
    assert first.vector.tolist() == [0.5, 1.0]
    assert first.guesses[0].features == {"lm": -3.2, "tm": 0.25}
    assert first.guesses[0].other == {"colour": "red"}
    assert (second.id, second.input, len(second.guesses)) == ("1", None, 0)
    assert third.id == "9"
    write(stack([first]), tmp_path / "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text()) == LINE


def test_moses_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.nbest"
    path.write_text(MOSES)
    lists = read(path)
    assert lists.groups.sizes.tolist() == [2, 1]
    second = cases(lists)[0].guesses[1]
    assert (second.text, second.score) == ("him goes", -9.5)
    assert second.features == {"lm": -4.5, "tm.1": -1.0, "tm.2": -0.5, "tm.3": -2.5}
    write(lists, tmp_path / "b.nbest")
    assert (tmp_path / "b.nbest").read_text() == MOSES
    assert not is_jsonl(path)


def test_moses_features_may_have_no_names(tmp_path: Path) -> None:
    path = tmp_path / "a.nbest"
    path.write_text("0 ||| a ||| -1.5 2.0 lm= 3.0 ||| -1.0\n0 |||  |||  ||| 5e-1\n")
    ((first, empty),) = (case.guesses for case in cases(read(path)))
    assert first.features == {"1": -1.5, "2": 2.0, "lm": 3.0}
    assert (empty.text, empty.features, empty.score) == ("", {}, 0.5)
    write(read(path), tmp_path / "b.nbest")
    assert plain(read(tmp_path / "b.nbest")) == plain(read(path))


def test_inputs_and_references_are_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.nbest"
    path.write_text(MOSES)
    (tmp_path / "in").write_text("er geht\r\nja\n")
    (tmp_path / "out").write_text("he goes\n\n")
    lists = read(path, inputs=tmp_path / "in", references=tmp_path / "out")
    assert [(case.input, case.reference) for case in cases(lists)] == [
        ("er geht", "he goes"),
        ("ja", ""),
    ]
    (tmp_path / "in").write_text("er geht\n")
    with pytest.raises(DataError, match=r"in: expected 2 lines, one for each list of .*, found 1"):
        read(path, inputs=tmp_path / "in")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.nbest.gz"])
def test_files_may_be_compressed(tmp_path: Path, name: str) -> None:
    lists = [Case("x", None, None, [Guess("é|x", -1.0, features={"lm": 2.0})])]
    write(stack(lists), tmp_path / name)
    assert (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b"
    assert plain(read(tmp_path / name)) == plain(lists)
    packed = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(packed[:-8])
    with pytest.raises(DataError, match="gzip"):
        read(tmp_path / name)


@pytest.mark.parametrize("format", ["jsonl", "moses"])
def test_a_loss_may_have_any_name(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a"
    guesses = [Guess("a", -1.0, 0.25, {"lm": 1.0}), Guess("b", -2.0, 0.5, {"lm": 2.0})]
    write(stack([Case("x", None, None, guesses)]), path, format=format, loss="bleu_loss")
    (case,) = cases(read(path, loss="bleu_loss"))
    assert [(guess.loss, guess.features) for guess in case.guesses] == [
        (0.25, {"lm": 1.0}),
        (0.5, {"lm": 2.0}),
    ]
    assert read(path).losses is None


def test_a_loss_among_the_features_is_no_feature(tmp_path: Path) -> None:
    line = {"candidates": [{"text": "a", "features": {"lm": 1, "ter": 0.5}}]}
    (case,) = cases(read(save(tmp_path / "a.jsonl", line), loss="ter"))
    assert case.guesses[0].loss == 0.5
    assert case.guesses[0].features == {"lm": 1.0}


def with_candidate(**fields: object) -> dict:
    return {"id": "1", "candidates": [{"text": "a"} | fields]}


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ([1], "line 2: expected a JSON object, found a list"),
        ({"id": "1"}, "line 2, candidates: expected a list, found none"),
        ({"candidates": {}}, "line 2, candidates: expected a list, found an object"),
        ({"candidates": ["a"]}, r"candidates\[0\]: expected an object with a text, found a text"),
        ({"candidates": [{}]}, r"candidates\[0\].text: expected a text, found none"),
        (with_candidate(text=3), r"candidates\[0\].text: expected a text, found a number"),
        (with_candidate(score="x"), r"candidates\[0\].score: expected a number, found a text"),
        (with_candidate(score=True), "score: expected a number, found true or false"),
        (with_candidate(score=float("nan")), "score: expected a finite number, found nan"),
        (with_candidate(score=10**400), "score: expected a finite number"),
        (
            with_candidate(score=-1e308),
            r"score: expected a number from -1e\+90 to 1e\+90, found -1",
        ),
        (with_candidate(features={"lm": 1e100}), "lm: expected a number from"),
        (with_candidate(vector=[1e100]), r"vector\[0\]: expected a number from"),
        (with_candidate(loss=1e100), "loss: expected a number from"),
        (with_candidate(loss=-1), r"candidates\[0\].loss: expected a loss of 0 or more, found -1"),
        (with_candidate(features=[1]), r"\[0\].features: expected names with numbers"),
        (with_candidate(features={"lm": None}), r"features.lm: expected a number, found none"),
        (with_candidate(vector="x"), "vector: expected a list of numbers, found a text"),
        (with_candidate(vector=[1, "x"]), r"vector\[1\]: expected a number, found a text"),
        ({"id": [], "candidates": []}, "line 2, id: expected a text or an integer"),
        ({"input": 3, "candidates": []}, "line 2, input: expected a text, found a number"),
        ({"vector": [1], "candidates": []}, "line 2, vector: expected 2 numbers, as before"),
        ({"reference_vector": [1], "candidates": []}, "candidates.vector: expected 3 numbers"),
        ({"id": 7, "candidates": []}, "line 2, id: a list with the id '7' begins at line 1"),
        (
            {"candidates": [{"text": "a", "score": 1}, {"text": "b"}]},
            "line 2, candidates.score: expected one for each of the 2 candidates or for none",
        ),
        (
            {"candidates": [{"text": "a", "loss": 1}, {"text": "b", "loss": 2}]},
            "line 2, candidates.score: expected one for each candidate, as at line 1",
        ),
        (
            with_candidate(score=1, loss=0) | {"vector": [1, 2]},
            "line 2, candidates.vector: expected one for each candidate, as at line 1",
        ),
        (
            with_candidate(score=1, loss=0, vector=[1, 2, 3]),
            "line 2, vector: expected one, as at line 1",
        ),
    ],
)
def test_json_lines_that_are_wrong(tmp_path: Path, record: object, problem: str) -> None:
    with pytest.raises(DataError, match=problem) as raised:
        read(save(tmp_path / "a.jsonl", LINE, record))
    assert raised.value.path == tmp_path / "a.jsonl"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0 ||| a ||| lm= 1", r"line 3: expected id \|\|\| text .*, found 3 parts"),
        ("0 ||| a", "found 2 parts"),
        ("some text", "found 1 part"),
        (" ||| a ||| ||| 1", "line 3, id: expected a text, found none"),
        ("0 ||| a ||| lm= x ||| 1", "line 3, lm: expected a finite number, found 'x'"),
        ("0 ||| a ||| lm= -1e300 ||| 1", "line 3, lm: expected a number from"),
        ("0 ||| a ||| lm= 1 ||| 1e308", "line 3, total: expected a number from"),
        ("0 ||| a ||| lm= inf ||| 1", "line 3, lm: expected a finite number, found 'inf'"),
        ("0 ||| a ||| 1_0 ||| 1", "features: expected a finite number, found '1_0'"),
        ("0 ||| a ||| lm= ||| 1", "line 3, lm: expected a number after the name, found none"),
        ("0 ||| a ||| lm= 1 lm= 2 ||| 1", "expected a new name, found 'lm='"),
        ("0 ||| a ||| = 2 ||| 1", "expected a new name, found '='"),
        ("0 ||| a ||| lm= 1 ||| ", "line 3, total: expected a finite number, found ''"),
        ("0 ||| a ||| loss= -1 ||| 1", "line 3, loss: expected a loss of 0 or more, found -1"),
        ("0 ||| a ||| lm= 1 ||| 1", "line 3, id: a list with the id '0' begins at line 1 already"),
    ],
)
def test_moses_lines_that_are_wrong(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "a.nbest"
    path.write_text(f"0 ||| a ||| lm= 1 ||| 1\n1 ||| a ||| lm= 1 ||| 1\n{line}\n")
    with pytest.raises(DataError, match=problem):
        read(path)


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (b"", "expected n-best lists, found none"),
        (b"\n\n", "expected n-best lists, found none"),
        (b'{"candidates": [}\n', "line 1: expected a JSON object"),
        (rb'{"candidates": [{"text": "\udc00"}]}', r"line 1: .* \(half of a surrogate pair\)"),
        (b'{"candidates": [], "x": ' + b"9" * 5000 + b"}", r"line 1: .* \(Exceeds the limit"),
        (
            b'{"candidates": [{"text": "a", "score": 1' + b"0" * 400 + b"}]}",
            r"line 1, candidates\[0\]\.score: expected a finite number",
        ),
        (b'{"candidates": []}\n\xff\n', "line 2: expected UTF-8 text"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, contents: bytes, problem: str) -> None:
    (tmp_path / "a").write_bytes(contents)
    with pytest.raises(DataError, match=problem):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        (Case("1", None, None, []), "a list without candidates"),
        (Case("1", None, None, [Guess("a")]), "needs a score"),
        (Case("1", None, None, [Guess("a ||| b", 1.0)]), "cannot be written as Moses"),
        (Case("1", None, None, [Guess("a\nb", 1.0)]), "cannot be written as Moses"),
        (Case("1", None, None, [Guess("a", 1.0, vector=np.ones(2))]), "vectors cannot"),
        (Case("1", None, None, [Guess("a", 1.0, features={"x y": 1.0})]), "name 'x y'"),
    ],
)
def test_what_moses_cannot_say_leaves_no_file(tmp_path: Path, case: Case, problem: str) -> None:
    before = [] if "score" in problem else [Case("0", None, None, [Guess("a", 1.0)])]
    with pytest.raises(DataError, match=problem):
        write(stack([*before, case]), tmp_path / "a.nbest")
    assert not list(tmp_path.iterdir())


def test_formats_have_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected 'jsonl' or 'moses', found 'xml'"):
        write(stack([]), tmp_path / "a", format="xml")


texts = st.lists(st.sampled_from(["a", "b", "é"]), max_size=3).map(" ".join)
numbers = st.floats(-1e6, 1e6)
names = st.sampled_from(["lm", "tm.1", "tm.2", "tm", "x y", "1"])
guesses = st.builds(
    Guess,
    texts,
    numbers,
    st.floats(0, 10),
    st.none() | st.dictionaries(names, numbers, min_size=1, max_size=3),
    st.lists(numbers, min_size=2, max_size=2).map(np.array),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers() | st.none() | texts, max_size=2),
)
some_cases = st.lists(guesses, max_size=3).map(lambda own: Case("1", "a b", None, own))


@given(some_cases)
def test_json_lines_round_trip(case: Case) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write(stack([case]), Path(folder, "a.jsonl"))
        assert plain(read(Path(folder, "a.jsonl"))) == plain([case])


moses_names = st.sampled_from(["1", "2", "lm", "tm", "tm.1", "tm.2", "tm.3", "a.b", "n.1", ".1"])
moses_guesses = st.builds(
    lambda text, score, features: Guess(text, score, features=features),
    *(texts, numbers, st.dictionaries(moses_names, numbers, max_size=5)),
)


@given(st.lists(moses_guesses, min_size=1, max_size=3))
def test_moses_round_trip_of_names(found: list[Guess]) -> None:
    import tempfile

    case = Case("1", None, None, found)
    with tempfile.TemporaryDirectory() as folder:
        write(stack([case]), Path(folder, "a"))
        (again,) = cases(read(Path(folder, "a")))
    assert plain([again]) == plain([case])
    assert [list(guess.features or {}) for guess in again.guesses] == [
        list(guess.features or {}) for guess in found
    ]


def test_what_is_no_list_of_outputs_is_refused() -> None:
    for wrong in ([Guess("a")], Lists(["a"]), Lists(np.eye(2))):
        with pytest.raises(DataError, match="expected Lists"):
            losses(wrong)
    with pytest.raises(DataError, match="outputs: 1 lists for 2 inputs"):
        of_outputs(["a", "b"], [["c"]])


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_the_examples_can_be_read(part: str) -> None:
    found = read(EXAMPLES / f"nbest-{part}.jsonl")
    assert all(case.input and case.reference and case.guesses for case in cases(found))
    assert found.scores is not None


def test_compressed_by_others(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(b'\xef\xbb\xbf{"candidates": []}\n'))
    assert is_jsonl(tmp_path / "a")
    assert len(read(tmp_path / "a").groups) == 1


def test_numbers_that_json_lacks_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"candidates": [], "x": 1e999}')
    with pytest.raises(DataError, match="list '0': expected finite numbers"):
        write(read(tmp_path / "a.jsonl"), tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_texts_of_several_lines_are_not_written_as_moses(tmp_path: Path, end: str) -> None:
    lists = [Case("1", None, None, [Guess(f"a{end}b", 1.0)])]
    with pytest.raises(DataError, match="several lines cannot be written as Moses"):
        write(stack(lists), tmp_path / "a.moses")
