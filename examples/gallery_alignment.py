"""Two strands of DNA aligned in their order: pairs, and letters that are left out."""

import numpy as np

import didyma
import drawing
from didyma.structures import MonotoneAlignment


def main():
    one, other = "GATTACA", "GCATGCA"
    alike = np.array([[a == b for b in other] for a in one])
    scores = np.where(alike, 1.0, -0.6)
    gap = -0.25
    _, solution = didyma.sparsemap(
        scores,
        MonotoneAlignment("pairs"),
        row_gaps=np.full(len(one), gap),
        column_gaps=np.full(len(other), gap),
        return_solution=True,
    )
    alignments = solution[0]
    for cells, probability in zip(alignments.structures, alignments.probabilities):
        pairs = [f"{one[i]}{i + 1}-{other[j]}{j + 1}" for i, j in np.argwhere(cells)]
        print(f"{probability:4.0%}  {' '.join(pairs)}")
    return drawing.alignments(alignments, one, other, path=True)


if __name__ == "__main__":
    drawing.save(main())
