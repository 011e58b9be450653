"""Ways across a map, from corner to corner: cheap ones, of which none is the only good one.

How a network learns what terrain costs is the matter of shortest_path.py.
"""

import numpy as np

import didyma
import drawing
from didyma.structures import ShortestPath

costs = np.array(
    [
        [1, 1, 3, 5, 5, 3, 1],
        [1, 1, 1, 1, 3, 1, 1],
        [1, 3, 9, 5, 1, 1, 3],
        [1, 3, 3, 9, 3, 5, 1],
        [1, 1, 3, 9, 9, 5, 1],
        [3, 1, 1, 3, 3, 3, 1],
        [5, 3, 1, 1, 1, 1, 1],
    ]
)


def main():
    grid = ShortestPath.grid(*costs.shape)
    entered = [cell for _, cell in grid.edges]  # by each step
    scores = -costs.ravel()[entered]
    _, solution = didyma.sparsemap(scores, grid, return_solution=True)
    ways = solution[0]
    for way, probability in zip(ways.structures, ways.probabilities):
        print(f"{probability:4.0%}  costs {costs.ravel()[entered][way].sum()}")
    return drawing.paths(ways, grid.edges, costs)


if __name__ == "__main__":
    drawing.save(main())
