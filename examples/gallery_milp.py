"""Projects with two budgets and a rule between them: an integer programme, by HiGHS."""

import numpy as np

import didyma
import drawing
from didyma.solvers import Milp

projects = {  # euros, people, and the profit that is predicted
    "app": (3, 1, 2.0),
    "web site": (2, 2, 1.5),
    "shop": (2, 1, 1.8),
    "video": (1, 3, 0.7),
    "game": (3, 2, 1.6),
}


def main():
    euros, people, profits = np.array(list(projects.values())).T
    needs_site = [0, -1, 1, 0, 0]  # shop - web site <= 0: no shop without a web site
    choices = Milp([euros, people, needs_site], upper=[6, 4, 0])
    _, solution = didyma.sparsemap(profits, choices, return_solution=True)
    for chosen, probability in zip(solution[0].structures, solution[0].probabilities):
        names = [name for name, here in zip(projects, chosen) if here]
        print(f"{probability:4.0%}  profit {profits[chosen].sum():.1f}: {', '.join(names)}")
    return drawing.subsets(solution[0], list(projects))


if __name__ == "__main__":
    drawing.save(main())
