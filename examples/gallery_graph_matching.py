"""Players in pairs for a training, no two sides: a matching of any graph, by networkx."""

import didyma
import drawing
from didyma.solvers import GraphMatching

players = {"Ana": (0, 1), "Ben": (1, 2), "Cem": (2, 2), "Dua": (3, 1), "Eli": (2, 0), "Fay": (1, 0)}
even = {  # how even a match would be
    ("Ana", "Ben"): 1.6,
    ("Ben", "Cem"): 1.9,
    ("Ana", "Cem"): 0.9,
    ("Cem", "Dua"): 1.5,
    ("Dua", "Eli"): 1.4,
    ("Eli", "Fay"): 1.7,
    ("Ana", "Fay"): 1.3,
    ("Ben", "Fay"): 0.6,
}


def main():
    pairs = GraphMatching(list(even), perfect=True)
    _, solution = didyma.sparsemap(list(even.values()), pairs, return_solution=True)
    for taken, probability in zip(solution[0].structures, solution[0].probabilities):
        matches = ["-".join(pair) for pair, here in zip(even, taken) if here]
        print(f"{probability:4.0%}  {' '.join(matches)}")
    return drawing.graphs(solution[0], list(even), "matchings", players)


if __name__ == "__main__":
    drawing.save(main())
