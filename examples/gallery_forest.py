"""Links without cycles: mentions that form a tree speak of the same person."""

import numpy as np

import didyma
import drawing
from didyma.structures import Forest

# "Anna met the doctor. She gave him her card, and the surgeon thanked her."
mentions = ["Anna", "she", "her", "the doctor", "him", "the surgeon"]
links = {
    ("Anna", "she"): 0.8,
    ("Anna", "her"): 0.6,
    ("she", "her"): 0.9,
    ("the doctor", "him"): 1.2,
    ("the doctor", "the surgeon"): 1.1,
}


def main():
    scores = np.full((len(mentions), len(mentions)), -1.0)  # above the diagonal
    for (first, second), score in links.items():
        scores[mentions.index(first), mentions.index(second)] = score
    _, solution = didyma.sparsemap(scores, Forest(), return_solution=True)
    forests = solution[0]
    for forest, probability in zip(forests.structures, forests.probabilities):
        pairs = [f"{mentions[i]}-{mentions[j]}" for i, j in np.argwhere(forest)]
        print(f"{probability:4.0%}  {', '.join(pairs)}")
    return drawing.forests(forests, mentions)


if __name__ == "__main__":
    drawing.save(main())
