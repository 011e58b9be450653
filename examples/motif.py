"""Find a motif: forty sequences hide TTTACGTTTA somewhere, forty do not."""

import numpy as np

from didyma import MotifFinder

MOTIF = "TTTACGTTTA"


def sequences(n, motif, rng):
    found = []
    for _ in range(n):
        letters = rng.choice(list("ACGT"), 60)
        if motif:
            start = rng.integers(50)
            letters[start : start + 10] = list(motif)
        found.append("".join(letters))
    return found


def main():
    rng = np.random.default_rng(0)
    train = sequences(40, MOTIF, rng) + sequences(40, None, rng)
    labels = [1] * 40 + [-1] * 40
    finder = MotifFinder(length=10, C=100.0, n_restarts=3).fit(train, labels)
    motif = finder.motif()
    print(f"consensus {motif.consensus}, {motif.information.sum():.1f} bits")
    print("objectives of the runs:", [round(value, 3) for value in finder.objectives_])
    test = sequences(20, MOTIF, rng) + sequences(20, None, rng)
    print(f"accuracy on new sequences: {finder.score(test, [1] * 20 + [-1] * 20):.3f}")
    print("first new sequence:", finder.scan(test[0])[0])


if __name__ == "__main__":
    main()
