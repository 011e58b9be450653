"""A task of your own from nothing but an argmax: multiclass classification in thirty lines.

A structural SVM asks a task one question: which output is violated most under these weights? Answer
it with a `Cut` (the feature difference and the loss) and every learner can train the task.
"""

import numpy as np

from didyma.learning import BCFW, Cut, OneSlack, PythonProblem


class Multiclass(PythonProblem):
    def __init__(self, X, labels, n_classes):
        super().__init__(n_examples=len(X), n_features=n_classes * X.shape[1])
        self.X, self.labels, self.n_classes = X, labels, n_classes

    def cut(self, w, i):
        x, gold = self.X[i], self.labels[i]
        loss = (np.arange(self.n_classes) != gold).astype(float)
        worst = int(np.argmax(w.reshape(self.n_classes, -1) @ x + loss))
        direction = np.zeros((self.n_classes, len(x)))
        direction[worst] += x
        direction[gold] -= x
        return Cut(direction.ravel(), loss[worst])


def main():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    X = rng.standard_normal((300, 5)) + 2.0 * np.eye(3, 5)[labels]
    problem = Multiclass(X, labels, 3)
    for learner in (BCFW(), OneSlack()):
        solution = learner.solve(problem, C=100.0)
        predicted = np.argmax(X @ solution.w.reshape(3, -1).T, axis=1)
        result = solution.result
        print(
            f"{type(learner).__name__}: objective {result.value:.3f}, gap {result.gap:.1e}, "
            f"accuracy {np.mean(predicted == labels):.3f}"
        )


if __name__ == "__main__":
    main()
