"""Rerankers in other libraries; `make clients` runs these where the libraries are."""

from __future__ import annotations

import asyncio
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma import Lists, integrations
from didyma.errors import DataError, LeftOutWarning, MissingExtraError
from didyma.integrations import RerankEncoder
from didyma.integrations.retrieved import Retrieved, rank_retrieved
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made

# Of what other libraries call, which is theirs to change.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

QUERY = "when does the ship of the storm sail?"
TEXTS = ["It is late.", "The ship of the storm sails in 1902.", "A ship ship ship."]


@pytest.fixture(scope="module")
def reranker() -> TextReranker:
    return TextReranker(quick=True).fit(made(12))


@pytest.fixture(scope="module")
def path(reranker: TextReranker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("integrations") / "model.safetensors"
    reranker.save(path)
    return path


@pytest.fixture(scope="module")
def ranked(reranker):
    return reranker.rank(QUERY, TEXTS)


def test_cross_encoder(reranker, path, ranked):
    encoder = RerankEncoder(path)
    found = encoder.rank(QUERY, TEXTS, return_documents=True, batch_size=32)
    assert found == [
        {"corpus_id": one.index, "score": one.score, "text": one.text} for one in ranked
    ]
    assert encoder.rank(QUERY, TEXTS, top_k=1) == [
        {"corpus_id": ranked[0].index, "score": ranked[0].score}
    ]
    assert RerankEncoder(reranker).rank(QUERY, []) == []


def test_cross_encoder_pairs_of_several_queries(reranker, ranked):
    other = "when does the tree grow?"
    pairs = [(QUERY, TEXTS[0]), (other, TEXTS[0]), (QUERY, TEXTS[1]), (QUERY, TEXTS[2])]
    found = RerankEncoder(reranker).predict(pairs, show_progress_bar=False)
    chance = {one.index: one.probability for one in ranked}
    assert found[[0, 2, 3]].tolist() == [chance[0], chance[1], chance[2]]
    assert found[1] == reranker.rank(other, TEXTS[:1])[0].probability
    assert RerankEncoder(reranker).predict([]).shape == (0,)


def test_pairs_without_probabilities_are_refused():
    fused = TextReranker(quick=True).fit(replace(made(12), labels=None))
    with pytest.raises(DataError, match="learned from judgements"):
        RerankEncoder(fused).predict((QUERY, TEXTS[0]))


def test_a_single_pair_is_scored_as_by_a_cross_encoder(reranker):
    """A pair by itself has a score by itself, though both texts are sequences too."""
    encoder = RerankEncoder(reranker)
    (wanted,) = encoder.predict([(QUERY, "They ring .")])
    for pair in ((QUERY, "They ring ."), [QUERY, "They ring ."]):
        assert encoder.predict(pair) == wanted
    two = encoder.predict(("ab", "cd"))  # no pairs of letters
    assert two == encoder.predict([("ab", "cd")])[0]


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        (("one text",), "pair 0: expected a query and a document, found tuple"),
        (("a", "b", "c"), "pair 0: expected a query and a document, found tuple"),
        ([("a", "b"), "cd"], "pair 1: expected a query and a document, found str 'cd'"),
        ([("a", "b"), None], "pair 1: expected a query and a document, found none"),
        ([("a", 7)], "pair 0: expected a query and a document, found tuple"),
    ],
)
def test_what_is_no_pair(reranker, pairs, problem):
    with pytest.raises(DataError, match=problem):
        RerankEncoder(reranker).predict(pairs)


def test_langchain(reranker, path, ranked):
    documents = pytest.importorskip("langchain_core.documents")
    from didyma.integrations import RerankCompressor

    given = [documents.Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
    found = RerankCompressor(reranker=path, top_n=2).compress_documents(given, QUERY)
    assert [one.metadata for one in found] == [
        {"n": one.index, "relevance_score": one.score} for one in ranked[:2]
    ]
    assert given[1].metadata == {"n": 1}  # what was given stays as it was
    again = RerankCompressor(reranker=reranker).acompress_documents(given, QUERY)
    assert [one.page_content for one in asyncio.run(again)] == [one.text for one in ranked]


def test_llama_index(path, ranked):
    schema = pytest.importorskip("llama_index.core.schema")
    from didyma.integrations import RerankPostprocessor

    nodes = [schema.NodeWithScore(node=schema.TextNode(text=t), score=0.5) for t in TEXTS]
    postprocessor = RerankPostprocessor(reranker=path, top_n=2)
    found = postprocessor.postprocess_nodes(nodes, query_str=QUERY)
    assert [(one.node.text, one.score) for one in found] == [
        (one.text, one.score) for one in ranked[:2]
    ]
    assert asyncio.run(postprocessor.apostprocess_nodes(nodes, query_str=QUERY)) == found
    assert postprocessor.postprocess_nodes([], query_str=QUERY) == []
    with pytest.raises(DataError, match="a query"):
        postprocessor.postprocess_nodes(nodes)


def test_haystack(reranker, path, ranked):
    haystack = pytest.importorskip("haystack")
    from didyma.integrations import RerankComponent

    pipeline = haystack.Pipeline()
    pipeline.add_component("ranker", RerankComponent(path, top_k=2))
    documents = [haystack.Document(content=text, meta={"n": n}) for n, text in enumerate(TEXTS)]
    trusted = ["didyma.integrations.haystack"]
    loaded = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=trusted)
    for one in (pipeline, loaded):
        found = one.run({"ranker": {"query": QUERY, "documents": documents}})
        found = found["ranker"]["documents"]
        assert [(d.meta["n"], d.score) for d in found] == [(r.index, r.score) for r in ranked[:2]]
    assert documents[1].score is None
    assert len(RerankComponent(reranker).run(QUERY, documents)["documents"]) == 3
    with pytest.raises(DataError, match="path of a model"):
        RerankComponent(reranker).to_dict()


