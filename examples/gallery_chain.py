"""One tag per word, each depending on the tag before: an ambiguous sentence keeps its readings."""

import numpy as np

import didyma
import drawing
from didyma.structures import Chain

words = ["I", "saw", "her", "duck"]
tags = ["PRON", "VERB", "DET", "NOUN"]
scores = np.array(
    [
        [3.0, 0.0, 0.0, 0.0],
        [0.0, 1.6, 0.0, 0.6],
        [0.8, 0.0, 0.9, 0.0],
        [0.0, 0.4, 0.0, 0.6],
    ]
)
transitions = np.zeros((4, 4))  # [tag, next tag]
transitions[tags.index("DET"), tags.index("NOUN")] = 0.6
transitions[tags.index("PRON"), tags.index("VERB")] = 0.7


def main():
    _, solution = didyma.sparsemap(scores, Chain(), transitions=transitions, return_solution=True)
    readings = solution[0]
    for path, probability in zip(readings.structures, readings.probabilities):
        tagged = [f"{word}/{tags[tag]}" for word, tag in zip(words, path)]
        print(f"{probability:4.0%}  {' '.join(tagged)}")
    return drawing.sequences(readings, words, tags)


if __name__ == "__main__":
    drawing.save(main())
