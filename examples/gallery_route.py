"""Ways through a town whose streets run both ways: a graph with cycles, by Dijkstra's algorithm."""

import didyma
import drawing
from didyma.solvers import Route

crossings = {  # where they are, west to east and south to north
    "home": (0, 1),
    "bridge": (1, 2),
    "market": (1, 0),
    "park": (2.3, 1),
    "station": (3.2, 2),
    "office": (4.3, 1),
}
minutes = {
    ("home", "bridge"): 4,
    ("home", "market"): 4,
    ("bridge", "market"): 3,
    ("bridge", "park"): 3,
    ("market", "park"): 3,
    ("bridge", "station"): 5,
    ("park", "station"): 2,
    ("park", "office"): 5,
    ("station", "office"): 3,
}


def main():
    route = Route(minutes, "home", "office", directed=False)
    scores = [-float(time) for time in minutes.values()]
    _, solution = didyma.sparsemap(scores, route, temperature=2.0, return_solution=True)
    for taken, probability in zip(solution[0].structures, solution[0].probabilities):
        streets = [street for street, here in zip(minutes, taken) if here]
        print(
            f"{probability:4.0%}  {sum(minutes[street] for street in streets)} minutes: {streets}"
        )
    return drawing.graphs(solution[0], list(minutes), "routes", crossings)


if __name__ == "__main__":
    drawing.save(main())
