"""Two loads from the mill to the port, each road for one of them: a flow, by HiGHS."""

import didyma
import drawing
from didyma.solvers import Flow

towns = {"mill": (0, 1), "A": (1, 2), "B": (1, 0), "C": (2.2, 1), "D": (3, 2), "port": (4, 1)}
costs = {
    ("mill", "A"): 1.0,
    ("mill", "B"): 1.2,
    ("A", "C"): 1.0,
    ("B", "C"): 1.1,
    ("A", "D"): 1.8,
    ("C", "D"): 1.0,
    ("C", "port"): 1.5,
    ("D", "port"): 1.0,
    ("B", "port"): 3.1,
}


def main():
    roads = Flow(list(costs), {"mill": 2, "port": -2})
    scores = [-cost for cost in costs.values()]
    _, solution = didyma.sparsemap(scores, roads, temperature=0.5, return_solution=True)
    for taken, probability in zip(solution[0].structures, solution[0].probabilities):
        used = [road for road, here in zip(costs, taken) if here]
        print(f"{probability:4.0%}  costs {sum(costs[road] for road in used):.1f}")
    return drawing.graphs(solution[0], list(costs), "flows", towns, directed=True)


if __name__ == "__main__":
    drawing.save(main())
