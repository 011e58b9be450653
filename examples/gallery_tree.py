"""A head for each word, where arcs may cross: does "on the issue" belong to "hearing"?"""

import numpy as np

import didyma
import drawing
from didyma.structures import Tree

words = ["A", "hearing", "is", "scheduled", "on", "the", "issue", "today"]
arcs = {  # (word, head): score, where the root is a head too
    ("A", "hearing"): 2.0,
    ("hearing", "is"): 1.8,
    ("hearing", "scheduled"): 0.7,
    ("is", "root"): 1.5,
    ("scheduled", "is"): 1.2,
    ("on", "hearing"): 0.9,
    ("on", "scheduled"): 0.8,
    ("on", "is"): 0.5,
    ("the", "issue"): 2.0,
    ("issue", "on"): 2.0,
    ("today", "scheduled"): 1.5,
}


def parse(words, arcs, structure):
    names = ["root", *words]
    scores = np.full((len(names), len(names)), -1.0)  # [word, head]
    for (word, head), score in arcs.items():
        scores[names.index(word), names.index(head)] = score
    _, solution = didyma.sparsemap(scores, structure, return_solution=True)
    parses = solution[0]
    for heads, probability in zip(parses.structures, parses.probabilities):
        pairs = [f"{word}<-{names[head]}" for word, head in zip(words, heads[1:])]
        print(f"{probability:4.0%}  {' '.join(pairs)}")
    return drawing.trees(parses, words)


def main():
    return parse(words, arcs, Tree(single_root=True))


if __name__ == "__main__":
    drawing.save(main())
