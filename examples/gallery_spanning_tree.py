"""Cables that join all houses, as short as can be: a spanning tree, by networkx."""

from itertools import combinations
from math import dist

import didyma
import drawing
from didyma.solvers import SpanningTree

houses = {"a": (0, 0), "b": (1, 0.2), "c": (0.5, 0.9), "d": (1.7, 1.1), "e": (2.2, 0.1)}


def main():
    cables = [pair for pair in combinations(houses, 2) if dist(*map(houses.get, pair)) < 1.5]
    scores = [-4 * dist(houses[a], houses[b]) for a, b in cables]
    _, solution = didyma.sparsemap(scores, SpanningTree(cables), return_solution=True)
    for taken, probability in zip(solution[0].structures, solution[0].probabilities):
        laid = [a + b for (a, b), here in zip(cables, taken) if here]
        print(f"{probability:4.0%}  {' '.join(laid)}")
    return drawing.graphs(solution[0], cables, "trees", houses)


if __name__ == "__main__":
    drawing.save(main())
