"""What a trained parser cannot decide: of two trees, how probable is each?"""

from pathlib import Path

import drawing
from didyma.applications.parsing import DependencyParser
from didyma.data import conll

DATA = Path(__file__).parent / "data"


def main():
    train = conll.read(DATA / "treebank-train.conllu", trees=True)
    test = conll.read(DATA / "treebank-test.conllu", trees=True)
    sizes = {"word_size": 32, "hidden": 32, "mlp": 32}
    parser = DependencyParser(epochs=8, learning_rate=5e-3, **sizes, device="cpu").fit(train)
    print(f"UAS {parser.score(test):.2f}")
    posteriors = parser.alternatives(test)
    undecided = [k for k, trees in enumerate(posteriors) if len(trees.probabilities) == 2]
    k = min(undecided, key=lambda k: posteriors[k].probabilities.max())
    for heads, probability in zip(posteriors[k].structures, posteriors[k].probabilities):
        print(f"{probability:4.0%}  heads {heads[1:].tolist()}")
    return drawing.trees(posteriors[k], test[k].words)


if __name__ == "__main__":
    drawing.save(main())
