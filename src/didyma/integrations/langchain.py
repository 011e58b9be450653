"""LangChain: a compressor of retrieved documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import BeforeValidator, ConfigDict

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

    reranker: Annotated[TextReranker, BeforeValidator(reranker_of)]
    top_n: int | None = None
    score_key: str = "score"

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The documents as copies, ranked for a query."""
        retrieved = [
            Retrieved(
                document.page_content, document.metadata, document.metadata.get(self.score_key)
            )
            for document in documents
        ]
        best = []
        for one in rank_retrieved(self.reranker, query, retrieved, self.top_n):
            document = documents[one.index]
            metadata = {**document.metadata, "relevance_score": one.score}
            best.append(document.model_copy(update={"metadata": metadata}))
        return best
