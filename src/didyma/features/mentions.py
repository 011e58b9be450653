"""What two mentions of a document have in common, as indicators for coreference.

Everything is read off the words: there is no parser, no tagger, no list of names beyond the small
ones below, which are for English. The head of a mention is its last word before a preposition,
relative pronoun or comma; a mention is a pronoun, a name (its head is capitalised) or a noun phrase
that is definite, possessive or neither.

>>> from didyma.formats.coreference import Document, Mention
>>> words = ("Emma", "loved", "her", "father", ".")
>>> emma = Document("emma", "0", words, np.zeros(5, np.int64), ("",) * 5,
...                 (Mention(0, 1, "0"), Mention(2, 4, "1"), Mention(2, 3, "0")))
>>> pairs = pair_features(emma)
>>> pairs.n_mentions, pairs.features.shape == (3, len(FEATURES))
(3, True)
>>> [name for name, on in zip(FEATURES, pairs.features[1]) if on and "gender" in name]
['same gender, name before pronoun']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.formats.coreference import Document
from didyma.tasks.coreference import MentionPairs

__all__ = ["FEATURES", "MentionPairs", "pair_features"]

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]

# --- Words --------------------------------------------------------------------------------------

UNKNOWN, MALE, FEMALE, NEUTER = range(4)
SINGULAR, PLURAL = 1, 2

# Words, person, number, gender.
_PRONOUNS = (
    ("i me my mine myself", 1, SINGULAR, UNKNOWN),
    ("we us our ours ourselves", 1, PLURAL, UNKNOWN),
    ("you your yours yourself", 2, UNKNOWN, UNKNOWN),
    ("thou thee thy thine thyself", 2, SINGULAR, UNKNOWN),
    ("ye yourselves", 2, PLURAL, UNKNOWN),
    ("he him his himself", 3, SINGULAR, MALE),
    ("she her hers herself", 3, SINGULAR, FEMALE),
    ("it its itself", 3, SINGULAR, NEUTER),
    ("they them their theirs themselves 'em", 3, PLURAL, UNKNOWN),
    ("this that", 4, SINGULAR, UNKNOWN),
    ("these those both", 4, PLURAL, UNKNOWN),
    ("who whom whose which one ones another other others each all some none somebody someone "
     "anybody anyone everybody everyone nobody here there where", 4, UNKNOWN, UNKNOWN),
)  # fmt: skip
PRONOUNS = {
    word: (person, number, gender)
    for words, person, number, gender in _PRONOUNS
    for word in words.split()
}

_MALE = """mr mr. sir lord king prince duke count earl baron monsieur m. herr don man boy lad father
papa dad grandfather son brother uncle nephew husband bridegroom widower gentleman fellow chap
priest monk bishop father-in-law son-in-law brother-in-law schoolmaster landlord footman butler
coachman policeman clergyman nobleman workman fisherman sailor soldier captain colonel general major
lieutenant sergeant god abbot emperor hero waiter men boys gentlemen sons brothers
john james william george charles thomas henry edward robert joseph david richard peter paul arthur
frank jack tom harry jim joe sam bob dick ned will alfred walter fred philip stephen michael martin
daniel samuel benjamin edgar edmund ralph hugh oliver simon adam andrew anthony francis louis"""
_FEMALE = """mrs mrs. miss ms ms. madam madame ma'am mademoiselle lady queen princess duchess
countess baroness woman girl lass maid maiden mother mamma mama mum grandmother daughter sister aunt
niece wife bride widow governess nurse landlady mistress housemaid nun goddess empress heroine witch
hostess waitress mother-in-law daughter-in-law sister-in-law schoolmistress women girls ladies
daughters sisters
mary elizabeth anne anna ann jane margaret emma sarah alice kate catherine ellen emily charlotte
lucy helen susan martha maria louisa julia harriet caroline fanny grace rose edith florence agnes
clara isabel dorothy eleanor amelia eliza nancy polly molly betty amy laura ruth rachel rebecca
frances henrietta sophia marian lydia kitty jenny maggie bessie nelly"""
_NEUTER = """house home room hall cottage castle palace hut inn hotel church chapel abbey school
college shop store office street road lane path avenue square park garden gardens field fields farm
wood woods forest hill hills mountain mountains valley river lake sea ocean shore beach island coast
bay harbour harbor port bridge town city village county country world earth land place region
district parish neighbourhood neighborhood kingdom empire state nation london england paris france
europe america york ireland scotland ship boat vessel carriage coach cart car train wagon horse
kitchen parlour parlor drawing-room dining-room bedroom library chamber staircase stairs door window
floor roof wall yard court gate cellar prison gaol jail hospital university theatre market station
tower cave desert swamp prairie plain heath moor company society government army club firm north
south east west side corner spot part inside outside apartment cabin tent barn stable mill factory
building buildings mansion manor estate sky moon sun star heaven hell quarter deck bank"""
GENDER = {
    word: gender
    for words, gender in ((_MALE, MALE), (_FEMALE, FEMALE), (_NEUTER, NEUTER))
    for word in words.split()
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLURALS = _words("people men women children folk folks police cattle geese feet mice")
_NOT_PLURAL = ("ss", "us", "is", "'s")
_DEFINITE = _words("the this that these those")
_INDEFINITE = _words("a an some any no every each another two three four five many several")
_POSSESSIVE = _words("my your his her its our their thy whose")
_STOP = _DEFINITE | _INDEFINITE | _POSSESSIVE | _words("of 's , . and or - -- in on at '")
_AFTER_HEAD = _words(
    """of in on at by with from for to near upon under over behind beyond between into within
    without about above below through across along who whom whose which that where when , ; : -- -
    ( named called"""
)
_BE = ["is", "was", "are", "were", "am", "be", "been", "being"]
_OPENS, _CLOSES, _OPENS_OR_CLOSES = ("“", "``", "“‘"), ("”", "''", "’”"), ('"',)

# --- Names of features --------------------------------------------------------------------------

SENTENCES = (0, 1, 2, 3, 5, 9, 17)  # least distance of each bin
MENTIONS = (1, 2, 3, 5, 9, 17, 33, 65)

FORMS = ("I", "you", "he", "one", "name", "definite", "possessive", "other")
NAME, DEFINITE, POSSESSIVE, OTHER = range(4, 8)  # the forms before are pronouns

# How the two mentions of a pair appear, in document order.
KINDS = (
    "pronouns",
    "name before pronoun",
    "noun before pronoun",
    "pronoun before noun",
    "names",
    "nouns",
    "name and noun",
)
NOUN_KINDS = KINDS[4:]
NAME_KINDS = ("name before pronoun", "names", "name and noun")
AGREEMENT = ("same gender", "other gender", "same number", "other number")
MATCHES = (
    "same text",
    "same content words",
    "same head",
    "same head, other modifiers",
    "content words within the other's",
    "half of the content words shared",
    "some content words shared",
    "no content words shared",
    "same length",
    "second longer",
)
PERSONS = (
    "first person, agreeing",
    "first person, not agreeing",
    "second person",
    "third person, agreeing",
    "third person, not agreeing",
    "I and you",
    "first and third person",
    "second and third person",
    "other pronouns",
)
SETTINGS = ("no quotation", "one quotation", "two quotations", "one quoted")
OTHERS = (
    "nested",
    "side by side",
    "comma between",
    "form of to be between",
    "same speaker",
    "other speaker",
)


def _bins(least: Sequence[int], unit: str) -> list[str]:
    names = [
        str(low) if following == low + 1 else f"{low}-{following - 1}"
        for low, following in pairwise(least)
    ]
    return [f"{name} {unit} apart" for name in (*names, f"{least[-1]} or more")]


FEATURES: tuple[str, ...] = (
    "any pair",
    *(f"{first} before {second}" for first, second in product(FORMS, FORMS)),
    *(f"{name}, {kind}" for kind in KINDS for name in _bins(SENTENCES, "sentences")),
    *(f"{name}, {kind}" for kind in KINDS for name in _bins(MENTIONS, "mentions")),
    *(f"{name}, {kind}" for kind in KINDS for name in AGREEMENT),
    *(f"nearest that agrees, {kind}" for kind in KINDS),
    *(f"nearest name that agrees, {kind}" for kind in NAME_KINDS),
    *(f"{name}, {kind}" for kind in NOUN_KINDS for name in MATCHES),
    *(f"{persons}, {setting}" for persons in PERSONS for setting in SETTINGS),
    *OTHERS,
)

# --- Mentions -----------------------------------------------------------------------------------


class _Traits(NamedTuple):
    form: int
    person: int
    number: int
    gender: int


@dataclass(frozen=True, eq=False)
class _Mentions:
    """The mentions of a document, one entry each in every array."""

    start: Integers
    stop: Integers
    sentence: Integers
    form: Integers
    person: Integers
    number: Integers
    gender: Integers
    text: Integers  # equal numbers for equal texts; likewise below
    head: Integers
    content: NDArray[np.float32]  # (n, number of different words): which content words it has
    quotation: Integers  # its number, 0 outside of any
    speaker: Integers  # 0 if unknown


def _read(document: Document) -> _Mentions:
    spans = [document.words[m.start : m.stop] for m in document.mentions]
    lowered = [[word.casefold() for word in span] for span in spans]
    heads = [_head(span) for span in lowered]
    contents = [[word for word in span if word not in _STOP] or span for span in lowered]
    number: dict[str, int] = {}
    columns = [[number.setdefault(word, len(number)) for word in words] for words in contents]
    content = np.zeros((len(spans), len(number)), np.float32)
    for row, own in zip(content, columns):
        row[own] = 1.0
    traits = np.array([_traits(span, head) for span, head in zip(spans, heads)], np.int64).reshape(
        -1, 4
    )
    start = np.array([m.start for m in document.mentions], np.int64)
    return _Mentions(
        start,
        np.array([m.stop for m in document.mentions], np.int64),
        document.sentences[start],
        traits[:, 0],
        traits[:, 1],
        traits[:, 2],
        traits[:, 3],
        _numbers([" ".join(span) for span in lowered]),
        _numbers([span[head] for span, head in zip(lowered, heads)]),
        content,
        _quotations(document.words)[start],
        _numbers([document.speakers[m.start] for m in document.mentions]),
    )


def _head(words: Sequence[str]) -> int:
    """Place of the head: the last word before what usually follows a head."""
    for place, word in enumerate(words):
        if place and word in _AFTER_HEAD and words[place - 1] not in _STOP:
            return place - 1
    last = len(words) - 1
    return last - 1 if last and words[last] == "'s" else last


def _traits(words: Sequence[str], head: int) -> _Traits:
    lowered = [word.casefold() for word in words]
    if len(words) == 1 and lowered[0] in PRONOUNS:
        person, number, gender = PRONOUNS[lowered[0]]
        return _Traits(person - 1, person, number, gender)
    own, first = lowered[head], lowered[0]
    owners = [place for place, word in enumerate(lowered[:head]) if word in ("'s", "'")]
    if words[head][:1].isupper():
        form = NAME
    elif first in _DEFINITE:
        form = DEFINITE
    else:
        form = POSSESSIVE if owners or first in _POSSESSIVE else OTHER
    # A title or given name before the head of a name tells its gender, but not that of an owner.
    told = lowered[owners[-1] + 1 if owners else 0 : head] if form == NAME else []
    gender = next((GENDER[word] for word in (own, *told) if word in GENDER), UNKNOWN)
    several = own in _PLURALS or (
        form != NAME and own.endswith("s") and not own.endswith(_NOT_PLURAL)
    )
    plural = several or "and" in lowered[:head]
    return _Traits(form, 0, PLURAL if plural else SINGULAR, gender)


def _quotations(words: Sequence[str]) -> Integers:
    """The number of the quotation around each word, 0 for none."""
    numbers, opened, current = np.zeros(len(words), np.int64), 0, 0
    for place, word in enumerate(words):
        if word in _OPENS or (word in _OPENS_OR_CLOSES and not current):
            opened += 1
            current = opened
        elif word in _CLOSES or word in _OPENS_OR_CLOSES:
            current = 0
        numbers[place] = current
    return numbers


def _numbers(texts: Sequence[str]) -> Integers:
    """Equal numbers for equal texts; 0 for none."""
    number = {"": 0}
    return np.array([number.setdefault(text, len(number)) for text in texts], np.int64)


# --- Pairs --------------------------------------------------------------------------------------


class _Columns:
    """Indicators of all pairs, filled in the order of `FEATURES`."""

    def __init__(self, n_pairs: int) -> None:
        self.features = np.zeros((n_pairs, len(FEATURES)), np.uint8)
        self._first = np.arange(n_pairs) * len(FEATURES)
        self._begin = 0

    def mark(self, on: Any, column: Any) -> None:
        """Set the column, counted within the present group, of each pair where ``on``."""
        places = (self._first + self._begin + column)[on]
        self.features.ravel()[places] = 1

    def close(self, size: int) -> None:
        """End a group of so many columns."""
        self._begin += size


def pair_features(document: Document) -> MentionPairs:
    """Indicators (uint8) of all pairs of mentions, shape (n(n−1)/2, len(`FEATURES`)).

    Gold clusters are not looked at.
    """
    n = len(document.mentions)
    i, j = np.triu_indices(n, 1)
    columns = _Columns(len(i))
    if len(i):
        _fill(columns, document, _read(document), i, j)
    return MentionPairs(n, columns.features)


def _fill(
    columns: _Columns, document: Document, mentions: _Mentions, i: Integers, j: Integers
) -> None:
    form, person = mentions.form, mentions.person
    number, gender = mentions.number, mentions.gender
    every = np.ones(len(i), np.bool_)
    kind = _kind(form[i], form[j])
    noun_kind = np.maximum(kind - KINDS.index(NOUN_KINDS[0]), 0)
    nouns = kind >= KINDS.index(NOUN_KINDS[0])
    nested = mentions.stop[j] <= mentions.stop[i]

    columns.mark(every, 0)
    columns.close(1)
    columns.mark(every, form[i] * len(FORMS) + form[j])
    columns.close(len(FORMS) ** 2)
    apart = mentions.sentence[j] - mentions.sentence[i]
    for distance, least in ((apart, SENTENCES), (j - i, MENTIONS)):
        columns.mark(every, kind * len(least) + np.searchsorted(least, distance, "right") - 1)
        columns.close(len(KINDS) * len(least))

    gendered, numbered = (t[i] * t[j] > 0 for t in (gender, number))
    other_gender = gendered & (gender[i] != gender[j])
    other_number = numbered & (number[i] != number[j])
    agreement = (gendered & ~other_gender, other_gender, numbered & ~other_number, other_number)
    for column, on in enumerate(agreement):
        columns.mark(on, kind * len(AGREEMENT) + column)
    columns.close(len(KINDS) * len(AGREEMENT))

    # A noun has person 0: it may agree with a third person, not with a first or second one.
    low, high = np.minimum(person[i], person[j]), np.maximum(person[i], person[j])
    same_person = (low == high) | ((low == 0) & (high == 3))
    agrees = same_person & ~other_gender & ~other_number & ~nested
    agrees &= ~nouns | (mentions.head[i] == mentions.head[j])
    columns.mark(agrees & (i == _nearest(agrees, i, j, len(form))[j]), kind)
    columns.close(len(KINDS))
    named = agrees & (form[i] == NAME)
    named &= i == _nearest(named, i, j, len(form))[j]
    for column, name in enumerate(NAME_KINDS):
        columns.mark(named & (kind == KINDS.index(name)), column)
    columns.close(len(NAME_KINDS))

    for column, on in enumerate(_matches(mentions, i, j)):
        columns.mark(nouns & on, noun_kind * len(MATCHES) + column)
    columns.close(len(NOUN_KINDS) * len(MATCHES))

    pronouns = kind == KINDS.index("pronouns")
    persons = _persons(mentions, i, j, ~other_gender & ~other_number)
    columns.mark(pronouns, persons * len(SETTINGS) + _setting(mentions.quotation, i, j))
    columns.close(len(PERSONS) * len(SETTINGS))

    for column, on in enumerate(_others(document, mentions, i, j, nested)):
        columns.mark(on, column)
    columns.close(len(OTHERS))


def _kind(first: Integers, second: Integers) -> Integers:
    """Index into `KINDS` from the forms of both mentions."""
    pronoun = (first < NAME, second < NAME)
    name = (first == NAME, second == NAME)
    cases = [
        pronoun[0] & pronoun[1],
        name[0] & pronoun[1],
        ~pronoun[0] & pronoun[1],
        pronoun[0],
        name[0] & name[1],
        ~name[0] & ~name[1],
    ]
    return np.select(cases, range(len(cases)), default=len(cases))


def _nearest(on: Flags, i: Integers, j: Integers, n: int) -> Integers:
    """For each mention the last one before it of the pairs that are on, −1 if there is none."""
    before = np.full(n, -1)
    np.maximum.at(before, j[on], i[on])
    return before


def _matches(mentions: _Mentions, i: Integers, j: Integers) -> Iterator[Flags]:
    """The flags of `MATCHES`."""
    size = mentions.content.sum(axis=1)
    shared = (mentions.content @ mentions.content.T)[i, j]
    least, most = np.minimum(size[i], size[j]), np.maximum(size[i], size[j])
    length = mentions.stop - mentions.start
    head = mentions.head[i] == mentions.head[j]
    yield mentions.text[i] == mentions.text[j]
    yield shared == most
    yield head
    yield head & (shared < least)
    yield (shared == least) & (shared < most)
    yield (2 * shared >= most) & (shared < most)
    yield (2 * shared < most) & (shared > 0)
    yield shared == 0
    yield length[i] == length[j]
    yield length[i] < length[j]


def _persons(mentions: _Mentions, i: Integers, j: Integers, agree: Flags) -> Integers:
    """Index into `PERSONS` from two pronouns."""
    person = mentions.person
    low, high = np.minimum(person[i], person[j]), np.maximum(person[i], person[j])
    cases = [
        (low == 1) & (high == 1) & agree,
        (low == 1) & (high == 1),
        (low == 2) & (high == 2),
        (low == 3) & (high == 3) & agree,
        (low == 3) & (high == 3),
        (low == 1) & (high == 2),
        (low == 1) & (high == 3),
        (low == 2) & (high == 3),
    ]
    return np.select(cases, range(len(cases)), default=len(cases))


def _setting(quotation: Integers, i: Integers, j: Integers) -> Integers:
    """Index into `SETTINGS`."""
    first, second = quotation[i], quotation[j]
    cases = [(first == 0) & (second == 0), first == second, (first > 0) & (second > 0)]
    return np.select(cases, range(len(cases)), default=len(cases))


def _others(
    document: Document, mentions: _Mentions, i: Integers, j: Integers, nested: Flags
) -> Iterator[Flags]:
    """The flags of `OTHERS`."""
    words = np.array([*(word.casefold() for word in document.words), ""], dtype=object)
    between = mentions.start[j] - mentions.stop[i]
    single = (between == 1) & (mentions.sentence[i] == mentions.sentence[j])
    word = np.where(single, words[np.minimum(mentions.stop[i], len(words) - 1)], "")
    speaker, other = mentions.speaker[i], mentions.speaker[j]
    yield nested
    yield between == 0
    yield word == ","
    yield np.isin(word.astype(str), _BE)
    yield (speaker == other) & (speaker > 0)
    yield (speaker != other) & (speaker * other > 0)
