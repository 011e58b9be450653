"""Learn what terrain costs from the ways that others took: a shortest path as a layer.

Each map is a grid of terrains, seen through noise. Whoever crossed it from corner to corner knew
the costs and took the cheapest way; a small network learns costs under which these ways are best.
"""

import numpy as np
import torch

from didyma.nn import FenchelYoungLoss
from didyma.structures import ShortestPath

SIZE = 8
COSTS = np.array([0.8, 1.2, 5.3, 7.7, 9.2])  # of the terrains, which the network does not know
GRID = ShortestPath.grid(SIZE, SIZE)
ENTERED = [cell for _, cell in GRID.edges]  # by each step


def maps(n, seed):
    """What is seen of each cell, the true costs of the steps, and the cheapest ways."""
    rng = np.random.default_rng(seed)
    terrain = rng.integers(len(COSTS), size=(n, SIZE * SIZE))
    seen = np.eye(len(COSTS))[terrain] + 0.2 * rng.standard_normal((n, SIZE * SIZE, len(COSTS)))
    costs = COSTS[terrain][:, ENTERED]
    return torch.tensor(seen, dtype=torch.float32), costs, GRID.predict(-costs)


def regret(model, seen, costs, ways):
    """How much more the ways cost that the network would take."""
    with torch.no_grad():
        taken = GRID.predict(-model(seen)[:, ENTERED, 0].numpy())
    return (costs * taken).sum() / (costs * ways).sum() - 1


def main():
    torch.manual_seed(0)
    seen, _, ways = maps(100, seed=0)
    test = maps(100, seed=1)
    model = torch.nn.Sequential(
        torch.nn.Linear(len(COSTS), 16),
        torch.nn.ReLU(),
        torch.nn.Linear(16, 1),
        torch.nn.Softplus(),
    )
    loss = FenchelYoungLoss(GRID)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(31):
        if epoch % 10 == 0:
            print(f"epoch {epoch}: ways cost {regret(model, *test):.1%} more than the cheapest")
        optimizer.zero_grad()
        loss(-model(seen)[:, ENTERED, 0], torch.from_numpy(ways)).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
