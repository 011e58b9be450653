"""A structure of your own at compiled speed: how RNA folds, as pairs of bases that do not cross."""

import numpy as np

from didyma import sparsemap
from didyma.structures import Recurrence, either


class Fold(Recurrence):
    ndim = 2
    lengths_along = ((0, 1),)

    def recurrence(self, scores):
        n = len(scores)
        best = np.zeros((n + 1, n + 1), object)  # of bases i to j - 1: nothing to begin with
        for i in reversed(range(n)):
            for j in range(i + 1, n + 1):  # base i has no partner, or k; a loop needs three bases
                partners = (scores[i, k] + best[i + 1, k] + best[k + 1, j] for k in range(i + 4, j))
                best[i, j] = either(best[i + 1, j], *partners)
        return best[0, n]


strand, bonds = "GGGAAAUCCAGUUCUGCAAC", {"GC": 3.0, "CG": 3.0, "AU": 2.0, "UA": 2.0, "GU": 1.0}
scores = [[bonds.get(a + b, -np.inf) for b in strand] for a in strand]
print(f"entropy {Fold().entropy(scores):.2f}; pairs that SparseMAP finds at least half likely:")
print([tuple(map(int, pair)) for pair in np.argwhere(sparsemap(scores, Fold()) >= 0.5)])
for pairs, score in zip(*Fold().k_best(scores, k=3)):
    bracket = np.where(pairs.any(axis=1), "(", np.where(pairs.any(axis=0), ")", "."))
    print(strand, "".join(bracket), score)
