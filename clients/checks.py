"""What all clients are asked, what they should get, and how checks are run."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

QUERY = "when does the ship of the storm sail?"
TEXTS = ["It is late.", "The ship of the storm sails in 1902.", "A ship ship ship."]
BEST = 1

Check = Callable[[str, str], None]


def refused(kind: type[Exception], ask: Callable[[], object]) -> Exception:
    """The exception of a client that is refused."""
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError("was answered")


def expect(indices: Sequence[int], scores: Sequence[float]) -> None:
    """The best text first, and scores that fall."""
    assert indices[0] == BEST, indices
    assert list(scores) == sorted(scores, reverse=True), scores
    assert all(0 < score < 1 for score in scores), scores


def expect_results(results: Sequence[Any]) -> None:
    """The same of results of Cohere's clients."""
    expect([one.index for one in results], [one.relevance_score for one in results])


def nodes() -> list[Any]:
    """The texts as nodes of LlamaIndex."""
    from llama_index.core.schema import NodeWithScore, TextNode

    return [
        NodeWithScore(node=TextNode(text=text, metadata={"n": n}), score=0.0)
        for n, text in enumerate(TEXTS)
    ]


def expect_nodes(ranked: Sequence[Any]) -> None:
    """The same of nodes of LlamaIndex."""
    expect([one.node.metadata["n"] for one in ranked], [one.score for one in ranked])


def run(checks: dict[str, Check]) -> None:
    """Run checks with the address and token of the command line; the exit code is how many fail."""
    address, token = sys.argv[1:]
    failed = 0
    for name, check in checks.items():
        try:
            check(address, token)
            outcome = "passed"
        except Exception:
            traceback.print_exc()
            outcome, failed = "failed", failed + 1
        print(f"{outcome}  {name}", flush=True)
    sys.exit(failed)
