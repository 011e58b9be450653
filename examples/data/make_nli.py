"""Write nli-train.jsonl, nli-dev.jsonl and nli-test.jsonl: short sentences about animals.

A hypothesis tells of the premise's animal again, in another order of words, and changes one of its
words: to a wider one (entailment), to one that excludes it (contradiction) or to a narrower one,
unless it adds what was not told (neutral). Which label is right, a model sees when it has found
which word of the premise a word of the hypothesis stands for.

    python examples/data/make_nli.py
"""

from __future__ import annotations

import json
import random
from pathlib import Path

# Wide words and the narrower ones that they include. All of a slot's wide words exclude each other.
WORDS = {
    "colour": {"dark": ("black", "brown"), "bright": ("white", "yellow")},
    "animal": {"bird": ("crow", "hen", "swan"), "beast": ("fox", "cow", "dog", "horse")},
    "act": {"moves": ("runs", "jumps", "dances"), "rests": ("sleeps", "sits", "lies")},
    "place": {
        "inside": ("in the kitchen", "in the hall", "in the barn"),
        "outside": ("in the garden", "on the hill", "by the lake"),
    },
}
UNTOLD = ("hungry", "old", "happy", "young", "famous")
SIZES = {"train": 600, "dev": 100, "test": 100}
LABELS = ("entailment", "neutral", "contradiction")


def make_pair(label: str, rng: random.Random) -> tuple[str, str]:
    """A premise and a hypothesis that it has this relation to."""
    wide = {slot: rng.choice(sorted(WORDS[slot])) for slot in WORDS}
    told = {slot: rng.choice(WORDS[slot][wide[slot]]) for slot in WORDS}
    changed = rng.choice(sorted(WORDS))
    said = dict(told)
    untold = ""
    if label == "entailment":
        said[changed] = wide[changed]
    elif label == "contradiction":
        (other,) = WORDS[changed].keys() - {wide[changed]}
        said[changed] = rng.choice((other, *WORDS[changed][other]))
    elif rng.random() < 0.5:
        told[changed] = wide[changed]
    else:
        untold = rng.choice(UNTOLD)
    return sentence(told, "", rng), sentence(said, untold, rng)


def sentence(slots: dict[str, str], untold: str, rng: random.Random) -> str:
    """The words in one of two orders."""
    order = rng.choice(
        (
            "the {untold} {colour} {animal} {act} {place}",
            "{place} {act} the {untold} {colour} {animal}",
        )
    )
    return " ".join(order.format(untold=untold, **slots).split())


def main() -> None:
    """Write the three files beside this one."""
    rng = random.Random(6)
    seen: set[tuple[str, str]] = set()
    for part, size in SIZES.items():
        lines = []
        while len(lines) < size:
            label = LABELS[len(lines) % len(LABELS)]
            pair = make_pair(label, rng)
            if pair not in seen:
                seen.add(pair)
                record = {"pairID": f"{part}-{len(lines) + 1}", "gold_label": label}
                lines.append(json.dumps(record | {"sentence1": pair[0], "sentence2": pair[1]}))
        path = Path(__file__).with_name(f"nli-{part}.jsonl")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
