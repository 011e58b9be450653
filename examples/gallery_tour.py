"""A round trip through all towns: the travelling salesman, by CP-SAT."""

from itertools import combinations
from math import dist

import numpy as np

import didyma
import drawing
from didyma.solvers import Tour

towns = {
    "A": (0, 0),
    "B": (1, 1.1),
    "C": (2.2, 1.2),
    "D": (3, 0.2),
    "E": (2, -0.8),
    "F": (0.9, -0.6),
}


def main():
    roads = list(combinations(range(len(towns)), 2))
    scores = np.zeros((len(towns), len(towns)))
    for i, j in roads:
        scores[i, j] = -dist(*(list(towns.values())[k] for k in (i, j)))
    _, solution = didyma.sparsemap(scores, Tour(len(towns), directed=False), return_solution=True)
    for tour, probability in zip(solution[0].structures, solution[0].probabilities):
        print(f"{probability:4.0%}  length {-scores[tour].sum():.2f}")
    names = list(towns)
    edges = [(names[i], names[j]) for i, j in roads]
    taken = np.array([[tour[i, j] for i, j in roads] for tour in solution[0].structures])
    return drawing.graphs((taken, solution[0].probabilities), edges, "tours", towns)


if __name__ == "__main__":
    drawing.save(main())
