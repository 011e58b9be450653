"""The former name of what `didyma.text`, `didyma.ranking` and `didyma.nbest` have now."""

from didyma.lazy import moved

_TEXT = ("BM25", "ExtendedFeatures", "FirstStage", "SmallFeatures", "TextFeatures", "WordVectors")
_HOMES = dict.fromkeys(_TEXT, "didyma.text")
_HOMES |= {"Bag": "didyma.nbest", "Featuriser": "didyma.ranking", "Joined": "didyma.ranking"}
__getattr__ = moved(__name__, _HOMES)
