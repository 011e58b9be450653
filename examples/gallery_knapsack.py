"""Items that fit into a bag: what is heavy stays at home, but which of the heavy things?"""

import didyma
import drawing
from didyma.structures import Knapsack

items = {  # kilograms, and how much it is wanted
    "tent": (4, 2.6),
    "stove": (2, 1.4),
    "food": (3, 2.2),
    "water": (3, 2.0),
    "books": (3, 0.9),
    "camera": (1, 0.7),
}


def main():
    bag = Knapsack([weight for weight, _ in items.values()], capacity=9)
    _, solution = didyma.sparsemap(
        [worth for _, worth in items.values()], bag, return_solution=True
    )
    bags = solution[0]
    for chosen, probability in zip(bags.structures, bags.probabilities):
        packed = [name for name, there in zip(items, chosen) if there]
        kilograms = sum(items[name][0] for name in packed)
        print(f"{probability:4.0%}  {kilograms} kg: {', '.join(packed)}")
    return drawing.subsets(bags, [f"{name} {weight} kg" for name, (weight, _) in items.items()])


if __name__ == "__main__":
    drawing.save(main())
