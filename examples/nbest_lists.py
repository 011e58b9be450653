"""Rerank n-best lists: what is there to gain, who gains it, and why a choice was made."""

from dataclasses import replace
from pathlib import Path

from didyma import NBestReranker
from didyma.formats import nbest

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
    explained = reranker.explain(test, number=1, n=3)
    outputs = [test.items[row].text for row in test.groups.rows_of(1)]
    print(test.queries[1].text)
    print("decoder:", outputs[explained.first])
    print("chosen: ", outputs[explained.chosen])
    for name, value in explained.contributions:
        print(f"  {name:20} {value:+.2f}")


if __name__ == "__main__":
    main()
