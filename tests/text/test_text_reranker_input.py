"""What users give a `TextReranker` that is none of what it expects: an error, or an answer."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made

QUERY = "when does the ship of the storm sail?"
ANSWER = "The ship of the storm sails in 1902."


def nested(n_queries=20):
    lists = made(n_queries)
    own = [lists.select_lists([n]) for n in range(n_queries)]
    passages, labels = [list(part.items) for part in own], [part.y.tolist() for part in own]
    return list(lists.queries), passages, labels


def fit(queries, passages, labels, scores=None):
    return TextReranker(quick=True).fit(queries, passages, labels, scores)


@pytest.fixture(scope="module")
def reranker():
    return TextReranker().fit(made())


def answers(reranker, query, documents, **options):
    """A ranking, of which all that it promises is asked."""
    found = reranker.rank(query, documents, **options)
    assert [own.text for own in found] == [documents[own.index] for own in found]
    assert len({own.index for own in found}) == len(found)
    scores = [own.score for own in found]
    assert all(0 < score < 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    raw = [own.raw for own in found]
    assert np.isfinite(raw).all()
    assert raw == sorted(raw, reverse=True)
    return [own.index for own in found]


# ---- empty texts


def test_an_empty_query_is_refused(reranker):
    queries, passages, labels = nested()
    for nothing in ("", " \n\t"):
        with pytest.raises(DataError, match="query 0: expected a text, found an empty one"):
            reranker.rank(nothing, [ANSWER])
        with pytest.raises(DataError, match="query 3: expected a text, found an empty one"):
            fit([*queries[:3], nothing, *queries[4:]], passages, labels)
        with pytest.raises(DataError, match="query 0: expected a text, found an empty one"):
            reranker.explain(nothing, [ANSWER])


def test_a_query_that_is_no_text_is_refused(reranker):
    with pytest.raises(DataError, match="query 0: expected a text, found none"):
        reranker.rank(None, [ANSWER])


def test_a_query_without_words_has_a_ranking(reranker):
    assert sorted(answers(reranker, "?!", [ANSWER, "It is late."])) == [0, 1]


def test_empty_passages_are_below_answers(reranker):
    assert answers(reranker, QUERY, ["", ANSWER, " ", "!"])[0] == 1
    assert answers(reranker, QUERY, ["", ""]) == [0, 1]
    assert reranker.explain(QUERY, [""])[0].spans == ()


def test_empty_passages_in_training():
    queries, passages, labels = nested()
    fitted = fit(queries, [["", *own[1:]] for own in passages], labels)
    assert answers(fitted, QUERY, ["", ANSWER])[0] == 1
    with pytest.raises(DataError, match="expected at least one passage that has words"):
        fit(queries, [["" for _ in own] for own in passages], labels)


def test_queries_without_passages_teach_nothing():
    queries, passages, labels = nested()
    expected = fit(queries, passages, labels)
    found = fit(["nothing", *queries, "at all"], [[], *passages, []], [[], *labels, []])
    assert found.rank(QUERY, [ANSWER, "A ship."]) == expected.rank(QUERY, [ANSWER, "A ship."])
    assert found.rank(QUERY, []) == []
    assert found.explain(QUERY, []) == []


# ---- judgements that teach little or nothing


@pytest.mark.parametrize("label", [0, 1, -1, 3, 2.5])
def test_no_passage_that_is_better_than_another(label):
    queries, passages, labels = nested()
    with pytest.raises(DataError, match="labels: expected a query with a relevant and an irrel"):
        fit(queries, passages, [[label] * len(own) for own in labels])


def test_grades_without_a_zero_are_told_of_a_measure_that_learns_from_them():
    queries, passages, labels = nested()
    labels = [[1 + 2 * label for label in own] for own in labels]
    with pytest.raises(DataError, match="labels from 1 on are relevant; measure='nDCG' learns"):
        fit(queries, passages, labels)
    TextReranker(quick=True, measure="nDCG").fit(queries, passages, labels)


@pytest.mark.parametrize("measure", ["AP, RR", "foo"])
def test_a_measure_that_is_none(measure):
    with pytest.raises(DataError, match="measure"):
        TextReranker(quick=True, measure=measure).fit(*nested())


def test_one_passage_for_each_query():
    queries, passages, labels = nested()
    with pytest.raises(DataError, match="labels: expected a query with a relevant and an irrel"):
        fit(queries, [own[:1] for own in passages], [own[:1] for own in labels])


@pytest.mark.parametrize("n_queries", [1, 2, 3])
def test_few_queries(n_queries, tmp_path):
    fitted = fit(*nested(n_queries))
    assert not fitted.gate_.passed
    assert fitted.model_.weights == {fitted.gate_.baseline: 1.0}
    assert answers(fitted, QUERY, ["It is late.", ANSWER])[0] == 1
    fitted.save(tmp_path / "model")
    assert TextReranker.load(tmp_path / "model").rank(QUERY, [ANSWER]) == fitted.rank(
        QUERY, [ANSWER]
    )
    if n_queries == 1:
        assert "One query" in fitted.gate_.verdict
        with pytest.raises(DataError, match="of two queries"):
            fitted.calibration_.threshold(0.9)


def test_passages_that_are_all_the_same():
    queries, passages, labels = nested()
    fitted = fit(queries, [["the same"] * len(own) for own in passages], labels)
    assert not fitted.gate_.passed
    assert answers(fitted, QUERY, ["the same", "the same"]) == [0, 1]


# ---- sizes


def test_many_passages_for_one_query(reranker):
    texts = [f"The tree of the lamp stops in {n % 100}." for n in range(100_000)]
    texts[77_777] = ANSWER
    found = reranker.rank(QUERY, texts, top_k=3)
    assert len(found) == 3
    assert found[0].index == 77_777


def test_many_passages_for_one_query_in_training():
    texts = [f"The tree of the lamp stops in {n % 100}." for n in range(100_000)]
    fitted = fit([QUERY], [[ANSWER, *texts[1:]]], [[1, *[0] * 99_999]])
    assert answers(fitted, QUERY, ["It is late.", ANSWER])[0] == 1


@pytest.mark.parametrize("filling", ["so it goes on, ", "a", "北京大学学习"])
def test_a_passage_of_ten_megabytes(reranker, filling):
    huge = (filling * (10_000_000 // len(filling.encode()) + 1)) + " " + ANSWER
    found = reranker.rank(QUERY, [huge, "It is late."])
    assert sorted(own.index for own in found) == [0, 1]
    own = next(own for own in found if own.index == 0)
    assert own.text is huge
    if own.window is not None:  # one that is a single word has no windows
        assert huge[slice(*own.window)].endswith(ANSWER[:-1])


def test_a_passage_of_ten_megabytes_in_training():
    queries, passages, labels = nested(6)
    passages[0][0] = "so it goes on, " * 700_000
    assert answers(fit(queries, passages, labels), QUERY, ["It is late.", ANSWER])[0] == 1


def test_a_query_of_many_words(reranker):
    assert answers(reranker, "ship storm " * 100_000, ["It is late.", ANSWER])[0] == 1


# ---- scripts


SCRIPTS = {
    "北京": "我住在北京大学",
    "किताब": "यह किताब है",
    "كتاب": "هذا كِتَاب جديد",
    "крыло": "большое крыло",
    "ship": "the ship",
}


def test_texts_in_five_scripts(reranker):
    texts = [*SCRIPTS.values(), "🚀🌕", "\ud800 half a pair", "a\x00b", "\u200b", "ﷺ" * 100]
    for query, answer in SCRIPTS.items():
        answers(reranker, query, texts)
        (span,) = reranker.explain(query, [answer])[0].spans
        assert span.matched == (query,)
    fitted = fit(
        [f"{query} {n}" for n in range(3) for query in SCRIPTS],
        [list(SCRIPTS.values())] * 15,
        [np.eye(5)[n % 5] for n in range(15)],
    )
    for place, query in enumerate(SCRIPTS):
        assert answers(fitted, query, list(SCRIPTS.values()))[0] == place


# ---- types


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["a", None], "document 1: expected a text or an object with one, found None"),
        (["a", 3.5], "document 1: expected a text or an object with one, found 3.5"),
        ([b"a"], "document 0: expected a text or an object with one, found b'a'"),
        ([["a"]], r"document 0: expected a text or an object with one, found \['a'\]"),
        ([{"text": None}], "document 0, text: expected a text, found None"),
        (None, "documents: expected a list of documents, found none"),
        (7, "documents: expected a list of documents, found int"),
        ({"text": "a"}, "documents: expected a list of documents, found dict"),
        ("a", "documents: expected a list of documents, found str"),
        ([{"id": 1}], "document 0: expected a text among id"),
    ],
)
def test_documents_of_mixed_types(reranker, documents, message):
    for ask in (reranker.rank, reranker.explain):
        with pytest.raises(DataError, match=message):
            ask(QUERY, documents)


@pytest.mark.parametrize(
    ("part", "wrong", "message"),
    [
        ("passages", None, "query 2, passage 1: expected a text, found none"),
        ("passages", 7, "query 2, passage 1: expected a text, found int 7"),
        ("passages", b"x", "query 2, passage 1: expected a text, found bytes"),
        ("passages", ["x"], "query 2, passage 1: expected a text, found list"),
        ("labels", None, "labels: expected finite numbers"),
        ("labels", float("nan"), "labels: expected finite numbers"),
        ("labels", float("inf"), "labels: expected finite numbers"),
        ("labels", "good", "labels: expected numbers in list 2"),
        ("labels", [1], "labels: expected numbers in list 2"),
    ],
)
def test_passages_and_labels_of_mixed_types(part, wrong, message):
    judged = dict(zip(("queries", "passages", "labels"), nested()))
    judged[part][2][1] = wrong
    with pytest.raises(DataError, match=message):
        fit(**judged)


def test_texts_of_other_libraries_are_texts(reranker):
    expected = reranker.rank(QUERY, [ANSWER, "It is late."])
    assert reranker.rank(np.str_(QUERY), np.array([ANSWER, "It is late."])) == expected
    assert reranker.rank(QUERY, iter([ANSWER, {"text": "It is late."}])) == expected
    assert reranker.rank(QUERY, [ANSWER, "It is late."], top_k=np.int64(2)) == expected


@pytest.mark.parametrize("top_k", [-1, 1.5, "1", [1]])
def test_a_number_of_documents_that_is_none(reranker, top_k):
    with pytest.raises(DataError, match="top_k: expected a number of documents, found"):
        reranker.rank(QUERY, [ANSWER], top_k=top_k)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0], "scores: expected 2 values in list 0, found 1"),
        ([1.0, "x"], "scores: expected numbers in list 0"),
        ([1.0, float("nan")], "scores: expected finite numbers"),
        (3, "scores: "),
    ],
)
def test_scores_of_the_first_stage(scores, message):
    reranker = TextReranker(quick=True).fit(made(3, scores=True))
    with pytest.raises(DataError, match=message):
        reranker.rank(QUERY, [ANSWER, "It is late."], scores=scores)
    queries, passages, labels = nested(3)
    with pytest.raises(DataError, match="scores: "):
        fit(queries, passages, labels, [scores, [1.0], [2.0]])
