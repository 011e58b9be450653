"""LangChain: a compressor of retrieved documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, field_validator

from didyma.integrations.loading import reranker_of
from didyma.text.text_reranker import TextReranker

__all__ = ["RerankCompressor"]


class RerankCompressor(BaseDocumentCompressor):
    """Keeps the best documents, the best first; their metadata get a ``relevance_score``.

        ContextualCompressionRetriever(
            base_retriever=retriever,
            base_compressor=RerankCompressor(reranker="model.didyma.safetensors", top_n=5),
        )

    Parameters
    ----------
    reranker : TextReranker or path
    top_n : int, optional
        How many to keep; all of them if not given.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reranker: TextReranker
    top_n: int | None = None

    @field_validator("reranker", mode="before")
    @classmethod
    def _loaded(cls, given: Any) -> TextReranker:
        return reranker_of(given)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The documents as copies, ranked for a query."""
        texts = [document.page_content for document in documents]
        ranked = self.reranker.rank(query, texts, top_k=self.top_n)
        return [
            documents[one.index].model_copy(
                update={"metadata": {**documents[one.index].metadata, "relevance_score": one.score}}
            )
            for one in ranked
        ]
