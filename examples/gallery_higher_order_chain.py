"""A tag that depends on the two before: a melody that repeats a note once, but not twice."""

import numpy as np

import didyma
import drawing
from didyma.structures import HigherOrderChain

beats = ["one", "two", "three", "four", "five", "six"]
notes = ["g", "f", "e", "d", "c"]
heard = np.array(  # a bad recording: how much each beat sounds like each note
    [
        [0.0, 0.0, 1.3, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.6, 0.0],
        [0.0, 0.8, 1.0, 0.0, 0.0],
        [1.3, 0.6, 0.0, 0.0, 0.0],
        [1.0, 0.9, 0.0, 0.0, 0.0],
        [0.8, 0.7, 0.0, 0.0, 0.0],
    ]
)


def main():
    transitions = np.zeros((len(notes),) * 3)  # [note before the last, last, next]
    same = np.arange(len(notes))
    transitions[same, same, same] = -2.0  # thrice the same
    transitions[same[1:], same[1:], same[:-1]] = 0.5  # twice, then up
    _, solution = didyma.sparsemap(
        2.0 * heard, HigherOrderChain(2), transitions=transitions, return_solution=True
    )
    melodies = solution[0]
    for melody, probability in zip(melodies.structures, melodies.probabilities):
        print(f"{probability:4.0%}  {' '.join(notes[note] for note in melody)}")
    return drawing.sequences(melodies, beats, notes)


if __name__ == "__main__":
    drawing.save(main())
