"""The former name of what `didyma.text`, `didyma.ranking` and `didyma.nbest` have now."""

from didyma.lazy import moved

_TEXT = ("BM25", "ExtendedFeatures", "FirstStage", "SmallFeatures", "TextFeatures", "WordVectors")
__getattr__ = moved(
    __name__,
    {
        **{name: f"didyma.text.{name}" for name in _TEXT},
        "Bag": "didyma.nbest.Bag",
        "Featuriser": "didyma.ranking.Featuriser",
        "Joined": "didyma.ranking.Joined",
    },
)
