"""Rerank n-best lists: what is there to gain, who gains it, and why a choice was made."""

from pathlib import Path

import numpy as np

from didyma import NBestReranker
from didyma.formats import nbest

DATA = Path(__file__).parent / "data"


def main() -> None:
    train, dev, test = (
        nbest.read(DATA / f"nbest-{part}.jsonl") for part in ("train", "dev", "test")
    )
    losses = nbest.losses(test)
    first = np.mean([loss[0] for loss in losses])
    oracle = np.mean([loss.min() for loss in losses])
    print(f"wrong words a sentence: decoder {first:.2f}, oracle {oracle:.2f}")
    for model in ("low-rank", "boosting", "svm"):
        reranker = NBestReranker(model).fit(train, dev)
        chosen = reranker.rerank(test)
        reached = np.mean([loss[place] for loss, place in zip(losses, chosen)])
        print(f"{model:9} {reached:.2f}, weight {reranker.weight_:.0f} %")
    explained = reranker.explain(test[1], n=3)
    print(test[1].input)
    print("decoder:", test[1].candidates[explained.first].text)
    print("chosen: ", test[1].candidates[explained.chosen].text)
    for name, value in explained.contributions:
        print(f"  {name:20} {value:+.2f}")


if __name__ == "__main__":
    main()
