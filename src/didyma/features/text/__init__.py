"""Features of queries and passages from their texts alone.

A `Reader` turns texts into numbered words: a `Lexicon` finds them, and knows what each
is (its term, its stem, whether it is a stop word), and a `Vocabulary`, which is what is learned,
how rare it is. Parts make columns of a `Reading`: `SmallFeatures`, `ExtendedFeatures`,
`WordVectors`, `FirstStage`. `TextFeatures` joins them.
"""

from didyma.features.text.extended import ExtendedFeatures
from didyma.features.text.features import TextFeatures
from didyma.features.text.first_stage import FirstStage
from didyma.features.text.part import Part
from didyma.features.text.small import SmallFeatures
from didyma.features.text.word_vectors import WordVectors

__all__ = [
    "ExtendedFeatures",
    "FirstStage",
    "Part",
    "SmallFeatures",
    "TextFeatures",
    "WordVectors",
]
