"""Train a network of your own for average precision: the hinge of a ranking measure as a loss."""

import torch
from torch import nn

from didyma import evaluate
from didyma.nn import RankingLoss


def main() -> None:
    torch.manual_seed(0)
    n_queries, n_rows = 60, 20
    X = torch.randn(n_queries * n_rows, 5)
    score = X[:, 0] * X[:, 1]  # nothing that a linear ranker could learn
    y = (score > 1.0).float()
    qid = torch.arange(n_queries).repeat_interleave(n_rows)
    seen = qid < 40

    network = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
    hinge = RankingLoss("ap")
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for epoch in range(101):
        optimizer.zero_grad()
        loss = hinge(network(X[seen]), y[seen], qid=qid[seen])
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            found = network(X[~seen]).detach().numpy()
            judged = evaluate(found, y[~seen].numpy(), qid=qid[~seen].numpy(), measures="AP")
            MAP = judged.mean("AP")
            print(f"epoch {epoch:3}   hinge {loss.item():.2f}   MAP of unseen queries {MAP:.2f}")


if __name__ == "__main__":
    main()
