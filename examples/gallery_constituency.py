"""Binary trees of labelled spans: does she have it, or does the man?"""

import numpy as np

import didyma
import drawing
from didyma.structures import Constituency

words = ["she", "saw", "the man", "with it"]
labels = ["S", "NP", "VP", "V", "PP"]
spans = {  # first and last word, label: score
    (0, 0, "NP"): 1.0,
    (1, 1, "V"): 1.0,
    (2, 2, "NP"): 1.0,
    (3, 3, "PP"): 1.0,
    (0, 3, "S"): 2.0,
    (1, 3, "VP"): 1.0,
    (1, 2, "VP"): 1.2,
    (2, 3, "NP"): 1.0,
    (0, 2, "S"): 0.2,
}


def main():
    scores = np.zeros((len(words), len(words), len(labels)))
    for (first, last, label), score in spans.items():
        scores[first, last, labels.index(label)] = score
    _, solution = didyma.sparsemap(scores, Constituency(), return_solution=True)
    readings = solution[0]
    for tree, probability in zip(readings.structures, readings.probabilities):
        print(f"{probability:4.0%}  {bracketed(tree, 0, len(words) - 1)}")
    return drawing.constituents(readings, words, labels)


def bracketed(tree, first, last):
    label = labels[tree[first, last]]
    if first == last:
        return f"({label} {words[first]})"
    split = next(k for k in range(first, last) if tree[first, k] >= 0 <= tree[k + 1, last])
    return f"({label} {bracketed(tree, first, split)} {bracketed(tree, split + 1, last)})"


if __name__ == "__main__":
    drawing.save(main())
