"""Joint states of variables, scored alone and in pairs: stances in a thread of replies."""

import numpy as np

import didyma
import drawing
from didyma.structures import FactorGraph

posts = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"]
replies = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]
stances = ["for", "against"]
positions = [(2.0, 2.0), (1.0, 1.0), (3.0, 1.0), (0.4, 0.0), (1.6, 0.0), (3.0, 0.0)]
scores = np.array([[1.0, 0.0], [0.3, 0.2], [0.4, 0.3], [0.5, 0.1], [0.0, 0.4], [0.6, 0.0]])
disagree = 0.6 * (1 - np.eye(2))


def main():
    thread = FactorGraph(len(posts), n_states=2, edges=replies)
    _, solution = didyma.sparsemap(
        scores, thread, pairwise=[disagree] * len(replies), return_solution=True
    )
    readings = solution[0]
    for states, probability in zip(readings.structures, readings.probabilities):
        named = [f"{post} {stances[state]}" for post, state in zip(posts, states)]
        print(f"{probability:4.0%}  {', '.join(named)}")
    return drawing.factor_graphs(readings, replies, posts, stances, positions=positions)


if __name__ == "__main__":
    drawing.save(main())
