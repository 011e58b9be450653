"""`didyma rerank`: passages, best first, learned from judged texts."""

from __future__ import annotations

from didyma.cli.groups import group
from didyma.cli.rerank.evaluate import compare, evaluate
from didyma.cli.rerank.fit import fit
from didyma.cli.rerank.rank import explain, rank
from didyma.cli.rerank.teacher import cascade, distil

__all__ = ["app"]

app = group(
    """Rank passages for queries, learned from texts and judgements.

    [bold]Train, evaluate, apply:[/bold]

    didyma rerank fit train.tsv -o reranker.didyma.safetensors

    didyma rerank eval reranker.didyma.safetensors test.tsv

    didyma rerank rank reranker.didyma.safetensors test.tsv -o ranked.jsonl

    [bold]One query, passages from a file or a pipe, one a line:[/bold]

    didyma rerank rank reranker.didyma.safetensors --query "who wrote Emma?" passages.txt

    didyma rerank explain reranker.didyma.safetensors --query "who wrote Emma?" passages.txt

    Data are JSON lines, tables, lines of question, sentence and label, or
    folders as of BEIR, MS MARCO and TREC QA; all files may be compressed (.gz)."""
)

for command in (fit, rank, evaluate, explain, compare, distil, cascade):
    app.command("eval" if command is evaluate else None)(command)
