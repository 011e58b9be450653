"""Each word with at most one word of the other language: a translation aligned without order."""

import numpy as np

import didyma
import drawing
from didyma.structures import Matching

german = ["gestern", "habe", "ich", "ihn", "gesehen"]
english = ["I", "saw", "him", "yesterday"]
scores = np.array(  # how well two words translate each other
    [
        [0.0, 0.1, 0.0, 2.0],
        [0.2, 0.8, 0.2, 0.0],
        [1.8, 0.0, 0.6, 0.0],
        [0.5, 0.0, 1.5, 0.0],
        [0.0, 1.2, 0.1, 0.1],
    ]
)


def main():
    _, solution = didyma.sparsemap(scores, Matching(), return_solution=True)
    matchings = solution[0]
    for columns, probability in zip(matchings.structures, matchings.probabilities):
        pairs = [f"{word}={english[j]}" for word, j in zip(german, columns) if j >= 0]
        print(f"{probability:4.0%}  {' '.join(pairs)}")
    return drawing.alignments(matchings, german, english)


if __name__ == "__main__":
    drawing.save(main())