def results_of(lists: Lists, **columns: Any) -> tuple[Any, Any]:
    """Results of a retriever as PyTerrier has them, and judgements of all of them."""
    pandas, codes = pytest.importorskip("pandas"), lists.groups.codes
    named = {
        "qid": codes,
        "query": np.asarray(lists.queries)[codes],
        "docno": np.arange(len(codes)),
    }
    results = pandas.DataFrame(named).astype(str)
    qrels = results[["qid", "docno"]].assign(label=lists.y.astype(int))
    return results.assign(**columns), qrels


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
@pytest.mark.parametrize("first_stage", [False, True])
def test_pyterrier(first_stage):
    pyterrier = pytest.importorskip("pyterrier")
    from didyma.integrations import RerankTransformer

    lists = made(12, scores=True)
    results, qrels = results_of(lists, text=lists.texts, score=lists.scores)
    qrels = qrels[qrels["label"] > 0]
    topics = results[["qid", "query"]].drop_duplicates()
    retriever = pyterrier.Transformer.from_df(pyterrier.model.add_ranks(results))
    reranking = retriever >> RerankTransformer(TextReranker(quick=True), first_stage=first_stage)
    reranking.fit(topics, qrels, topics, qrels)
    found = reranking.transform(topics)
    expected = TextReranker(quick=True).fit(lists if first_stage else made(12)).predict(lists)
    scores = dict(zip(found["docno"], found["score"]))
    np.testing.assert_allclose([scores[name] for name in results["docno"]], expected)
    table = pyterrier.Experiment([retriever, reranking], topics, qrels, ["map"])
    assert table["map"][1] > table["map"][0]
    with pytest.raises(DataError, match="found no text"):
        RerankTransformer(TextReranker()).transform(topics.assign(docno="d"))


@pytest.fixture(scope="module")
def with_signals() -> TextReranker:
    """A reranker for which clicks, the retriever's score and vectors count, and texts do not."""
    rng = np.random.default_rng(0)
    queries = [{"text": f"question {n}", "vector": [1.0, 0.0]} for n in range(40)]
    labels = [[1.0, 0.0, 0.0] for _ in queries]
    documents = [
        [
            {
                "text": f"passage {rng.integers(99)}",
                "clicks": float(rng.normal() + label),
                "dense": float(rng.normal() + label),
                "vector": [float(rng.normal() + label), 1.0],
            }
            for label in own
        ]
        for own in labels
    ]
    return TextReranker(quick=True).fit(queries, documents, labels)


CLICKS, SCORES = [0.5, 3.0, -1.0], [0.1, 0.9, 0.4]
VECTORS = [[0.1, 1.0], [2.0, 1.0], [0.3, 1.0]]
SIGNALS = [
    {"text": text, "clicks": clicks, "dense": dense, "vector": vector}
    for text, clicks, dense, vector in zip(TEXTS, CLICKS, SCORES, VECTORS)
]


def test_retrieved_documents_are_ranked_by_what_the_reranker_knows(with_signals):
    retrieved = [
        Retrieved(text, {"clicks": clicks, "source": "web", "id": 7}, score, vector)
        for text, clicks, score, vector in zip(TEXTS, CLICKS, SCORES, VECTORS)
    ]
    found = rank_retrieved(with_signals, QUERY, retrieved, query_vector=[1.0, 0.0])
    wanted = with_signals.rank({"text": QUERY, "vector": [1.0, 0.0]}, SIGNALS)
    assert [(one.index, one.raw) for one in found] == [(one.index, one.raw) for one in wanted]
    assert found[0].raw != with_signals.rank(QUERY, TEXTS)[0].raw
    given = [one._replace(metadata={**one.metadata, "dense": 0.0}) for one in retrieved]
    other = rank_retrieved(with_signals, QUERY, given, query_vector=[1.0, 0.0])
    zeros = [{**one, "dense": 0.0} for one in SIGNALS]  # metadata win over the retriever's score
    assert [one.raw for one in other] == [
        one.raw for one in with_signals.rank({"text": QUERY, "vector": [1.0, 0.0]}, zeros)
    ]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rank_retrieved(with_signals, QUERY, [Retrieved(text, {}, 0.5) for text in TEXTS])
    assert any("clicks: missing in 3 of 3 documents" in str(one.message) for one in told)


