"""LangChain: a compressor of retrieved documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, field_validator

from didyma.integrations.retrieved import Retrieved, rank_retrieved, reranker_of
from didyma.text.text_reranker import TextReranker


class RerankCompressor(BaseDocumentCompressor):
    """Keeps the best documents, the best first; their metadata get a ``relevance_score``.

    Metadata that the reranker was trained with are read as the fields of these names, and come back
    untouched.

        ContextualCompressionRetriever(
            base_retriever=retriever,
            base_compressor=RerankCompressor(reranker="model.didyma.safetensors", top_n=5),
        )

    Parameters
    ----------
    reranker : TextReranker or path
    top_n : int, optional
        How many to keep; all of them if not given.
    score_key : str
        Where metadata have the retriever's score, if they do.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reranker: TextReranker
    top_n: int | None = None
    score_key: str = "score"

    @field_validator("reranker", mode="before")
    @classmethod
    def _loaded(cls, given: Any) -> TextReranker:
        return reranker_of(given)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The documents as copies, ranked for a query."""
        retrieved = [
            Retrieved(own.page_content, own.metadata, own.metadata.get(self.score_key))
            for own in documents
        ]
        ranked = rank_retrieved(self.reranker, query, retrieved, self.top_n)
        return [
            documents[one.index].model_copy(
                update={"metadata": {**documents[one.index].metadata, "relevance_score": one.score}}
            )
            for one in ranked
        ]
