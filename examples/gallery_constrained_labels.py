"""Several labels under logic: a network whose outputs agree with what is known of the labels."""

import numpy as np
import torch

import drawing
from didyma.nn import LocalSparseMAP
from didyma.structures import AtMostOne, Composition, Implies, OrOut

labels = ["animal", "dog", "cat", "pet", "vehicle", "car", "bicycle"]
ANIMAL, DOG, CAT, PET, VEHICLE, CAR, BICYCLE = range(7)
rules = [
    *OrOut(ANIMAL, [DOG, CAT]),  # an animal is a dog or a cat
    *OrOut(VEHICLE, [CAR, BICYCLE]),
    AtMostOne([DOG, CAT]),
    AtMostOne([CAR, BICYCLE]),
    Implies(PET, ANIMAL),
]
graph = Composition(len(labels), logic=rules)


def draw_data(n, generator):
    """Pictures by their features: each label adds its direction, under noise."""
    animal, vehicle = (torch.randint(0, 3, (n,), generator=generator) for _ in range(2))
    y = torch.zeros(n, len(labels))
    y[:, DOG], y[:, CAT] = animal == 1, animal == 2
    y[:, CAR], y[:, BICYCLE] = vehicle == 1, vehicle == 2
    y[:, ANIMAL], y[:, VEHICLE] = animal > 0, vehicle > 0
    y[:, PET] = y[:, ANIMAL] * (torch.rand(n, generator=generator) < 0.7)
    directions = torch.randn(len(labels), 20, generator=torch.Generator().manual_seed(1))
    return y @ directions + 2.5 * torch.randn(n, 20, generator=generator), y


def train(output, X, y):
    torch.manual_seed(0)
    scorer = torch.nn.Linear(20, len(labels))
    optimiser = torch.optim.Adam(scorer.parameters(), lr=0.05)
    for _ in range(60):
        optimiser.zero_grad()
        ((output(scorer(X)) - y) ** 2).sum(1).mean().backward()
        optimiser.step()
    return scorer


def obeys(states):
    return np.all([rule.holds(states) for rule in graph.logic], axis=0).mean()


def main():
    generator = torch.Generator().manual_seed(0)
    (X, y), (test_X, test_y) = draw_data(80, generator), draw_data(400, generator)
    layer, found = LocalSparseMAP(graph), {}
    for name, output in (("sigmoid", torch.sigmoid), ("under logic", layer)):
        scorer = train(output, X, y)
        with torch.no_grad():
            states = (output(scorer(test_X)) > 0.5).numpy()
        right = states == test_y.numpy()
        found[name] = [right.mean(), right.all(axis=1).mean(), obeys(states.astype(int))]
        print(f"{name}: labels {found[name][0]:.1%}, all {found[name][1]:.1%} right, "
              f"{found[name][2]:.1%} obey")  # fmt: skip
    return draw(found)


def draw(found):
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 2.8))
    for k, (name, shares) in enumerate(found.items()):
        colour = ["#b8c4d0", "#2f6db3"][k]
        bars = axis.bar(np.arange(3) + 0.38 * k, shares, 0.36, label=name, color=colour)
        axis.bar_label(bars, [f"{share:.0%}" for share in shares], fontsize=8)
    axis.set_xticks(np.arange(3) + 0.19, ["labels right", "all labels right", "outputs that obey"])
    axis.set_ylim(0, 1.15)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.set_yticks([])
    axis.legend(frameon=False, ncols=2, loc="upper left")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    drawing.save(main())
