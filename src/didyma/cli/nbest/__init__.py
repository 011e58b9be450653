"""`didyma nbest`: train, apply, evaluate and explain rerankers of n-best lists."""

from __future__ import annotations

from didyma.cli.groups import group
from didyma.cli.nbest.comparison import compare, evaluate, oracle
from didyma.cli.nbest.explain import explain
from didyma.cli.nbest.fit import fit
from didyma.cli.nbest.rerank import rerank

__all__ = ["app"]

app = group(
    """Choose better among the candidates that a decoder proposes.

    Data are n-best lists with references, or with losses under any name: JSON
    lines ({"id", "input", "reference", "candidates": [{"text", "score", "loss",
    "features", "vector"}]}) or Moses style with --inputs and --references, plain
    or compressed (.gz).

    [bold]Train, compare, apply:[/bold]

    didyma nbest fit train.jsonl --dev dev.jsonl --model-type svm -o svm.safetensors

    didyma nbest eval svm.safetensors test.jsonl

    didyma nbest compare svm.safetensors low-rank.safetensors --data test.jsonl

    didyma nbest rerank svm.safetensors test.jsonl -o reranked.jsonl
    """
)


for name, command in (
    ("fit", fit),
    ("rerank", rerank),
    ("eval", evaluate),
    ("compare", compare),
    ("oracle", oracle),
    ("explain", explain),
):
    app.command(name)(command)
