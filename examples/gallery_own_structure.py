"""A structure of your own is an argmax: here alignments that keep the order, as in time warping.

From the first pair to the last, each step goes a row down, a column to the right, or both.
"""

import numpy as np

import didyma
import drawing


class Monotone(didyma.Structure):
    ndim = 2

    def argmax(self, scores):
        n, m = scores.shape
        best = np.full((n + 1, m + 1), -np.inf)
        best[0, 0] = 0.0
        for i, j in np.ndindex(n, m):
            best[i + 1, j + 1] = scores[i, j] + max(best[i, j], best[i, j + 1], best[i + 1, j])
        parts, (i, j) = [], (n, m)
        while i > 0:
            parts.append((i - 1) * m + j - 1)
            i, j = max([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=lambda cell: best[cell])
        return np.array(parts)


def likeness(a, b):
    return 1.0 if a == b else -0.2 if a in "aeiou" and b in "aeiou" else -0.8


def main():
    american, british = "color", "colour"
    scores = [[likeness(a, b) for b in british] for a in american]
    _, solution = didyma.sparsemap(scores, Monotone(), return_solution=True)
    alignments = solution[0]
    for cells, probability in zip(alignments.structures, alignments.probabilities):
        pairs = [american[i] + british[j] for i, j in np.argwhere(cells)]
        print(f"{probability:4.0%}  {' '.join(pairs)}")
    return drawing.alignments(alignments, american, british, path=True)


if __name__ == "__main__":
    drawing.save(main())
