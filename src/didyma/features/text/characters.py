"""Characters: which of them make words, and which differences between words are none."""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from didyma.kernels.words import BETWEEN, DIGIT, LETTER, MARK, POINT, UNKNOWN, UNSPACED

__all__ = ["LONGEST_WORD", "code_points", "fold", "kind_of", "kinds_of", "without_accents"]

LONGEST_WORD = 64  # code points; what a longer one has beyond them is not looked at

# Scripts that put no spaces between words, or, as Korean, glue particles to them.
_UNSPACED = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # Thai, Lao; Burmese; Khmer
    *((0x1950, 0x19FF), (0x1A20, 0x1AAF), (0x1B00, 0x1B7F)),  # Tai Le, Tai Tham, Balinese
    *((0xA980, 0xA9FF), (0xAA60, 0xAA7F)),  # Javanese, more Burmese
    *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x303B)),  # radicals, 々〇, numerals
    *((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),  # Hiragana, Katakana
    *((0x3100, 0x312F), (0x31A0, 0x31BF), (0xA000, 0xA4CF)),  # Bopomofo, Yi
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),  # Han
    *((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F)),  # Hangul, by letters
    *((0xAC00, 0xD7FF), (0xFFA0, 0xFFDC), (0x1B000, 0x1B16F)),  # by syllables; old Kana
)
# Letters that continue a syllable: Hangul vowels and finals, half-width voicing marks.
_CONTINUING = ((0x1160, 0x11FF), (0xD7B0, 0xD7FF), (0xFF9E, 0xFF9F))
_ZERO_WIDTH_SPACE = 0x200B
# Marks that most writers leave out: vowels of Arabic and Hebrew; and Arabic's stretched line.
_OPTIONAL = ((0x0591, 0x05C7), (0x0610, 0x061A), (0x064B, 0x0652), (0x0670, 0x0670), (0x0640,) * 2)
_ACCENTS = (0x0300, 0x036F)


def code_points(text: str) -> NDArray[np.uint32]:
    """A text as an array, half of a surrogate pair as what it is."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def kinds_of(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The table of kinds, in which all of ``codes`` are known."""
    table = _table()
    unknown = codes[table[codes] == UNKNOWN]
    if len(unknown):
        for code in np.unique(unknown).tolist():
            table[code] = kind_of(chr(code))
    return table


@cache
def _table() -> NDArray[np.uint8]:
    return np.zeros(0x110000, np.uint8)  # all UNKNOWN


@lru_cache(1 << 12)
def kind_of(character: str) -> int:
    """What a character is to `didyma.kernels.words.split`.

    >>> kind_of("a") == kind_of("ب") == LETTER and kind_of("你") == kind_of("ไ") == UNSPACED
    True
    """
    code, category = ord(character), unicodedata.category(character)
    if category[0] == "M" or _within(code, _CONTINUING):
        return MARK
    if category == "Cf" and code != _ZERO_WIDTH_SPACE:
        return MARK  # joiners and hyphenation points within words
    if category == "Nd":
        return DIGIT
    if category[0] in "LN":
        return UNSPACED if _within(code, _UNSPACED) else LETTER
    return POINT if character in ".," else BETWEEN


def fold(word: str) -> str:
    """The term of a word: how it is written in lower case and compatible characters (NFKC).

    Digits of any script become those of ASCII, commas in numbers go; so do invisible characters and
    the marks that Arabic and Hebrew can do without. Accents stay.

    >>> [fold(word) for word in ("Straße", "Ａ", "1,000", "٤٢", "كِتَاب", "ÉTÉ")]
    ['strasse', 'a', '1000', '42', 'كتاب', 'été']
    """
    word = word[:LONGEST_WORD]
    if word.isascii():
        return word.lower().replace(",", "")
    word = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    return "".join(_plain(character) for character in word) or word


def _plain(character: str) -> str:
    if character == "," or unicodedata.category(character) == "Cf":
        return ""
    if _within(ord(character), _OPTIONAL):
        return ""
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


def without_accents(word: str) -> str:
    """The same word with the plain letters of Latin, Greek and Cyrillic.

    >>> without_accents("été"), without_accents("हिन्दी")
    ('ete', 'हिन्दी')
    """
    if word.isascii():
        return word
    first, last = _ACCENTS
    parts = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in parts if not first <= ord(c) <= last))


def _within(code: int, ranges: tuple[tuple[int, ...], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)
