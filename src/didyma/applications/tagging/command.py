"""`didyma tag`: train a tagger, tag, make n-best lists, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from didyma import cli
from didyma.cli import options
from didyma.report import aligned, decimal, listed

if TYPE_CHECKING:
    from didyma.applications.tagging.sentences import TaggedSentences
    from didyma.applications.tagging.tagger import TrigramTagger

app = cli.group(
    """Tag words by a second-order hidden Markov model.

    Fast to train and to apply, with exact lists of the n best tags for
    rerankers (didyma nbest) to choose from.

    [bold]Train, tag, evaluate, make lists:[/bold]

    didyma tag fit train.conllu -o tagger.didyma.safetensors

    didyma tag predict tagger.didyma.safetensors test.conllu -o tagged.conllu

    didyma tag eval tagger.didyma.safetensors test.conllu --n 10

    didyma tag nbest tagger.didyma.safetensors test.conllu -o test.jsonl
    """
)

SENTENCES = "CoNLL-U or CoNLL-X file, or a text (.txt) with a tokenised sentence a line."


TAGGER = cli.ParametersOf(
    "didyma.applications.tagging.tagger.TrigramTagger",
    {"Smoothing": ["a", "b", "longest_suffix", "rare", "prior", "threshold"]},
)
Tags = Literal["xpos", "upos"]
Model = Annotated[Path, options.argument("MODEL", "A model that didyma tag fit has saved.")]
Column = Annotated[
    Tags | None,
    typer.Option("--tags", help="Column of the tags.", show_default="the one of training"),
]


@app.command()
@cli.command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", "CoNLL-U or CoNLL-X file.")],
    output: options.Output = Path("tagger.didyma.safetensors"),
    tags: Annotated[Tags, typer.Option(help="Column of the tags.")] = "xpos",
    parameters: Annotated[dict[str, Any], TAGGER],
    as_json: options.Json = False,
) -> None:
    """Train on tagged sentences and save the model.

    [bold]Examples[/bold]

    didyma tag fit train.conllu -o tagger.didyma.safetensors

    didyma tag fit train.conllu --tags upos --rare 5
    """
    cli.check_output(output, train)
    data = _read(train)
    words, gold = data.words, data.gold(tags)

    from didyma import model as model_file
    from didyma.applications.tagging.tagger import TrigramTagger

    with cli.waiting("counting"):
        tagger = TrigramTagger(**parameters).fit(words, gold)
    summary = {
        "tags": tags,
        "train": str(train),
        "n_sentences": len(words),
        "n_words": sum(map(len, words)),
        "n_known_words": len(tagger.words_),
        "n_tags": len(tagger.tags_),
    }
    model_file.save(tagger, output, summary=summary)
    if as_json:
        cli.print_json({"model": str(output), **summary})
        return
    lines = {
        "tags": f"{summary['n_tags']} ({tags})",
        "words": f"{summary['n_words']} ({summary['n_known_words']} different)",
        "saved to": output,
    }
    typer.echo(listed(lines))


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, options.argument("DATA", SENTENCES)],
    output: Annotated[Path, options.file("File to write.", "--output", "-o")],
    tags: Column = None,
) -> None:
    """Tag the sentences of DATA and write them again.

    In CoNLL files the column of tags is replaced and all else is kept. A text
    (.txt) becomes a text of word/TAG.

    [bold]Examples[/bold]

    didyma tag predict tagger.didyma.safetensors test.conllu -o tagged.conllu

    didyma tag predict tagger.didyma.safetensors notes.txt -o tagged.txt
    """
    cli.check_output(output, model, data)
    tagger, column = _load(model, tags)
    sentences = _read(data)
    with cli.waiting("tagging"):
        guesses = tagger.predict(sentences.words)
    sentences.write_tagged(column, guesses, output)
    cli.print_message(f"{len(guesses)} sentences written to {output}")


@app.command()
def nbest(
    paths: Annotated[
        list[Path], options.argument("[MODEL] DATA", f"A saved model, and sentences: {SENTENCES}")
    ],
    output: Annotated[Path, options.file("Lists to write (.jsonl).", "--output", "-o")],
    n: Annotated[int, options.number("Most candidates of a list.", "--n", "-n", min=1)] = 10,
    jackknife: Annotated[
        int | None,
        options.number(
            "Tag each of K parts of DATA by a tagger trained on the other parts.",
            min=2,
            metavar="K",
        ),
    ] = None,
    seed: Annotated[int, options.number("Seed of the split into parts.", min=0)] = 0,
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
    cli.check_output(output, *paths)
    if len(paths) == 2:
        tagger, column = _load(paths[0], tags)
    else:
        from didyma.applications.tagging.tagger import TrigramTagger

        tagger, column = TrigramTagger(), tags or "xpos"
    data = _read(paths[-1])
    with cli.waiting("tagging"):
        if jackknife is None:
            lists = tagger.n_best(data.words, n)
        else:
            lists = tagger.jackknife(data.words, data.gold(column), n, jackknife, seed)

    from didyma import nbest as nbest_file

    nbest_file.write(data.nbest(column, lists), output, format="jsonl")
    cli.print_message(f"{len(lists)} lists written to {output}")


@app.command("eval")
def evaluate(
    model: Model,
    data: Annotated[Path, options.argument("DATA", "CoNLL-U or CoNLL-X file.")],
    n: Annotated[
        int, options.number("Also how good the best of the n best is.", "--n", "-n", min=1)
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
    sentences = _read(data)
    gold = sentences.gold(column)
    with cli.waiting("tagging"):
        lists = tagger.n_best(sentences.words, n)

    from didyma.applications.tagging.sentences import accuracies

    measures = accuracies(tagger, sentences.words, gold, lists)
    if as_json:
        cli.print_json({**measures, "n": n})
        return
    rows = [["", "accuracy", "of"]]
    for name in ("words", "known", "unknown", "sentences", "oracle words", "oracle sentences"):
        if n > 1 or not name.startswith("oracle"):
            right, number = measures[name.replace(" ", "_")].values()
            rows.append([name, "" if right is None else decimal(right), str(number)])
    typer.echo(aligned(rows))


def _load(path: Path, tags: str | None) -> tuple[TrigramTagger, str]:
    """A saved tagger, and the column that it was trained on unless another is asked for."""
    from didyma import model as model_file
    from didyma.applications.tagging.tagger import TrigramTagger

    tagger = TrigramTagger.load(path)
    return tagger, tags or str(model_file.describe(path)["summary"].get("tags", "xpos"))


def _read(path: Path) -> TaggedSentences:
    from didyma.applications.tagging.sentences import TaggedSentences

    with cli.waiting(f"reading {path}"):
        data = TaggedSentences.read(path)
    cli.print_message(
        f"{path}: {len(data.sentences)} sentences, {sum(map(len, data.sentences))} words"
    )
    return data
