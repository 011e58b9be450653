"""`didyma parse fit/predict/eval`: train a dependency parser, parse with it, judge trees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.applications.networks import options as neural
from didyma.cli import options
from didyma.cli.inputs import is_model
from didyma.cli.output import aligned, check_output, print_json, say, waiting
from didyma.errors import DataError
from didyma.files import format_suffix, replace_when_done
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.applications.parsing.parser import DependencyParser
    from didyma.applications.parsing.trees import Ambiguity
    from didyma.data.conll import Sentence

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="""Find the head of each word of a sentence, and its relation to it.

    [bold]Train, parse, evaluate:[/bold]

    didyma parse fit train.conllu --dev dev.conllu -o parser.didyma.safetensors

    didyma parse predict parser.didyma.safetensors test.conllu -o parsed.conllu

    didyma parse eval parsed.conllu test.conllu

    Data are CoNLL-U or CoNLL-X files, plain or .gz. Words are given, and so are
    tags unless --tags none.""",
)

DATA = "Sentences, CoNLL-U or CoNLL-X."
KINDS = (".html", ".svg", ".jsonl")


class HeadLoss(StrEnum):
    """What heads are learned by."""

    sparsemap = "sparsemap"
    margin_sparsemap = "margin-sparsemap"
    crf = "crf"
    margin_crf = "margin-crf"
    perceptron = "perceptron"
    svm = "svm"


class ParserTags(StrEnum):
    """Which tags are read."""

    upos = "upos"
    xpos = "xpos"
    none = "none"


Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma parse fit has saved.")
]


@app.command()
def fit(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Sentences with trees.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("parser.didyma.safetensors"),
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Held-out trees, to choose the epoch by UAS."),
    ] = None,
    loss: Annotated[
        HeadLoss, typer.Option("--loss", help="How heads are learned.")
    ] = HeadLoss.sparsemap,
    margin: Annotated[
        float, typer.Option("--margin", min=0, help="Cost of a wrong head, in svm and margin-*.")
    ] = 1.0,
    projective: Annotated[bool, typer.Option("--projective", help="Arcs may not cross.")] = False,
    several_roots: Annotated[
        bool, typer.Option("--several-roots", help="Several words may hang from the root.")
    ] = False,
    tags: Annotated[
        ParserTags, typer.Option("--tags", help="Tags that the parser reads.")
    ] = ParserTags.upos,
    characters: Annotated[
        bool, typer.Option("--characters", help="Read the letters of words too.")
    ] = False,
    word_size: Annotated[
        int,
        typer.Option(
            "--word-size", min=1, rich_help_panel=neural.NETWORK, help="Size of a word's vector."
        ),
    ] = 100,
    hidden: Annotated[
        int,
        typer.Option(
            "--hidden", min=1, rich_help_panel=neural.NETWORK, help="States of the LSTM each way."
        ),
    ] = 125,
    layers: Annotated[
        int,
        typer.Option("--layers", min=1, rich_help_panel=neural.NETWORK, help="Layers of the LSTM."),
    ] = 2,
    mlp: Annotated[
        int,
        typer.Option("--mlp", min=1, rich_help_panel=neural.NETWORK, help="Units of the scorers."),
    ] = 100,
    dropout: neural.Dropout = 0.2,
    epochs: neural.Epochs = 20,
    learning_rate: neural.LearningRate = 2e-3,
    batch_size: neural.BatchSize = 16,
    patience: neural.Patience = 5,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    device: neural.Device = neural.DeviceName.auto,
    checkpoint: neural.Checkpoint = None,
    as_json: options.Json = False,
) -> None:
    """Train on sentences with trees and save the parser.

    Ctrl-C ends training early and keeps the best epoch so far (exit code 130).

    [bold]Examples[/bold]

    didyma parse fit train.conllu --dev dev.conllu -o parser.didyma.safetensors

    didyma parse fit train.conllu --dev dev.conllu --loss svm --tags xpos --characters

    didyma parse fit train.conllu --projective --epochs 10 --hidden 64
    """
    check_output(output, train, dev)
    check_output(checkpoint, train, dev, output)
    sentences = _read(train, trees=True)
    held_out = None if dev is None else _read(dev, trees=True)

    from didyma.applications.parsing.parser import DependencyParser

    with neural.training("UAS") as callback:
        parser = DependencyParser(
            loss.value,
            margin=margin,
            projective=projective,
            single_root=not several_roots,
            word_size=word_size,
            hidden=hidden,
            layers=layers,
            mlp=mlp,
            dropout=dropout,
            tags=None if tags is ParserTags.none else tags.value,
            characters=characters,
            epochs=epochs,
            learning_rate=learning_rate,
            batch_size=batch_size,
            patience=patience,
            random_state=seed,
            device=device.value,
            checkpoint=checkpoint,
            callback=callback,
        ).fit(sentences, held_out)
    about = {"path": str(train), "sentences": len(sentences)}
    choice = {"loss": loss.value}
    neural.conclude(parser, output, about, dev, "UAS", choice, as_json=as_json)


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help=DATA)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Parsed sentences, as in DATA."),
    ] = None,
    alternatives: Annotated[
        Path | None,
        typer.Option(
            "--alternatives",
            metavar="FILE",
            help="Trees of ambiguous sentences: drawn (.html, .svg) or as data (.jsonl).",
        ),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option("--temperature", help="For --alternatives: a higher one gives more trees."),
    ] = 1.0,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Sentences to draw, the first of DATA.")
    ] = 50,
    device: neural.Device = neural.DeviceName.auto,
    jobs: options.Jobs = None,
) -> None:
    """Parse the sentences of DATA and write them in the same format.

    Trees that DATA may have are not looked at. Comments, multiword tokens, empty
    nodes and all columns but HEAD and DEPREL are kept.

    SparseMAP gives a sentence a few trees with probabilities, or one if there is
    no doubt. --alternatives is about the sentences that have several.

    [bold]Examples[/bold]

    didyma parse predict parser.didyma.safetensors test.conllu -o parsed.conllu

    didyma parse predict parser.didyma.safetensors test.conllu --alternatives trees.html
    """
    if output is None and alternatives is None:
        raise typer.BadParameter("expected a file to write to", param_hint="--output")
    if alternatives is not None and format_suffix(alternatives) not in KINDS:
        raise typer.BadParameter(
            f"expected a name that ends in {', '.join(KINDS)}", param_hint="--alternatives"
        )
    if not 0 < temperature < float("inf"):
        raise typer.BadParameter("expected a number above 0", param_hint="--temperature")
    check_output(output, model, data)
    check_output(alternatives, model, data, output)
    if alternatives is not None and format_suffix(alternatives) != ".jsonl":
        from didyma.report.plots import require_matplotlib

        require_matplotlib("drawing trees")
    parser = _load(model, device)
    sentences = _read(data)

    from didyma.data import conll

    if output is not None:
        with waiting("parsing"):
            parsed = parser.predict(sentences)
        conll.write(parsed, output)
        say(f"{len(parsed)} sentences written to {output}")
    if alternatives is not None:
        with waiting("looking for alternatives"):
            found = _ambiguities(parser, sentences, temperature)
        say(f"{len(found)} of {len(sentences)} sentences have several trees")
        if format_suffix(alternatives) == ".jsonl":
            _write_lines(found, alternatives)
        else:
            _draw(alternatives, found, most, f"Ambiguous sentences of {data.name}")


@app.command("eval")
def evaluate(
    system: Annotated[
        Path, typer.Argument(metavar="MODEL|PREDICTED", help="A saved parser, or parsed sentences.")
    ],
    gold: Annotated[Path, typer.Argument(metavar="DATA", help="Sentences with their trees.")],
    per_sentence: Annotated[
        bool, typer.Option("--per-sentence", help="Show UAS and LAS of each sentence too.")
    ] = False,
    device: neural.Device = neural.DeviceName.auto,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Compare the trees of a parser, or of a file, with gold ones.

    The rules are those of the CoNLL 2018 shared task for given words: all words
    count, also punctuation, and relations are compared up to a colon. CLAS is
    about content words only.

    [bold]Examples[/bold]

    didyma parse eval parser.didyma.safetensors test.conllu

    didyma parse eval parsed.conllu test.conllu --json --per-sentence
    """
    sentences = _read(gold, trees=True)
    if system.is_file() and is_model(system):
        parser = _load(system, device)
        with waiting("parsing"):
            parsed = parser.predict(sentences)
    else:
        parsed = _read(system, trees=True)
        _check_words(system, parsed, sentences)

    from didyma.applications.parsing.measures import evaluate

    found = evaluate(_trees(sentences), _trees(parsed))
    measures = {"UAS": found.uas, "LAS": found.las, "CLAS": found.clas, "trees": found.trees}
    words = int(found.words.sum())
    if as_json:
        record: dict[str, Any] = {"n_sentences": len(sentences), "n_words": words, **measures}
        if per_sentence:
            record["per_sentence"] = {
                name.upper(): values.tolist() for name, values in found.per_sentence.items()
            }
        print_json(record)
        return
    rows = [[name, decimal(value)] for name, value in measures.items()]
    typer.echo(aligned([*rows, ["sentences", str(len(sentences))], ["words", str(words)]]))
    if per_sentence:
        names = [s.sent_id or f"sentence {i}" for i, s in enumerate(sentences, 1)]
        values = zip(names, *(column.tolist() for column in found.per_sentence.values()))
        each = [[name, *map(decimal, own)] for name, *own in values]
        typer.echo("\n" + aligned([["", "UAS", "LAS"], *each]))


