"""Writes passages-{train,dev,test}.tsv: questions, candidate sentences, and which answer them.

    python examples/data/make_passages.py

Every question asks for one relation of one subject, none of which is real. Its candidates tell that
relation of the subject (answers, seldom in the words of the question), other relations of the
subject, and the same relation of other subjects: neither the words that a question shares with a
sentence nor the kind of the sentence is enough to find the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZES = {"train": 150, "dev": 40, "test": 40}
SEED = 2019

BEGIN = ["Bel", "Cor", "Dun", "Esk", "Far", "Gal", "Har", "Ist", "Kel", "Lor", "Mar", "Nor"]
MIDDLE = ["a", "e", "i", "o", "an", "en", "in", "or"]
END = ["bury", "dale", "ford", "gate", "haven", "mouth", "stead", "ton", "wick", "worth"]
FIRST = ["Ada", "Bruno", "Clara", "Dora", "Emil", "Flora", "Hugo", "Ida", "Karl", "Lena", "Otto"]
LAST = ["Brandt", "Castell", "Dorner", "Ekman", "Falk", "Grim", "Holt", "Jansen", "Lund", "Moor"]
REGIONS = ["the north", "the hills", "the western plain", "a deep valley", "the marshes"]
THINGS = ["bridge", "castle", "harbour", "library", "theatre", "mill"]

# What is asked, and the ways to tell it. {s} is the subject, {p} a person, {y} a year, {n} a
# number, {r} a region, {t} another place.
RELATIONS = {
    "person": (
        ["who built {s} ?", "who designed {s} ?", "who is the architect of {s} ?"],
        [
            "{s} was built by {p} .",
            "The architect of {s} was {p} .",
            "{p} drew the plans of {s} .",
            "The plans for {s} are the work of {p} .",
        ],
    ),
    "time": (
        ["when was {s} built ?", "what year was {s} opened ?", "when did {s} open ?"],
        [
            "{s} was opened in {y} .",
            "Work on {s} ended in {y} .",
            "In {y} the doors of {s} opened .",
            "{s} dates from {y} .",
        ],
    ),
    "place": (
        ["where is {s} ?", "where can you see {s} ?", "in what region is {s} ?"],
        [
            "{s} lies in {r} .",
            "{s} stands near {t} in {r} .",
            "Travellers find {s} in {r} , a day from {t} .",
            "{s} is located in {r} .",
        ],
    ),
    "quantity": (
        ["how much did {s} cost ?", "what was the price of {s} ?", "how expensive was {s} ?"],
        [
            "{s} cost {n} thousand crowns .",
            "The bill of {s} came to {n} crowns .",
            "For {s} the town paid {n} crowns .",
            "More than {n} crowns were spent on {s} .",
        ],
    ),
    "reason": (
        ["why was {s} closed ?", "why did {s} close ?", "what was the reason to close {s} ?"],
        [
            "{s} was given up because of the floods .",
            "Since the roof fell in , {s} is shut .",
            "{s} had to close after the great fire .",
            "Lack of money was the end of {s} .",
        ],
    ),
}
ASIDES = [
    "{s} is known to every child in {t} .",
    "A song about {s} is still heard in {t} .",
    "{p} often wrote about {s} .",
    "See also : {t} .",
    "The old maps do not show {s} .",
]


def subject(random: np.random.Generator) -> str:
    """Such as "the castle of Belaford"."""
    return f"the {random.choice(THINGS)} of {place(random)}"


def place(random: np.random.Generator) -> str:
    """A name that no place has."""
    return "".join(map(str, map(random.choice, (BEGIN, MIDDLE, END))))


def fill(template: str, about: str, random: np.random.Generator) -> str:
    """A template with its blanks filled at random, but for the subject."""
    text = template.format(
        s=about,
        p=f"{random.choice(FIRST)} {random.choice(LAST)}",
        y=random.integers(1200, 1990),
        n=random.integers(2, 900),
        r=random.choice(REGIONS),
        t=place(random),
    )
    return text[0].upper() + text[1:]


def ask(random: np.random.Generator) -> Iterator[tuple[str, str, int]]:
    """A question with four to eight candidates, none of them an answer now and then."""
    about = subject(random)
    kinds = list(map(str, random.permutation(list(RELATIONS))))
    questions, answers = RELATIONS[kinds[0]]
    question = str(random.choice(questions)).format(s=about)
    n_answers = random.choice([0, 1, 2], p=[0.1, 0.7, 0.2])
    told = [(fill(t, about, random), 1) for t in random.choice(answers, n_answers, replace=False)]
    for kind in kinds[1 : random.integers(3, 5)]:
        told.append((fill(random.choice(RELATIONS[kind][1]), about, random), 0))
    for _ in range(random.integers(1, 3)):
        told.append((fill(random.choice(answers), subject(random), random), 0))
    told.append((fill(random.choice(ASIDES), about, random), 0))
    for k in random.permutation(len(told)):
        yield question, *told[k]


def main() -> None:
    """Write the three files."""
    random = np.random.default_rng(SEED)
    for name, size in SIZES.items():
        rows = [row for _ in range(size) for row in ask(random)]
        lines = [f"{question}\t{sentence}\t{label}\n" for question, sentence, label in rows]
        (HERE / f"passages-{name}.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
