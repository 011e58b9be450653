"""LlamaIndex: a postprocessor of retrieved nodes."""

from __future__ import annotations

from typing import Annotated

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import BeforeValidator

from didyma.errors import DataError
from didyma.integrations.retrieved import Retrieved, rank_retrieved, reranker_of
from didyma.text.text_reranker import TextReranker


class RerankPostprocessor(BaseNodePostprocessor):
    """Keeps the best nodes, the best first; their scores are chances of relevance.

        index.as_query_engine(
            similarity_top_k=50,
            node_postprocessors=[RerankPostprocessor(reranker="model.didyma.safetensors", top_n=5)],
        )

    Read are the texts of nodes without their metadata, and beside them what the reranker was
    trained with: metadata as the fields of the same names, scores of the retriever, embeddings.

    Parameters
    ----------
    reranker : TextReranker or path
    top_n : int, optional
        How many to keep; all of them if not given.
    """

    reranker: Annotated[TextReranker, BeforeValidator(reranker_of)]
    top_n: int | None = None

    @classmethod
    def class_name(cls) -> str:
        """What LlamaIndex calls it."""
        return "RerankPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise DataError("expected a query, found none")
        retrieved = [
            Retrieved(
                scored.node.get_content(metadata_mode=MetadataMode.NONE),
                scored.node.metadata,
                scored.score,
                scored.node.embedding,
            )
            for scored in nodes
        ]
        query, vector = query_bundle.query_str, query_bundle.embedding
        ranked = rank_retrieved(self.reranker, query, retrieved, self.top_n, vector)
        return [NodeWithScore(node=nodes[one.index].node, score=one.score) for one in ranked]
