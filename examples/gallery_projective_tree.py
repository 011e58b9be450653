"""A head for each word, where no arcs cross: what is it that is "with anchovies"?"""

import numpy as np

import didyma
import drawing
from didyma.structures import ProjectiveTree

words = ["they", "ate", "the", "pizza", "with", "anchovies"]
arcs = {  # (word, head): score, where the root is a head too
    ("they", "ate"): 2.0,
    ("ate", "root"): 2.0,
    ("the", "pizza"): 2.0,
    ("pizza", "ate"): 2.0,
    ("with", "ate"): 0.6,
    ("with", "pizza"): 0.9,
    ("with", "anchovies"): 0.5,
    ("anchovies", "with"): 1.3,
    ("anchovies", "pizza"): 0.7,
}


def main():
    names = ["root", *words]
    scores = np.full((len(names), len(names)), -1.0)  # [word, head]
    for (word, head), score in arcs.items():
        scores[names.index(word), names.index(head)] = score
    _, solution = didyma.sparsemap(scores, ProjectiveTree(), return_solution=True)
    parses = solution[0]
    for heads, probability in zip(parses.structures, parses.probabilities):
        pairs = [f"{word}<-{names[head]}" for word, head in zip(words, heads[1:])]
        print(f"{probability:4.0%}  {' '.join(pairs)}")
    return drawing.trees(parses, words)


if __name__ == "__main__":
    drawing.save(main())
