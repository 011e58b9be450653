"""The parts of features that documents call for, and those that there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from didyma.data.attributes import Attributes
from didyma.data.lists import Lists
from didyma.data.schema import Schema
from didyma.text.features.meaning import NO_VECTOR, Meaning
from didyma.text.features.part import FirstStage, Part
from didyma.text.features.signals import Signals
from didyma.text.features.small import FieldOverlaps
from didyma.text.features.union import TextFeatures
from didyma.text.features.word_vectors import WORDLLAMA, WordVectors

SHORT = 80  # characters of a text field that is embedded beside the whole text

AnyPart = TypeVar("AnyPart", bound=Part)


def parts_of(
    lists: Lists,
    vectors: Any = None,
    encoder: Any = None,
    store: Any = None,
    on_encoded: Callable[[int], Any] | None = None,
) -> list[Part]:
    """Beside those of the whole text: scores, fields, signals, meaning and word vectors.

    A static encoder gives the word vectors, too, if there are no others.
    """
    parts: list[Part] = [FirstStage()] if lists.scores is not None else []
    if (attributes := lists.attributes) is not None:
        texts = list(lists.items)
        parts += [
            FieldOverlaps(name)
            for name, field_texts in attributes.fields.items()
            if any(text.strip() for text in field_texts) and list(field_texts) != texts
        ]
        parts += [Signals()] * bool(attributes.signals)
    has_vectors = attributes is not None and attributes.vectors is not None
    if encoder is not None or (has_vectors and lists.query_vectors is not None):
        short = [] if attributes is None or has_vectors else _short_fields(attributes)
        parts.append(meaning := Meaning(encoder, store, None, on_encoded, short))
        made = meaning.encoder
        if vectors is None and made is not None and made.is_static:
            vectors = WORDLLAMA if made.name == WORDLLAMA else made.encode_documents
    if vectors is not None:
        parts.append(WordVectors(vectors))
    return parts


def _short_fields(attributes: Attributes) -> list[str]:
    """Text fields beside the main one that have few characters in most documents."""
    main = Schema.of(attributes).main
    return [
        name
        for name, texts in attributes.fields.items()
        if name != main and 0 < np.median([len(text) for text in texts]) <= SHORT
    ]


def part_of(features: TextFeatures, kind: type[AnyPart]) -> AnyPart | None:
    """The part of this kind, if there is one."""
    return next((part for part in features.parts if isinstance(part, kind)), None)


def further_columns(features: TextFeatures) -> list[str]:
    """Columns of what documents are beside their text."""
    kinds = (Signals, FieldOverlaps, Meaning)
    parts = [part for part in features.parts if isinstance(part, kinds)]
    return [name for part in parts for name in part.names if name != NO_VECTOR]
