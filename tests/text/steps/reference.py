"""Steps by their definitions: everything is computed anew for each pick."""

from __future__ import annotations

import math
from collections import Counter


def word_cosine(texts: list[str], a: int, b: int) -> float:
    bags = [Counter(text.split()) for text in texts]

    def weights(bag: Counter[str]) -> dict[str, float]:
        return {
            word: (1 + math.log(count))
            * math.log(1 + len(texts) / sum(word in other for other in bags))
            for word, count in bag.items()
        }

    first, second = weights(bags[a]), weights(bags[b])
    product = sum(first[word] * second.get(word, 0.0) for word in first)
    lengths = [math.sqrt(sum(x * x for x in one.values())) for one in (first, second)]
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def cosine(a: list[float], b: list[float]) -> float:
    lengths = math.hypot(*a) * math.hypot(*b)
    return max(0.0, sum(x * y for x, y in zip(a, b)) / lengths) if lengths else 0.0


def marginal_order(values: list[float], similarity: list[list[float]], weight: float) -> list[int]:
    """Maximal marginal relevance, as its definition has it."""
    picked: list[int] = []
    while len(picked) < len(values):
        left = [n for n in range(len(values)) if n not in picked]

        def marginal(n: int) -> float:
            nearest = max((similarity[n][other] for other in picked), default=0.0)
            return (1 - weight) * values[n] - weight * nearest

        picked.append(max(left, key=lambda n: (marginal(n), -n)))
    return picked
