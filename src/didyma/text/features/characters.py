"""Character classes for tokenisation, and the folding of words to terms."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core

BLOCK = 1 << 15  # characters folded at once

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
_ACCENTS = dict.fromkeys(range(0x0300, 0x0370))


def code_points(text: str) -> NDArray[np.uint32]:
    """A text as an array, half of a surrogate pair as what it is."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def properties_of(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The table of properties, in which all of ``codes`` are known."""
    table = _table()
    if core.has_unknown(codes, table):
        for code in set(codes[table[codes] == core.UNKNOWN].tolist()):
            table[code] = _property(chr(code))
    return table


@cache
def _table() -> NDArray[np.uint8]:
    table = np.full(0x110000, core.UNKNOWN, np.uint8)
    table[:0x80] = [_property(chr(code)) for code in range(0x80)]
    return table


def _property(character: str) -> int:
    """The kind of a character, and whether it is a capital or a numeral."""
    capital = core.IS_CAPITAL if character.isupper() else 0
    return kind_of(character) | capital | (core.IS_NUMERAL if character.isdigit() else 0)


def kind_of(character: str) -> int:
    """What a character is to the core's splitting of words.

    >>> kind_of("a") == kind_of("ب") == core.LETTER
    True
    >>> kind_of("你") == kind_of("ไ") == core.UNSPACED
    True
    """
    code, category = ord(character), unicodedata.category(character)
    if category[0] == "M" or _within(code, _CONTINUING):
        return core.MARK
    if category == "Cf" and code != _ZERO_WIDTH_SPACE:
        return core.MARK  # joiners and hyphenation points within words
    if category == "Nd":
        return core.DIGIT
    if category[0] in "LN":
        return core.UNSPACED if _within(code, _UNSPACED) else core.LETTER
    return core.POINT if character in ".," else core.BETWEEN


def fold(word: str) -> str:
    """The term of a word: how it is written in lower case and compatible characters (NFKC).

    Digits of any script become those of ASCII, commas in numbers go; so do invisible characters and
    the marks that Arabic and Hebrew can do without. Accents stay.

    >>> [fold(word) for word in ("Straße", "Ａ", "1,000", "٤٢", "كِتَاب", "ÉTÉ")]
    ['strasse', 'a', '1000', '42', 'كتاب', 'été']
    """
    return fold_lines(f"{word[: core.LONGEST_WORD]}\n")[:-1]


def fold_lines(words: str) -> str:
    """The terms of words, each ended by a newline; words are cut already.

    Many are folded in blocks, between which other threads run.
    """
    terms, start = [], 0
    while start < len(words):
        stop = words.find("\n", start + BLOCK) + 1 or len(words)
        terms.append(_fold_block(words[start:stop]))
        start = stop
    return "".join(terms)


def _fold_block(words: str) -> str:
    normal = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", words).casefold())
    terms = normal.translate(_PLAIN)
    if terms.startswith("\n") or "\n\n" in terms:  # a word of nothing but what can be left out
        pairs = zip(terms.split("\n"), normal.split("\n"))
        return "\n".join(term or word for term, word in pairs)
    return terms


class _Plain(dict[int, int | str]):
    """What becomes of each character, found out when it is first met."""

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        plain: int | str = code
        if character == "," or unicodedata.category(character) == "Cf" or _within(code, _OPTIONAL):
            plain = ""
        elif character.isdecimal():
            plain = str(unicodedata.decimal(character))
        self[code] = plain
        return plain


_PLAIN = _Plain()


def without_accents(words: str) -> str:
    """The same words with the plain letters of Latin, Greek and Cyrillic.

    >>> without_accents("été"), without_accents("हिन्दी")
    ('ete', 'हिन्दी')
    """
    if words.isascii():
        return words
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", words).translate(_ACCENTS))


def _within(code: int, ranges: tuple[tuple[int, ...], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)
