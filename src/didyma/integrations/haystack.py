"""Haystack: a component that ranks documents."""

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_to_dict

from didyma.errors import DataError
from didyma.integrations.retrieved import GivenReranker, Retrieved, rank_retrieved, reranker_of
from didyma.text.text_reranker import TextReranker


@component
class RerankComponent:
    """Ranks documents, the best first, by their texts and all that the reranker was trained with.

    ``meta`` are the fields of the same names; scores of the retriever and embeddings count, too.

        pipeline.add_component("ranker", RerankComponent("model.didyma.safetensors", top_k=5))
        pipeline.connect("retriever.documents", "ranker.documents")

    Parameters
    ----------
    reranker : TextReranker or path
        A pipeline can be written to a file only with a path.
    top_k : int, optional
        How many to answer; all of them if not given.
    """

    def __init__(self, reranker: GivenReranker, top_k: int | None = None) -> None:
        self._given, self._reranker, self.top_k = reranker, reranker_of(reranker), top_k

    def to_dict(self) -> dict[str, Any]:
        """What a pipeline's file keeps."""
        if isinstance(self._given, TextReranker):
            raise DataError("expected the path of a model, as a pipeline's file cannot hold one")
        return default_to_dict(self, reranker=str(self._given), top_k=self.top_k)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
    ) -> dict[str, list[Document]]:
        """The documents as copies, ranked for a query; one without a text is an empty one."""
        retrieved = [
            Retrieved(document.content or "", document.meta, document.score, document.embedding)
            for document in documents
        ]
        wanted = self.top_k if top_k is None else top_k
        ranked = rank_retrieved(self._reranker, query, retrieved, wanted, query_embedding)
        return {"documents": [replace(documents[one.index], score=one.score) for one in ranked]}
