"""Write nbest-{train,dev,test}.jsonl: what a dictation machine heard, and how it might be spelt.

    python examples/data/make_nbest.py

Sentences come from a small grammar. Many words sound like others ("son" and "sun", "their" and
"there"), two sounds are one word or two ("ice cream", "I scream"), and the machine knows only how
frequent each spelling is and, roughly, how well it fits the sound: no grammar. It writes down its
eight best guesses. A reranker can learn from other sentences which words go together.
"""

from __future__ import annotations

import heapq
import math
import random
from itertools import product
from pathlib import Path

from didyma.data import Lists
from didyma.nbest import Output, of_outputs, write

SIZES = {"train": 240, "dev": 80, "test": 120}
N_BEST = 8
NOISE = 0.5  # deviation of how well a spelling fits a sound

# What each sound may be, by frequency; "_" joins words that make one sound.
SOUNDS = {
    "SEE": {"see": 0.7, "sea": 0.3},
    "SUN": {"sun": 0.55, "son": 0.45},
    "THAIR": {"there": 0.6, "their": 0.4},
    "TU": {"to": 0.75, "two": 0.15, "too": 0.1},
    "FLAUER": {"flower": 0.6, "flour": 0.4},
    "NITE": {"night": 0.8, "knight": 0.2},
    "MEET": {"meet": 0.6, "meat": 0.4},
    "RITE": {"right": 0.7, "write": 0.3},
    "PAIR": {"pair": 0.7, "pear": 0.3},
    "MALE": {"mail": 0.6, "male": 0.4},
    "BAIR": {"bear": 0.6, "bare": 0.4},
    "WUN": {"one": 0.8, "won": 0.2},
    "EIT": {"eight": 0.5, "ate": 0.5},
    "NO": {"no": 0.6, "know": 0.4},
    "NU": {"new": 0.7, "knew": 0.3},
    "BY": {"by": 0.7, "buy": 0.3},
    "HEER": {"here": 0.6, "hear": 0.4},
    "AISKREEM": {"ice_cream": 0.5, "I_scream": 0.5},
    "UNAIM": {"a_name": 0.6, "an_aim": 0.4},
}
SOUND_OF = {word: sound for sound, words in SOUNDS.items() for word in words}

# A sentence takes one word from each column.
GRAMMAR = (
    "we|they|you see|hear|meet|know the|their|our son|knight|bear|boys here|there|today|too",
    "the|their|no son|knight|bear ate|won|knew one|the|a|no pear|flower|pair there|here|too",
    "they|we|you write|know|hear one|two|eight|no letters|words|names here|there|too|today",
    "the sun|son|knight|sea is|was right|bare|new|cold here|there|today|too",
    "they|we|you go|walk|run to|by the sea|mail|bear|knight by|at night",
    "I|we|you buy flour|meat|ice_cream|bread here|there|today at night|eight",
    "the|their|our male bear|son ate|knew the|their|no meat|flour|ice_cream too|there|here",
    "it is|was a_name|an_aim to|we know|write|see|hear",
    "I_scream at|by night|eight too|there|here",
    "the pair|son|bear won a|the|one pair|night|flower to see|know|buy",
)


def heard(sentence: list[str]) -> list[str]:
    """The sounds of a sentence."""
    return [SOUND_OF.get(word, word) for word in sentence]


def guesses(sounds: list[str], rng: random.Random) -> list[tuple[float, Output]]:
    """The spellings that the machine thinks best, with their scores."""
    choices = []
    for sound in sounds:
        words = SOUNDS.get(sound, {sound: 1.0})
        choices.append([(word, math.log(p), rng.gauss(0, NOISE)) for word, p in words.items()])
    found = []
    for spelling in product(*choices):
        words, frequency, fit = zip(*spelling)
        text = " ".join(words).replace("_", " ")
        features = {"frequency": round(sum(frequency), 2), "fit": round(sum(fit), 2)}
        score = round(features["frequency"] + features["fit"], 2)
        found.append((score, Output(text, features)))
    return heapq.nlargest(N_BEST, found, key=lambda guess: guess[0])


def make(name: str, size: int, rng: random.Random) -> Lists:
    """Some sentences as they were heard, meant, and written down."""
    inputs, references, found = [], [], []
    for _ in range(size):
        columns = rng.choice(GRAMMAR).split()
        sentence = [rng.choice(column.split("|")) for column in columns]
        sounds = heard(sentence)
        inputs.append(" ".join(sounds))
        references.append(" ".join(sentence).replace("_", " "))
        found.append(guesses(sounds, rng))
    return of_outputs(
        inputs,
        [[output for _, output in own] for own in found],
        scores=[[score for score, _ in own] for own in found],
        references=references,
        ids=[f"{name}-{number}" for number in range(1, size + 1)],
    )


def main() -> None:
    """Write the three files."""
    rng = random.Random(7)
    for name, size in SIZES.items():
        write(make(name, size, rng), Path(__file__).parent / f"nbest-{name}.jsonl")


if __name__ == "__main__":
    main()
