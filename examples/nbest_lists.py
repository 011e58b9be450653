"""Rerank n-best lists: what is there to gain, who gains it, and why a choice was made."""

from dataclasses import replace
from pathlib import Path

from didyma import NBestReranker, nbest

DATA = Path(__file__).parent / "data"


def main() -> None:
    train, dev, test = (
        nbest.read(DATA / f"nbest-{part}.jsonl") for part in ("train", "dev", "test")
    )
    test = replace(test, losses=nbest.losses(test))
    first, oracle = (
        test.loss_of(test.groups.choose(values)).mean() for values in (test.scores, -test.losses)
    )
    print(f"wrong words a sentence: decoder {first:.2f}, oracle {oracle:.2f}")
    for model in ("low-rank", "boosting", "svm"):
        reranker = NBestReranker(model).fit(train, dev)
        reached = test.loss_of(reranker.rerank(test)).mean()
        print(f"{model:9} {reached:.2f}, weight {reranker.weight_:.0f} %")
    one = test.select_lists([1])  # whose first output is the decoder's choice
    best, *_ = reranker.rank(one.queries[0], one.items, scores=one.scores)
    reasons = reranker.explain(one.queries[0], one.items, one.scores)
    print(one.queries[0].text)
    print("decoder:", one.items[0].text)
    print("chosen: ", best.text)
    for part in reasons[best.index].above(reasons[0]).differences[:3]:
        print(f"  {part.name:20} {part.amount:+.2f}")


if __name__ == "__main__":
    main()
