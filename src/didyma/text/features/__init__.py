"""Features of queries and passages from their texts alone.

A `Reader` turns texts into numbered words: a `Lexicon` finds them, and knows what each
is (its term, its stem, whether it is a stop word), and a `Vocabulary`, which is what is learned,
how rare it is. Parts make columns of a `Reading`: `SmallFeatures`, `ExtendedFeatures`,
`FieldOverlaps`, `Signals`, `Meaning`, `WordVectors`, `FirstStage`. `TextFeatures` joins them.
"""

from didyma.text.features.extended import ExtendedFeatures
from didyma.text.features.meaning import Meaning
from didyma.text.features.part import FirstStage, Part
from didyma.text.features.signals import Signals
from didyma.text.features.small import FieldOverlaps, SmallFeatures
from didyma.text.features.union import TextFeatures
from didyma.text.features.word_vectors import WordVectors

__all__ = [
    "ExtendedFeatures",
    "FieldOverlaps",
    "FirstStage",
    "Meaning",
    "Part",
    "Signals",
    "SmallFeatures",
    "TextFeatures",
    "WordVectors",
]
