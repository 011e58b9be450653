"""cohere 7, LlamaIndex's Jina and TEI classes, Haystack's rankers, and rerankers."""

from __future__ import annotations

import asyncio

import cohere
from checks import QUERY, TEXTS, expect, expect_nodes, expect_results, nodes, refused, run


def v2(address: str, token: str) -> None:
    client = cohere.ClientV2(token, base_url=address)
    expect_results(client.rerank(model="m", query=QUERY, documents=TEXTS).results)


def spans(address: str, token: str) -> None:
    client = cohere.ClientV2(token, base_url=address)
    wanted = cohere.RerankRelevantSpans(mode="enabled", threshold=0.1, max_spans=3)
    best, *_ = client.rerank(model="m", query=QUERY, documents=TEXTS, relevant_spans=wanted).results
    found = [TEXTS[best.index][span.start : span.end] for span in best.relevant_spans]
    assert found, best
    assert any("ship" in text for text in found), found


def asynchronous(address: str, token: str) -> None:
    async def ask() -> None:
        client = cohere.AsyncClientV2(token, base_url=address)
        answers = [client.rerank(model="m", query=QUERY, documents=TEXTS) for _ in range(8)]
        for answer in await asyncio.gather(*answers):
            expect_results(answer.results)

    asyncio.run(ask())


def llama_index_jina(address: str, token: str) -> None:
    from llama_index.postprocessor.jinaai_rerank import JinaRerank

    ranker = JinaRerank(top_n=3, model="m", api_key=token, base_url=f"{address}/v1")
    expect_nodes(ranker.postprocess_nodes(nodes(), query_str=QUERY))
    wrong = JinaRerank(top_n=3, model="m", api_key="wrong", base_url=f"{address}/v1")
    error = refused(RuntimeError, lambda: wrong.postprocess_nodes(nodes(), query_str=QUERY))
    assert "token" in str(error)


def llama_index_tei(address: str, token: str) -> None:
    from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

    for given in (token, f"Bearer {token}"):
        ranker = TextEmbeddingInference(top_n=3, base_url=address, auth_token=given)
        expect_nodes(ranker.postprocess_nodes(nodes(), query_str=QUERY))


def haystack_cohere(address: str, token: str) -> None:
    from haystack.utils import Secret
    from haystack_integrations.components.rankers.cohere import CohereRanker

    ranker = CohereRanker(api_key=Secret.from_token(token), api_base_url=address)
    _expect_documents(ranker.run(query=QUERY, documents=_documents())["documents"])


def haystack_jina(address: str, token: str) -> None:
    from haystack.utils import Secret
    from haystack_integrations.components.rankers.jina import JinaRanker

    ranker = JinaRanker(api_key=Secret.from_token(token), base_url=f"{address}/v1/rerank")
    _expect_documents(ranker.run(query=QUERY, documents=_documents())["documents"])


def rerankers(address: str, token: str) -> None:
    from rerankers.models.api_rankers import APIRanker

    for provider, path in (
        ("cohere", "/v1/rerank"),
        ("cohere", "/v2/rerank"),
        ("jina", "/v1/rerank"),
        ("text-embeddings-inference", "/rerank"),
    ):
        ranker = APIRanker("m", token, provider, verbose=0, url=f"{address}{path}")
        found = ranker.rank(QUERY, TEXTS, doc_ids=list(range(len(TEXTS)))).results
        expect([one.doc_id for one in found], [one.score for one in found])


def _documents() -> list:
    from haystack import Document

    return [Document(content=text, meta={"n": n}) for n, text in enumerate(TEXTS)]


def _expect_documents(found: list) -> None:
    expect([one.meta["n"] for one in found], [one.score for one in found])


if __name__ == "__main__":
    run(
        {
            "cohere 7, ClientV2": v2,
            "cohere 7, relevant spans": spans,
            "cohere 7, AsyncClientV2": asynchronous,
            "LlamaIndex, JinaRerank": llama_index_jina,
            "LlamaIndex, TextEmbeddingInference": llama_index_tei,
            "Haystack, CohereRanker": haystack_cohere,
            "Haystack, JinaRanker": haystack_jina,
            "rerankers, as Cohere, Jina and TEI": rerankers,
        }
    )
