"""Who works when, with rules that no matching knows: constraints, by CP-SAT."""

import numpy as np
from ortools.sat.python import cp_model

import didyma
import drawing
from didyma.solvers import CpSat

people, shifts = ["Ana", "Ben", "Cem"], ["early", "noon", "late", "night"]
wishes = np.array([[1.2, 0.9, 0.3, -0.5], [0.8, 1.0, 0.6, 0.1], [0.1, 0.4, 0.9, 0.7]])


def main():
    model = cp_model.CpModel()
    works = np.array([[model.new_bool_var(f"{p} {s}") for s in shifts] for p in people])
    for shift in works.T:
        model.add_exactly_one(shift)
    for person in works:
        model.add(sum(person) <= 2)
        model.add_at_most_one(person[[0, 3]])  # not early and at night
        model.add_implication(person[3], person[2])  # who is there at night begins late
    rosters = CpSat(model, list(works.ravel()))
    _, solution = didyma.sparsemap(wishes.ravel(), rosters, return_solution=True)
    rows = solution[0].structures.reshape(-1, *wishes.shape)
    for roster, probability in zip(rows, solution[0].probabilities):
        names = [people[i] for i in roster.argmax(axis=0)]
        print(f"{probability:4.0%}  {', '.join(map(' '.join, zip(shifts, names)))}")
    who = [f"{p} {s}" for p in people for s in shifts]
    used = rows.reshape(len(rows), -1).any(axis=0)
    outputs = rows.reshape(len(rows), -1)[:, used], solution[0].probabilities
    return drawing.subsets(outputs, [name for name, there in zip(who, used) if there])


if __name__ == "__main__":
    drawing.save(main())
