"""A text cut into labelled segments, each scored as a whole: where does a name end?"""

import numpy as np

import didyma
import drawing
from didyma.structures import Segmentation

words = ["the", "New", "York", "Times", "Square", "ball"]
labels = ["place", "paper", "other"]
names = {
    ("New", "York"): ("place", 1.6),
    ("New", "York", "Times"): ("paper", 3.0),
    ("Times", "Square"): ("place", 2.6),
    ("New", "York", "Times", "Square"): ("place", 3.1),
}


def main():
    scores = np.full((len(words), 4, len(labels)), -1.0)  # [first word, words more, label]
    scores[:, 0, labels.index("other")] = 0.4
    for start in range(len(words)):
        for more in range(min(4, len(words) - start)):
            label, score = names.get(tuple(words[start : start + more + 1]), ("other", None))
            if score is not None:
                scores[start, more, labels.index(label)] = score
    _, solution = didyma.sparsemap(scores, Segmentation(), return_solution=True)
    readings = solution[0]
    for tags, probability in zip(readings.structures, readings.probabilities):
        found = [
            f"[{' '.join(words[start:stop])}: {labels[label]}]"
            for start, stop, label in Segmentation.segments(tags)
            if label != labels.index("other")
        ]
        print(f"{probability:4.0%}  {' '.join(found)}")
    return drawing.segments(readings, words, labels)


if __name__ == "__main__":
    drawing.save(main())
