"""What two mentions of a document have in common, as indicators for coreference.

Everything is read off the words: there is no parser, no tagger, no list of names beyond the small
ones of `english.json`. The head of a mention is its last word before a preposition,
relative pronoun or comma; a mention is a pronoun, a name (its head is capitalised) or a noun phrase
that is definite, possessive or neither.

>>> import numpy as np
>>> from didyma.applications.coreference.reader import Document, Mention
>>> words = ("Emma", "loved", "her", "father", ".")
>>> emma = Document("emma", "0", words, np.zeros(5, np.int64), ("",) * 5,
...                 (Mention(0, 1, "0"), Mention(2, 4, "1"), Mention(2, 3, "0")))
>>> pairs = pair_features(emma)
>>> pairs.n_mentions, pairs.features.shape == (3, len(FEATURES))
(3, True)
>>> [name for name, on in zip(FEATURES, pairs.features[1]) if on and "gender" in name]
['same gender, name before pronoun']
"""

from didyma.applications.coreference.mentions.pairs import FEATURES, pair_features

__all__ = ["FEATURES", "pair_features"]
