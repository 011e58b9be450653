"""Write treebank-{train,dev,test}.conllu: English sentences of a small grammar, with their trees.

    python examples/data/make_treebank.py

The grammar is small but not easy. Many forms are nouns and verbs ("the watches" and "she watches"),
"that" and "her" have two uses each, and a prepositional phrase goes to the verb or to the noun
before it, which its words tell only in part: "in the park" goes either way by the toss of a coin.
Some clauses stand apart from their noun, so that arcs cross.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

SIZES = {"train": 300, "dev": 60, "test": 60}

# Base form, third person, past: "walks" and "a watch" are nouns as well.
TRANSITIVE = (
    *(("watch", "watches", "watched"), ("paint", "paints", "painted"), ("book", "books", "booked")),
    *(("see", "sees", "saw"), ("plant", "plants", "planted"), ("park", "parks", "parked")),
    *(("find", "finds", "found"), ("like", "likes", "liked"), ("fix", "fixes", "fixed")),
)
INTRANSITIVE = (
    *(("walk", "walks", "walked"), ("dance", "dances", "danced"), ("sleep", "sleeps", "slept")),
    *(("wait", "waits", "waited"), ("arrive", "arrives", "arrived"), ("fall", "falls", "fell")),
)
PERSONS = (("man", "men"), ("woman", "women"), ("child", "children"), ("doctor", "doctors"))
THINGS = (
    *(("watch", "watches"), ("paint", "paints"), ("book", "books"), ("saw", "saws")),
    *(("plant", "plants"), ("park", "parks"), ("walk", "walks"), ("dance", "dances")),
    *(("dog", "dogs"), ("boat", "boats"), ("letter", "letters"), ("house", "houses")),
)
PLACES = (("park", "parks"), ("garden", "gardens"), ("street", "streets"), ("harbour", "harbours"))
TOOLS = (("telescope", "telescopes"), ("saw", "saws"), ("brush", "brushes"))
FEATURES = (("beard", "beards"), ("roof", "roofs"), ("collar", "collars"), ("hat", "hats"))
NAMES = ("Ann", "Ben", "Clara", "David", "Emma")
ADJECTIVES = ("old", "small", "green", "light", "cold", "happy", "tired")
ADVERBS = ("often", "slowly", "today", "yesterday", "again")
PRONOUNS = {"subject": ("she", "he", "they", "we"), "object": ("her", "him", "them", "us")}
POSSESSIVES = ("her", "his", "their", "our")
NEGATED = {
    "did": ("didn't", "do", "VBD"),
    "does": ("doesn't", "do", "VBZ"),
    "ca": ("can't", "can", "MD"),
}


@dataclass
class Word:
    """A word with the words that depend on it, left and right, in the order of the sentence."""

    form: str
    lemma: str
    upos: str
    xpos: str
    relation: str = "root"
    left: list[Word] = field(default_factory=list)
    right: list[Word] = field(default_factory=list)
    contraction: str = ""  # of this word and the next
    apart: Word | None = None  # a dependent that stands at the end of the sentence

    @property
    def dependents(self) -> list[Word]:
        """All of them."""
        return [*self.left, *self.right, *([self.apart] if self.apart else [])]

    def order(self) -> Iterator[Word]:
        """The words of the subtree as they are spoken."""
        for word in self.left:
            yield from word.order()
        yield self
        for word in self.right:
            yield from word.order()


Random = random.Random


def noun(rng: Random, lexicon: tuple[tuple[str, str], ...], relation: str) -> Word:
    """A noun with a determiner or possessive, and perhaps an adjective or another noun."""
    singular, plural = rng.choice(lexicon)
    many = rng.random() < 0.35
    word = Word(plural if many else singular, singular, "NOUN", "NNS" if many else "NN", relation)
    if rng.random() < 0.2:
        owner = rng.choice(POSSESSIVES)
        word.left.append(Word(owner, owner, "PRON", "PRP$", "nmod:poss"))
    elif not many or rng.random() < 0.7:
        chosen = rng.choice(
            ("the", "the", "some", "those") if many else ("the", "a", "that", "this")
        )
        word.left.append(Word(chosen, chosen, "DET", "DT", "det"))
    if rng.random() < 0.3:
        adjective = rng.choice(ADJECTIVES)
        word.left.append(Word(adjective, adjective, "ADJ", "JJ", "amod"))
    elif rng.random() < 0.1:
        other = rng.choice(THINGS)[0]
        word.left.append(Word(other, other, "NOUN", "NN", "compound"))
    return word


def person(rng: Random, relation: str, case: str) -> Word:
    """A name, a pronoun or a noun; sometimes two of them with "and"."""
    kind = rng.random()
    if kind < 0.25:
        name = rng.choice(NAMES)
        word = Word(name, name, "PROPN", "NNP", relation)
    elif kind < 0.45:
        pronoun = rng.choice(PRONOUNS[case])
        word = Word(pronoun, pronoun, "PRON", "PRP", relation)
    else:
        word = noun(rng, PERSONS, relation)
    if kind > 0.9:
        other = noun(rng, PERSONS, "conj")
        other.left.insert(0, Word("and", "and", "CCONJ", "CC", "cc"))
        word.right.append(other)
    return word


def prepositional(rng: Random) -> tuple[Word, float]:
    """A phrase, and how likely it goes to the noun before it rather than to the verb."""
    preposition, lexicon, share = rng.choice(
        (("with", TOOLS, 0.1), ("with", FEATURES, 0.9), ("in", PLACES, 0.5), ("of", PERSONS, 1.0))
    )
    word = noun(rng, lexicon, "obl")
    word.left.insert(0, Word(preposition, preposition, "ADP", "IN", "case"))
    return word, share


def is_plural(subject: Word) -> bool:
    """Whether the verb has no -s."""
    several = any(word.relation == "conj" for word in subject.right)
    return several or subject.xpos == "NNS" or subject.form in ("they", "we")


def verb(rng: Random, subject: Word, forms: tuple[str, str, str]) -> Word:
    """The verb of a subject: present, past, or negated with an auxiliary."""
    base, third, past = forms
    kind = rng.random()
    if kind < 0.12:
        auxiliary = rng.choice(("did", "ca") if is_plural(subject) else tuple(NEGATED))
        contraction, lemma, xpos = NEGATED[auxiliary]
        word = Word(base, base, "VERB", "VB")
        word.left.append(Word(auxiliary, lemma, "AUX", xpos, "aux", contraction=contraction))
        word.left.append(Word("n't", "not", "PART", "RB", "advmod"))
    elif kind < 0.55:
        word = Word(past, base, "VERB", "VBD")
    elif is_plural(subject):
        word = Word(base, base, "VERB", "VBP")
    else:
        word = Word(third, base, "VERB", "VBZ")
    word.left.insert(0, subject)
    return word


def clause(rng: Random, relation: str = "root", depth: int = 0) -> Word:
    """Subject, verb, object, adverb, prepositional phrases, or a clause as object."""
    subject = person(rng, "nsubj", "subject")
    kind = rng.random()
    if kind < 0.2 and depth == 0:
        head = verb(rng, subject, ("say", "says", "said"))
        inner = clause(rng, "ccomp", depth + 1)
        if rng.random() < 0.7:
            inner.left.insert(0, Word("that", "that", "SCONJ", "IN", "mark"))
        head.right.append(inner)
    elif kind < 0.3:
        head = verb(rng, subject, ("want", "wants", "wanted"))
        base = rng.choice(INTRANSITIVE)[0]
        inner = Word(base, base, "VERB", "VB", "xcomp")
        inner.left.append(Word("to", "to", "PART", "TO", "mark"))
        head.right.append(inner)
    elif kind < 0.5:
        head = verb(rng, subject, rng.choice(INTRANSITIVE))
    else:
        head = verb(rng, subject, rng.choice(TRANSITIVE))
        thing = rng.random() < 0.7
        target = noun(rng, THINGS, "obj") if thing else person(rng, "obj", "object")
        head.right.append(target)
        if rng.random() < 0.5:
            phrase, share = prepositional(rng)
            if target.upos == "NOUN" and not target.right and rng.random() < share:
                phrase.relation = "nmod"
                target.right.append(phrase)
            elif share < 1.0:
                head.right.append(phrase)
    if rng.random() < 0.25:
        adverb = rng.choice(ADVERBS)
        head.right.append(Word(adverb, adverb, "ADV", "RB", "advmod"))
    head.relation = relation
    return head


def gapping(rng: Random) -> Word:
    """As in "Ann likes tea and Ben coffee": the second verb is left out."""
    one, two = (Word(name, name, "PROPN", "NNP", "nsubj") for name in rng.sample(NAMES, 2))
    tea, coffee = (noun(rng, THINGS, "obj") for _ in range(2))
    base, third, _ = rng.choice(TRANSITIVE)
    head = Word(third, base, "VERB", "VBZ", left=[one], right=[tea, two])
    two.relation, coffee.relation = "conj", "orphan"
    two.left.append(Word("and", "and", "CCONJ", "CC", "cc"))
    two.right.append(coffee)
    return head


def extraposed(rng: Random) -> Word:
    """As in "A man arrived that ...": a clause apart from its noun; its arc crosses others."""
    subject = noun(rng, PERSONS, "nsubj")
    head = verb(rng, subject, rng.choice(INTRANSITIVE))
    base, _, past = rng.choice(TRANSITIVE)
    relative = Word(past, base, "VERB", "VBD", "acl:relcl")
    relative.left.append(Word("that", "that", "PRON", "WDT", "nsubj"))
    relative.right.append(noun(rng, THINGS, "obj"))
    subject.apart = relative
    return head


def exclamation(rng: Random) -> Word:
    """One word, and no full stop."""
    form, upos, xpos = rng.choice(
        (("wait", "VERB", "VB"), ("yes", "INTJ", "UH"), ("no", "INTJ", "UH"))
    )
    return Word(form, form, upos, xpos)


KINDS: tuple[tuple[Callable[[Random], Word], float], ...] = (
    (clause, 0.93),
    (extraposed, 0.03),
    (exclamation, 0.02),
    (gapping, 0.02),
)


def sentence(rng: Random, kind: Callable[[Random], Word]) -> tuple[str, str]:
    """Text and lines of one sentence."""
    root = kind(rng)
    words = list(root.order())
    words += [word for noun in words if noun.apart for word in noun.apart.order()]
    if kind is not exclamation:
        root.right.append(Word(".", ".", "PUNCT", ".", "punct"))
        words.append(root.right[-1])
    for article, following in pairwise(words):
        if article.form == "a" and following.form[0] in "aeiou":
            article.form = "an"
    words[0].form = words[0].form[0].upper() + words[0].form[1:]
    head = {id(child): i for i, word in enumerate(words, 1) for child in word.dependents}
    lines, text = [], ""
    for i, word in enumerate(words, 1):
        ends = words[i:] and words[i].upos == "PUNCT"
        if word.contraction:
            lines.append([f"{i}-{i + 1}", word.contraction, *"________"])
        columns = [word.form, word.lemma, word.upos, word.xpos, "_", str(head.get(id(word), 0))]
        lines.append([str(i), *columns, word.relation, "_", "SpaceAfter=No" if ends else "_"])
        if word.relation == "conj" and kind is gapping:
            lines.append([f"{i}.1", root.form, root.lemma, root.upos, root.xpos, *"_____"])
        if word.form != "n't":  # part of the contraction before it
            text += (word.contraction or word.form) + ("" if ends else " ")
    return text.strip(), "\n".join("\t".join(line) for line in lines)


def write(folder: Path) -> None:
    """The three files; no sentence is in two of them."""
    rng = Random(2026)
    seen: set[str] = set()
    for part, size in SIZES.items():
        blocks: list[str] = []
        while len(blocks) < size:
            kinds, weights = zip(*KINDS)
            # Each file has something of each kind.
            kind = (
                kinds[len(blocks)] if len(blocks) < len(kinds) else rng.choices(kinds, weights)[0]
            )
            text, lines = sentence(rng, kind)
            if text in seen and kind is not exclamation:
                continue
            seen.add(text)
            blocks.append(f"# sent_id = {part}-{len(blocks) + 1}\n# text = {text}\n{lines}\n\n")
        (folder / f"treebank-{part}.conllu").write_text("".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
