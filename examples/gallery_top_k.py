"""Three of several options: a sparse posterior over sets, for summaries, rationales or panels."""

import didyma
import drawing
from didyma.structures import TopK

toppings = ["cheese", "tomato", "basil", "olives", "anchovies", "pineapple"]
scores = [1.9, 1.1, 0.8, 0.7, -0.1, -0.6]  # how much the guests want each of them


def main():
    _, solution = didyma.sparsemap(scores, TopK(3), return_solution=True)
    pizzas = solution[0]
    for chosen, probability in zip(pizzas.structures, pizzas.probabilities):
        names = [topping for topping, taken in zip(toppings, chosen) if taken]
        print(f"{probability:4.0%}  {', '.join(names)}")
    return drawing.subsets(pizzas, toppings)


if __name__ == "__main__":
    drawing.save(main())
