"""A tree and a budget: one root, and at most one arc between words that stand far apart."""

import numpy as np

import didyma
import drawing
from didyma.structures import AtMost, Composition, ExactlyOne, Factor, Tree

words = ["root", "time", "flies", "like", "an", "arrow"]
scores = np.array(  # row: word, column: its head
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1.2, 0.0, 1.5, 1.1, 0.0, 0.9],
        [1.6, 1.0, 0.0, 1.4, 0.0, 0.2],
        [1.3, 0.4, 1.2, 0.0, 0.0, 1.0],
        [0.0, 0.8, 0.9, 0.1, 0.0, 1.1],
        [0.9, 1.6, 1.5, 1.0, 0.2, 0.0],
    ]
)


def main():
    n = len(words)
    arcs = np.arange(n * n).reshape(n, n)  # the variable of each arc
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    far = arcs[1:, 1:][distance[1:, 1:] > 2]
    graph = Composition(
        n * n, [Factor(Tree(), arcs)], logic=[ExactlyOne(arcs[1:, 0]), AtMost(1, far)]
    )
    free = didyma.sparsemap(scores, Tree())
    solution = didyma.local_sparsemap(scores.ravel(), graph)
    bound = solution.marginals.reshape(n, n)
    for name, marginals in (("tree", free), ("tree and budget", bound)):
        print(f"{name}: {marginals[:, 0].sum():.2f} roots, {marginals.ravel()[far].sum():.2f} far")
    print(f"certified gap {solution.gap:.0e}, {solution.n_iter} steps")
    return draw({"a tree": free, "one root, one far arc": bound})


def draw(panels):
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
    for axis, (title, marginals) in zip(axes, panels.items()):
        axis.imshow(marginals[1:], cmap="Blues", vmin=0, vmax=1)
        for m, h in zip(*np.nonzero(marginals[1:] > 0.005)):
            share = marginals[m + 1, h]
            colour = "white" if share > 0.6 else "black"
            axis.text(h, m, f"{share:.2f}", ha="center", va="center", color=colour, fontsize=8)
        axis.set_xticks(range(len(words)), words)
        axis.set_yticks(range(len(words) - 1), words[1:])
        axis.set(title=title, xlabel="head")
        axis.spines[:].set_visible(False)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    drawing.save(main())
