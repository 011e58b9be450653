"""Passages found by BM25 in an index on disk and, if wanted, ranked by a reranker."""
