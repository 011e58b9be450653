"""A latent task of your own: which item of a bag makes it positive?

Labels say whether a bag has a positive item, not which one. An output is (label, item); a task says
how outputs are scored, found and judged, and every learner can train it.
"""

import numpy as np

from didyma import LatentStructuredPerceptron, LatentStructuredSVM, Task


class Bags(Task):
    def __init__(self, n_features):
        self.n_features = n_features

    def features(self, x, output):
        label, item = output
        return x[item] if label else np.zeros(self.n_features)

    def argmax(self, w, x):
        item = int(np.argmax(x @ w))
        return (True, item) if x[item] @ w > 0 else (False, None)

    def loss(self, y, output):
        return float(y != output[0])

    def loss_augmented(self, w, x, y, scale=1.0):
        item = int(np.argmax(x @ w))
        positive = x[item] @ w + scale * (not y)
        return (True, item) if positive > scale * y else (False, None)

    def complete(self, w, x, y):
        return (True, int(np.argmax(x @ w))) if y else (False, None)


def main():
    rng = np.random.default_rng(0)
    labels = [bool(label) for label in rng.integers(0, 2, 200)]
    bags = [np.c_[rng.standard_normal((6, 4)), np.ones(6)] for _ in labels]
    for bag, label in zip(bags, labels):
        bag[rng.integers(6), 0] += 6.0 * label  # one item stands out in a positive bag
    train, test = (bags[:100], labels[:100]), (bags[100:], labels[100:])
    perceptron = LatentStructuredPerceptron(Bags(5), epochs=20).fit(*train)
    svm = LatentStructuredSVM(Bags(5), C=100.0).fit(*train, coef_init=perceptron.coef_)
    for learner in (perceptron, svm):
        print(f"{type(learner).__name__}: {1 + learner.score(*test):.2f} of the new bags right")


if __name__ == "__main__":
    main()
