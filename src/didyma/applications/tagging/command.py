"""`didyma tag`: train a tagger, tag, make n-best lists, evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.output import aligned, check_output, listed, print_json, say, waiting
from didyma.errors import DataError
from didyma.files import format_suffix, read_lines, replace_when_done
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.applications.tagging.tagger import TrigramTagger
    from didyma.data.conll import Field, Sentence
    from didyma.data.lists import Lists

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)

SENTENCES = "CoNLL-U or CoNLL-X file, or a text (.txt) with a tokenised sentence a line."
SMOOTHING = "Smoothing"


class Tags(StrEnum):
    """A column of tags."""

    xpos = "xpos"
    upos = "upos"

    @property
    def field(self) -> Field:
        from didyma.data.conll import Field

        return Field[self.name.upper()]


Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma tag fit has saved.")
]
Column = Annotated[
    Tags | None,
    typer.Option("--tags", help="Column of the tags.", show_default="the one of training"),
]


@app.callback()
def _tag() -> None:
    """Tag words by a second-order hidden Markov model.

    Fast to train and to apply, with exact lists of the n best tags for
    rerankers (didyma nbest) to choose from.

    [bold]Train, tag, evaluate, make lists:[/bold]

    didyma tag fit train.conllu -o tagger.didyma.safetensors

    didyma tag predict tagger.didyma.safetensors test.conllu -o tagged.conllu

    didyma tag eval tagger.didyma.safetensors test.conllu --n 10

    didyma tag nbest tagger.didyma.safetensors test.conllu -o test.jsonl
    """


@app.command()
def fit(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CoNLL-U or CoNLL-X file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("tagger.didyma.safetensors"),
    tags: Annotated[Tags, typer.Option("--tags", help="Column of the tags.")] = Tags.xpos,
    a: Annotated[
        float,
        typer.Option("--a", help="Base of the logarithm of counts.", rich_help_panel=SMOOTHING),
    ] = 10.0,
    b: Annotated[
        float, typer.Option("--b", help="Added to that logarithm.", rich_help_panel=SMOOTHING)
    ] = 1.0,
    longest_suffix: Annotated[
        int,
        typer.Option(
            "--longest-suffix", help="Letters of the longest suffix.", rich_help_panel=SMOOTHING
        ),
    ] = 10,
    rare: Annotated[
        int,
        typer.Option(
            "--rare",
            help="Suffixes are learned from words seen at most so often.",
            rich_help_panel=SMOOTHING,
        ),
    ] = 10,
    prior: Annotated[
        float,
        typer.Option(
            "--prior",
            help="How many occurrences of a word its suffix counts for.",
            rich_help_panel=SMOOTHING,
        ),
    ] = 1.0,
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold",
            help="Least share that a tag not seen with a word must have.",
            rich_help_panel=SMOOTHING,
        ),
    ] = 0.003,
    as_json: options.Json = False,
) -> None:
    """Train on tagged sentences and save the model.

    [bold]Examples[/bold]

    didyma tag fit train.conllu -o tagger.didyma.safetensors

    didyma tag fit train.conllu --tags upos --rare 5
    """
    check_output(output, train)
    data = _Sentences.read(train)
    words, gold = data.words, data.gold(tags)

    from didyma import model as model_file
    from didyma.applications.tagging.tagger import TrigramTagger

    with waiting("counting"):
        tagger = TrigramTagger(a, b, longest_suffix, rare, prior, threshold).fit(words, gold)
    kept = {
        "tags": tags.value,
        "train": str(train),
        "n_sentences": len(words),
        "n_words": sum(map(len, words)),
        "n_known_words": len(tagger.words_),
        "n_tags": len(tagger.tags_),
    }
    model_file.save(tagger, output, summary=kept)
    if as_json:
        print_json({"model": str(output), **kept})
        return
    lines = {
        "tags": f"{kept['n_tags']} ({tags.value})",
        "words": f"{kept['n_words']} ({kept['n_known_words']} different)",
        "saved to": output,
    }
    typer.echo(listed(lines))


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help=SENTENCES)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    tags: Column = None,
) -> None:
    """Tag the sentences of DATA and write them again.

    In CoNLL files the column of tags is replaced and all else is kept. A text
    (.txt) becomes a text of word/TAG.

    [bold]Examples[/bold]

    didyma tag predict tagger.didyma.safetensors test.conllu -o tagged.conllu

    didyma tag predict tagger.didyma.safetensors notes.txt -o tagged.txt
    """
    check_output(output, model, data)
    tagger, column = _load(model, tags)
    sentences = _Sentences.read(data)
    with waiting("tagging"):
        guesses = tagger.predict(sentences.words)
    sentences.write_tagged(column, guesses, output)
    say(f"{len(guesses)} sentences written to {output}")


@app.command()
def nbest(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="[MODEL] DATA", help=f"A saved model, and sentences: {SENTENCES}"),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Lists to write (.jsonl).")
    ],
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Most candidates of a list.")] = 10,
    jackknife: Annotated[
        int | None,
        typer.Option(
            "--jackknife",
            metavar="K",
            min=2,
            help="Tag each of K parts of DATA by a tagger trained on the other parts.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the split into parts.")] = 0,
    tags: Column = None,
) -> None:
    """Write the n best tags of each sentence, for a reranker to choose from.

    A line of JSON for each sentence: id, input (its words), reference (its tags
    in DATA, unless one is missing) and candidates, best first, each with its
    text (tags), score (log-probability) and, if no tag is missing in DATA, loss
    (number of wrong tags). White space within a word becomes _.

    Lists of training data must not come from a tagger that was trained on them:
    [bold]--jackknife[/bold] trains others, with the parameters of MODEL if it is given.

    [bold]Examples[/bold]

    didyma tag nbest tagger.didyma.safetensors test.conllu -n 10 -o test.jsonl

    didyma tag nbest train.conllu --jackknife 10 -o train.jsonl
    """
    if len(paths) > 2 or (len(paths) == 1 and jackknife is None):
        raise typer.BadParameter("expected a model and data, or --jackknife and data")
    check_output(output, *paths)
    if len(paths) == 2:
        tagger, column = _load(paths[0], tags)
    else:
        from didyma.applications.tagging.tagger import TrigramTagger

        tagger, column = TrigramTagger(), tags or Tags.xpos
    data = _Sentences.read(paths[-1])
    with waiting("tagging"):
        if jackknife is None:
            lists = tagger.n_best(data.words, n)
        else:
            lists = tagger.jackknife(data.words, data.gold(column), n, jackknife, seed)

    from didyma.nbest import formats as nbest_file

    nbest_file.write(data.nbest(column, lists), output, format="jsonl")
    say(f"{len(lists)} lists written to {output}")


@app.command("eval")
def evaluate(
    model: Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CoNLL-U or CoNLL-X file.")],
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, help="Also how good the best of the n best is.")
    ] = 1,
    tags: Column = None,
    as_json: options.Json = False,
) -> None:
    """Compare a model's tags with those in DATA.

    The oracle chooses, in each list of the n best, the tags with the fewest
    errors. Known words are those seen in training.

    [bold]Examples[/bold]

    didyma tag eval tagger.didyma.safetensors test.conllu

    didyma tag eval tagger.didyma.safetensors test.conllu --n 10 --json
    """
    tagger, column = _load(model, tags)
    sentences = _Sentences.read(data)
    gold = sentences.gold(column)
    with waiting("tagging"):
        lists = tagger.n_best(sentences.words, n)
    found = _measure(tagger, sentences.words, gold, lists)
    if as_json:
        print_json({**found, "n": n})
        return
    rows = [["", "accuracy", "of"]]
    for name in ("words", "known", "unknown", "sentences", "oracle words", "oracle sentences"):
        if n > 1 or not name.startswith("oracle"):
            right, number = found[name.replace(" ", "_")].values()
            rows.append([name, "" if right is None else decimal(right), str(number)])
    typer.echo(aligned(rows))


def _measure(
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


@dataclass(frozen=True)
class _Sentences:
    """Sentences of a CoNLL file or, with words only, of a text."""

    path: Path
    sentences: Sequence[Sentence]
    is_text: bool

    @classmethod
    def read(cls, path: Path) -> _Sentences:
        from didyma.data import conll

        is_text = format_suffix(path) == ".txt"
        with waiting(f"reading {path}"):
            if is_text:
                sentences = [conll.Sentence.from_words(line.split()) for line in read_lines(path)]
            else:
                sentences = conll.read(path)
        say(f"{path}: {len(sentences)} sentences, {sum(map(len, sentences))} words")
        return cls(path, sentences, is_text)

    @property
    def words(self) -> list[tuple[str, ...]]:
        return [sentence.words for sentence in self.sentences]

    def gold(self, tags: Tags) -> list[tuple[str, ...]]:
        """The tags in the file, which all words must have."""
        if self.is_text:
            raise DataError("expected a CoNLL file with tags, found a text", path=self.path)
        columns = [sentence.column(tags.field) for sentence in self.sentences]
        for sentence, column in zip(self.sentences, columns):
            if "_" in column:
                problem = "expected a tag, found _"
                if tags is Tags.xpos and "_" not in sentence.column(Tags.upos.field):
                    problem += "; --tags upos takes those of the column UPOS"
                sentence.fail(column.index("_"), tags.field, problem)
        return columns

    def write_tagged(self, tags: Tags, guesses: Sequence[Sequence[str]], path: Path) -> None:
        """Write the sentences with other tags."""
        from didyma.data import conll

        if not self.is_text:
            replaced = (s.replaced({tags.field: own}) for s, own in zip(self.sentences, guesses))
            conll.write(replaced, path)
            return
        with replace_when_done(path) as file:
            for words, own in zip(self.words, guesses):
                file.write(" ".join(f"{word}/{tag}" for word, tag in zip(words, own)) + "\n")

    def nbest(self, tags: Tags, lists: Sequence[Any]) -> Lists:
        """The lists, with what the file says about their sentences.

        There are losses if all sentences have their tags.
        """
        from didyma.nbest.formats import Input, hamming, of_outputs

        gold = [sentence.column(tags.field) for sentence in self.sentences]
        known = [not self.is_text and "_" not in own for own in gold]
        inputs = [
            Input(_joined(sentence.words), _joined(own) if is_known else None)
            for sentence, own, is_known in zip(self.sentences, gold, known)
        ]
        losses = None
        if all(known):
            losses = [
                [hamming(own, way) for way, _ in guesses] for own, guesses in zip(gold, lists)
            ]
        return of_outputs(
            inputs,
            [[_joined(way) for way, _ in guesses] for guesses in lists],
            scores=[[score for _, score in guesses] for guesses in lists],
            losses=losses,
            ids=self._names(),
        )

    def _names(self) -> list[str]:
        """The ids that comments give to sentences if these are distinct, otherwise numbers."""
        names = [sentence.sent_id for sentence in self.sentences]
        given = [name for name in names if name is not None]
        if len(set(given)) == len(names):
            return given
        return [str(number) for number in range(1, len(self.sentences) + 1)]


def _load(path: Path, tags: Tags | None) -> tuple[TrigramTagger, Tags]:
    """A saved tagger, and the column that it was trained on unless another is asked for."""
    from didyma import model as model_file
    from didyma.applications.tagging.tagger import TrigramTagger

    tagger = TrigramTagger.load(path)
    return tagger, tags or Tags(model_file.describe(path)["summary"].get("tags", Tags.xpos))


def _joined(words: Sequence[str]) -> str:
    """Words with spaces between them, and none within."""
    return " ".join("_".join(word.split()) or "_" for word in words)
