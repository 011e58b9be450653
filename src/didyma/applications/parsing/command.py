"""`didyma parse fit/predict/eval`: train a dependency parser, parse with it, judge trees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma import DataError, cli
from didyma.applications.networks import options as neural
from didyma.cli import options
from didyma.report import aligned, decimal

if TYPE_CHECKING:
    from didyma.applications.parsing.parser import DependencyParser
    from didyma.data.conll import Sentence

app = cli.group(
    """Find the head of each word of a sentence, and its relation to it.

    [bold]Train, parse, evaluate:[/bold]

    didyma parse fit train.conllu --dev dev.conllu -o parser.didyma.safetensors

    didyma parse predict parser.didyma.safetensors test.conllu -o parsed.conllu

    didyma parse eval parsed.conllu test.conllu

    Data are CoNLL-U or CoNLL-X files, plain or .gz. Words are given, and so are
    tags unless --tags none."""
)

SEVERAL_ROOTS = cli.Option(
    "single_root", ("--several-roots",), help="Several words may hang from the root.", sets=False
)
PARSER = neural.network_options(
    "didyma.applications.parsing.parser.DependencyParser",
    ["loss", "margin", "projective", SEVERAL_ROOTS, "tags", "characters"],
    ["word_size", "hidden", "layers", "mlp", "dropout"],
)
Model = Annotated[Path, options.argument("MODEL", "A model that didyma parse fit has saved.")]


@app.command()
@cli.command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", "Sentences with trees.")],
    output: options.Output = Path("parser.didyma.safetensors"),
    dev: Annotated[Path | None, options.file("Held-out trees, to choose the epoch by UAS.")] = None,
    parameters: Annotated[dict[str, Any], PARSER],
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Train on sentences with trees and save the parser.

    Ctrl-C ends training early and keeps the best epoch so far (exit code 130).

    [bold]Examples[/bold]

    didyma parse fit train.conllu --dev dev.conllu -o parser.didyma.safetensors

    didyma parse fit train.conllu --dev dev.conllu --loss svm --tags xpos --characters

    didyma parse fit train.conllu --projective --epochs 10 --hidden 64
    """
    neural.check_files(parameters, output, train, dev)
    sentences = _read(train, trees=True)
    held_out = None if dev is None else _read(dev, trees=True)

    from didyma.applications.parsing.parser import DependencyParser

    with neural.training("UAS") as callback:
        parser = DependencyParser(**parameters, callback=callback).fit(sentences, held_out)
    about = {"path": str(train), "sentences": len(sentences)}
    neural.save_trained(parser, output, about, dev, "UAS", "loss", as_json=as_json)


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, options.argument("DATA", "Sentences, CoNLL-U or CoNLL-X.")],
    output: Annotated[
        Path | None, options.file("Parsed sentences, as in DATA.", "--output", "-o")
    ] = None,
    alternatives: Annotated[
        Path | None,
        options.file("Trees of ambiguous sentences: drawn (.html, .svg) or as data (.jsonl)."),
    ] = None,
    temperature: Annotated[
        float, options.number("For --alternatives: a higher one gives more trees.")
    ] = 1.0,
    most: Annotated[int, options.number("Sentences to draw, the first of DATA.", min=1)] = 50,
    device: neural.Device = "auto",
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
    if not 0 < temperature < float("inf"):
        raise typer.BadParameter("expected a number above 0", param_hint="--temperature")
    kind = neural.check_shown(output, alternatives, "trees", model, data, option="--alternatives")
    parser = _load(model, device)
    sentences = _read(data)

    from didyma.data import conll

    if output is not None:
        with cli.waiting("parsing"):
            parsed = parser.predict(sentences)
        conll.write(parsed, output)
        cli.print_message(f"{len(parsed)} sentences written to {output}")
    if alternatives is not None:
        from didyma.applications.parsing.drawing import ambiguities, write, write_lines

        with cli.waiting("looking for alternatives"):
            ambiguous = ambiguities(parser, sentences, temperature)
        cli.print_message(f"{len(ambiguous)} of {len(sentences)} sentences have several trees")
        if kind == ".jsonl":
            write_lines(ambiguous, alternatives)
            return
        with cli.waiting("drawing"):
            write(ambiguous[:most], f"Ambiguous sentences of {data.name}", alternatives)
        if len(ambiguous) > most:
            cli.print_message(f"the first {most} of them were drawn (--most)")


@app.command("eval")
def evaluate(
    system: Annotated[
        Path, options.argument("MODEL|PREDICTED", "A saved parser, or parsed sentences.")
    ],
    gold: Annotated[Path, options.argument("DATA", "Sentences with their trees.")],
    per_sentence: Annotated[
        bool, options.flag("--per-sentence", "Show UAS and LAS of each sentence too.")
    ] = False,
    device: neural.Device = "auto",
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
    if system.is_file() and cli.is_model(system):
        parser = _load(system, device)
        with cli.waiting("parsing"):
            parsed = parser.predict(sentences)
    else:
        parsed = _read(system, trees=True)
        _check_words(system, parsed, sentences)

    from didyma.applications.parsing.measures import evaluate, labelled_tree

    scores = evaluate(list(map(labelled_tree, sentences)), list(map(labelled_tree, parsed)))
    measures = {"UAS": scores.uas, "LAS": scores.las, "CLAS": scores.clas, "trees": scores.trees}
    words = int(scores.words.sum())
    if as_json:
        record: dict[str, Any] = {"n_sentences": len(sentences), "n_words": words, **measures}
        if per_sentence:
            record["per_sentence"] = {
                name.upper(): values.tolist() for name, values in scores.per_sentence.items()
            }
        cli.print_json(record)
        return
    rows = [[name, decimal(value)] for name, value in measures.items()]
    typer.echo(aligned([*rows, ["sentences", str(len(sentences))], ["words", str(words)]]))
    if per_sentence:
        names = [s.sent_id or f"sentence {i}" for i, s in enumerate(sentences, 1)]
        values = zip(names, *(column.tolist() for column in scores.per_sentence.values()))
        each = [[name, *map(decimal, figures)] for name, *figures in values]
        typer.echo("\n" + aligned([["", "UAS", "LAS"], *each]))


def _read(path: Path, *, trees: bool = False) -> list[Sentence]:
    from didyma.data import conll

    with cli.waiting(f"reading {path}"):
        sentences = conll.read(path, trees=trees)
    cli.print_message(f"{path}: {len(sentences)} sentences, {sum(map(len, sentences))} words")
    return sentences


def _load(path: Path, device: str) -> DependencyParser:
    from didyma.applications.parsing.parser import DependencyParser

    return DependencyParser.load(path).set_params(device=device)


def _check_words(path: Path, parsed: Sequence[Sentence], gold: Sequence[Sentence]) -> None:
    if len(parsed) != len(gold):
        raise DataError(
            f"expected the {len(gold)} sentences of the gold file, found {len(parsed)}", path=path
        )
    for sentence, other in zip(parsed, gold):
        if sentence.words != other.words:
            raise DataError(
                "expected the words of the gold file, which differ in this sentence",
                path=path,
                line=sentence.first_line,
            )