def test_a_reranker_with_scores_of_a_first_stage_is_given_the_retrievers():
    reranker = TextReranker(quick=True).fit(made(12, scores=True))
    retrieved = [Retrieved(text, {}, score) for text, score in zip(TEXTS, SCORES)]
    found = rank_retrieved(reranker, QUERY, retrieved)
    assert [one.raw for one in found] == [
        one.raw for one in reranker.rank(QUERY, TEXTS, None, SCORES)
    ]
    with pytest.raises(DataError, match="document 1: expected the retriever's score"):
        rank_retrieved(reranker, QUERY, [retrieved[0], Retrieved("It is late.")])


def test_langchain_reads_metadata_and_leaves_them_alone(with_signals):
    documents = pytest.importorskip("langchain_core.documents")
    from didyma.integrations import RerankCompressor

    metadata = [
        {"clicks": clicks, "vector": vector, "similarity": score, "source": "web"}
        for clicks, score, vector in zip(CLICKS, SCORES, VECTORS)
    ]
    given = [documents.Document(text, metadata=dict(own)) for text, own in zip(TEXTS, metadata)]
    compressor = RerankCompressor(reranker=with_signals, score_key="similarity")
    with pytest.warns(LeftOutWarning, match="no vector: 3 of 3 documents"):  # of the query
        found = compressor.compress_documents(given, QUERY)
    wanted = with_signals.rank(QUERY, SIGNALS)
    assert [one.page_content for one in found] == [one.text for one in wanted]
    for one, ranked in zip(found, wanted):
        assert one.metadata == {**metadata[ranked.index], "relevance_score": ranked.score}


def test_llama_index_reads_metadata_scores_and_embeddings(with_signals):
    schema = pytest.importorskip("llama_index.core.schema")
    from didyma.integrations import RerankPostprocessor

    nodes = [
        schema.NodeWithScore(
            node=schema.TextNode(text=text, metadata={"clicks": clicks, "a": 1}, embedding=vector),
            score=score,
        )
        for text, clicks, score, vector in zip(TEXTS, CLICKS, SCORES, VECTORS)
    ]
    asked = schema.QueryBundle(QUERY, embedding=[1.0, 0.0])
    found = RerankPostprocessor(reranker=with_signals).postprocess_nodes(nodes, query_bundle=asked)
    wanted = with_signals.rank({"text": QUERY, "vector": [1.0, 0.0]}, SIGNALS)
    assert [(one.node.text, one.score) for one in found] == [
        (one.text, one.score) for one in wanted
    ]
    assert found[0].node.metadata == {"clicks": CLICKS[wanted[0].index], "a": 1}


def test_haystack_reads_meta_scores_and_embeddings(with_signals):
    haystack = pytest.importorskip("haystack")
    from didyma.integrations import RerankComponent

    documents = [
        haystack.Document(content=text, meta={"clicks": clicks}, score=score, embedding=vector)
        for text, clicks, score, vector in zip(TEXTS, CLICKS, SCORES, VECTORS)
    ]
    found = RerankComponent(with_signals).run(QUERY, documents, query_embedding=[1.0, 0.0])
    wanted = with_signals.rank({"text": QUERY, "vector": [1.0, 0.0]}, SIGNALS)
    assert [(one.content, one.score) for one in found["documents"]] == [
        (one.text, one.score) for one in wanted
    ]
    assert found["documents"][0].meta == {"clicks": CLICKS[wanted[0].index]}


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
def test_pyterrier_learns_from_other_columns():
    pytest.importorskip("pyterrier")
    from didyma.integrations import RerankTransformer

    lists, rng = made(20), np.random.default_rng(1)
    clicks = rng.normal(size=len(lists)) + 3 * lists.y
    results, qrels = results_of(lists, text="The same.", clicks=clicks, score=0.0)
    transformer = RerankTransformer(TextReranker(quick=True), signals=["clicks"])
    transformer.fit(results, qrels)
    found = transformer.transform(results)
    assert np.corrcoef(found["score"], results["clicks"])[0, 1] > 0.5
    assert list(found["clicks"]) == list(results["clicks"])
    loaded = RerankTransformer(transformer.reranker)  # which knows its fields
    np.testing.assert_array_equal(loaded.transform(results)["score"], found["score"])
    with pytest.raises(DataError, match="likes: expected such a column"):
        RerankTransformer(TextReranker(), signals=["likes"]).fit(results, qrels)


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        ("RerankComponent", "haystack", "haystack"),
        ("RerankCompressor", "langchain_core", "langchain"),
        ("RerankPostprocessor", "llama_index", "llama-index"),
        ("RerankTransformer", "pyterrier", "pyterrier"),
    ],
)
def test_a_library_that_is_missing_is_named(monkeypatch, name, library, extra):
    for module in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    plug_in = f"didyma.integrations.{extra.replace('-', '_')}"
    monkeypatch.delitem(sys.modules, plug_in, raising=False)
    with pytest.raises(MissingExtraError) as error:
        getattr(integrations, name)
    assert str(error.value) == (
        f"{name} needs an optional dependency: pip install '.[{extra}]' in a checkout"
    )
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        integrations.nothing  # noqa: B018
