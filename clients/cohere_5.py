"""cohere 5, and what needs it: LangChain's and LlamaIndex's Cohere classes."""

from __future__ import annotations

import cohere
from checks import BEST, QUERY, TEXTS, expect, expect_nodes, expect_results, nodes, refused, run


def v2(address: str, token: str) -> None:
    client = cohere.ClientV2(token, base_url=address)
    expect_results(client.rerank(model="m", query=QUERY, documents=TEXTS).results)
    assert len(client.rerank(model="m", query=QUERY, documents=TEXTS, top_n=1).results) == 1


def v1(address: str, token: str) -> None:
    client = cohere.Client(token, base_url=address)
    documents = [{"text": text, "year": "1902"} for text in TEXTS]
    answer = client.rerank(model="m", query=QUERY, documents=documents, return_documents=True)
    expect_results(answer.results)
    assert answer.results[0].document.text == TEXTS[BEST]


def errors(address: str, token: str) -> None:
    stranger, client = (cohere.ClientV2(key, base_url=address) for key in ("wrong", token))
    error = refused(
        cohere.UnauthorizedError,
        lambda: stranger.rerank(model="m", query=QUERY, documents=TEXTS),
    )
    assert "token" in error.body["message"]
    error = refused(
        cohere.BadRequestError, lambda: client.rerank(model="m", query=QUERY, documents=[7])
    )
    assert "documents" in error.body["message"]


def langchain(address: str, token: str) -> None:
    from langchain_cohere import CohereRerank
    from langchain_core.documents import Document

    compressor = CohereRerank(model="m", cohere_api_key=token, base_url=address, top_n=2)
    documents = [Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
    found = compressor.compress_documents(documents, QUERY)
    assert len(found) == 2
    expect([one.metadata["n"] for one in found], [one.metadata["relevance_score"] for one in found])
    everything = compressor.rerank([{"text": text} for text in TEXTS], QUERY, top_n=None)
    assert len(everything) == len(TEXTS)


def llama_index(address: str, token: str) -> None:
    from llama_index.postprocessor.cohere_rerank import CohereRerank

    ranker = CohereRerank(top_n=3, model="m", api_key=token, base_url=address)
    expect_nodes(ranker.postprocess_nodes(nodes(), query_str=QUERY))


if __name__ == "__main__":
    run(
        {
            "cohere 5, ClientV2": v2,
            "cohere 5, Client": v1,
            "cohere 5, errors as its own classes": errors,
            "langchain-cohere, CohereRerank": langchain,
            "LlamaIndex, CohereRerank": llama_index,
        }
    )
