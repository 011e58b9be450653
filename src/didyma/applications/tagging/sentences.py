"""Sentences to tag, and how well they were tagged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from didyma import DataError
from didyma.applications.tagging.tagger import TrigramTagger
from didyma.data import Lists, conll
from didyma.data.conll import Sentence
from didyma.files import format_suffix, read_lines, replace_when_done
from didyma.nbest import Input, hamming, of_outputs


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences of a CoNLL file or, with words only, of a text."""

    path: Path
    sentences: Sequence[Sentence]
    is_text: bool

    @classmethod
    def read(cls, path: Path) -> TaggedSentences:
        """The sentences of a CoNLL file, or of a text (.txt) with one a line."""
        if format_suffix(path) == ".txt":
            lines = [conll.Sentence.from_words(line.split()) for line in read_lines(path)]
            return cls(path, lines, True)
        return cls(path, conll.read(path), False)

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each sentence."""
        return [sentence.words for sentence in self.sentences]

    def gold(self, tags: str) -> list[tuple[str, ...]]:
        """The tags in the file, which all words must have."""
        if self.is_text:
            raise DataError("expected a CoNLL file with tags, found a text", path=self.path)
        columns = [sentence.column(_field(tags)) for sentence in self.sentences]
        for sentence, column in zip(self.sentences, columns):
            if "_" in column:
                problem = "expected a tag, found _"
                if tags == "xpos" and "_" not in sentence.column(_field("upos")):
                    problem += "; --tags upos takes those of the column UPOS"
                sentence.fail(column.index("_"), _field(tags), problem)
        return columns

    def write_tagged(self, tags: str, guesses: Sequence[Sequence[str]], path: Path) -> None:
        """Write the sentences with other tags."""
        if not self.is_text:
            replaced = (
                s.replaced({_field(tags): labels}) for s, labels in zip(self.sentences, guesses)
            )
            conll.write(replaced, path)
            return
        with replace_when_done(path) as file:
            for words, labels in zip(self.words, guesses):
                file.write(" ".join(f"{word}/{tag}" for word, tag in zip(words, labels)) + "\n")

    def nbest(self, tags: str, lists: Sequence[Any]) -> Lists:
        """The lists, with what the file says about their sentences.

        There are losses if all sentences have their tags.
        """
        gold = [sentence.column(_field(tags)) for sentence in self.sentences]
        is_tagged = [not self.is_text and "_" not in column for column in gold]
        inputs = [
            Input(_joined(sentence.words), _joined(column) if tagged else None)
            for sentence, column, tagged in zip(self.sentences, gold, is_tagged)
        ]
        losses = None
        if all(is_tagged):
            losses = [
                [hamming(column, guess) for guess, _ in guesses]
                for column, guesses in zip(gold, lists)
            ]
        return of_outputs(
            inputs,
            [[_joined(guess) for guess, _ in guesses] for guesses in lists],
            scores=[[score for _, score in guesses] for guesses in lists],
            losses=losses,
            ids=self._names(),
        )

    def _names(self) -> list[str]:
        """The ids that comments give to sentences if these are distinct, otherwise numbers."""
        names = [sentence.sent_id for sentence in self.sentences]
        ids = [name for name in names if name is not None]
        if len(set(ids)) == len(names):
            return ids
        return [str(number) for number in range(1, len(self.sentences) + 1)]


def accuracies(
    tagger: TrigramTagger,
    words: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    lists: Sequence[Any],
) -> dict[str, dict[str, float | None]]:
    """Accuracy, and of how many."""
    right: dict[str, list[bool]] = {
        name: []
        for name in ("words", "known", "unknown", "sentences", "oracle_words", "oracle_sentences")
    }
    for sentence, tags, guesses in zip(words, gold, lists):
        ways = [[guess == tag for guess, tag in zip(way, tags)] for way, _ in guesses]
        for word, hit in zip(sentence, ways[0]):
            right["known" if tagger.knows(word) else "unknown"].append(hit)
        right["words"] += ways[0]
        right["sentences"].append(all(ways[0]))
        oracle = max(ways, key=sum)
        right["oracle_words"] += oracle
        right["oracle_sentences"].append(all(oracle))
    return {
        name: {"accuracy": sum(hits) / len(hits) if hits else None, "of": len(hits)}
        for name, hits in right.items()
    }


def _field(tags: str) -> conll.Field:
    return conll.Field[tags.upper()]


def _joined(words: Sequence[str]) -> str:
    """Words with spaces between them, and none within."""
    return " ".join("_".join(word.split()) or "_" for word in words)