def _read(path: Path, *, trees: bool = False) -> list[Sentence]:
    from didyma.data import conll

    with waiting(f"reading {path}"):
        sentences = conll.read(path, trees=trees)
    say(f"{path}: {len(sentences)} sentences, {sum(map(len, sentences))} words")
    return sentences


def _load(path: Path, device: neural.DeviceName) -> DependencyParser:
    from didyma.applications.parsing.parser import DependencyParser

    return DependencyParser.load(path).set_params(device=device.value)


def _check_words(path: Path, parsed: Sequence[Sentence], gold: Sequence[Sentence]) -> None:
    if len(parsed) != len(gold):
        raise DataError(
            f"expected the {len(gold)} sentences of the gold file, found {len(parsed)}", path=path
        )
    for own, other in zip(parsed, gold):
        if own.words != other.words:
            raise DataError(
                "expected the words of the gold file, which differ in this sentence",
                path=path,
                line=own.first_line,
            )


def _trees(sentences: Sequence[Sentence]) -> list[Any]:
    from didyma.data.conll import Field

    return [(s.heads if len(s) else [], s.column(Field.DEPREL)) for s in sentences]


def _ambiguities(
    parser: DependencyParser, sentences: Sequence[Sentence], temperature: float
) -> list[Ambiguity]:
    from didyma.applications.parsing.trees import Ambiguity

    found = []
    posteriors = parser.alternatives(sentences, temperature)
    for number, (sentence, posterior) in enumerate(zip(sentences, posteriors), 1):
        if posterior.support_size > 1:
            heads = posterior.structures[:, 1:]
            relations = parser.label([sentence] * len(heads), list(heads))
            name = sentence.sent_id or f"sentence {number}"
            found.append(Ambiguity(name, sentence.words, heads, relations, posterior.probabilities))
    return found


def _write_lines(found: Sequence[Ambiguity], path: Path) -> None:
    with replace_when_done(path) as file:
        for sentence in found:
            trees = [
                {"probability": share, "heads": heads, "relations": relations}
                for share, heads, relations in zip(
                    sentence.probabilities.tolist(), sentence.heads.tolist(), sentence.relations
                )
            ]
            record = {"sentence": sentence.name, "words": sentence.words, "trees": trees}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _draw(path: Path, found: Sequence[Ambiguity], most: int, title: str) -> None:
    from didyma.applications.parsing.trees import write

    with waiting("drawing"):
        write(found[:most], title, path)
    if len(found) > most:
        say(f"the first {most} of them were drawn (--most)")
