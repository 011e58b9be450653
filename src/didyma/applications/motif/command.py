"""`didyma motif fit/scan/eval`: learn a DNA motif, look for it, judge it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma import DataError, cli
from didyma.cli import options
from didyma.report import listed

if TYPE_CHECKING:
    from didyma.applications.motif.fasta import FastaRecord
    from didyma.applications.motif.finder import MotifFinder
    from didyma.learning.solution import Progress

app = cli.group(
    """Find the motif that some DNA sequences share and others lack.

    [bold]Learn, look, judge:[/bold]

    didyma motif fit bound.fa --negatives unbound.fa --length 11 --logo motif.svg

    didyma motif scan motif.didyma.safetensors genome.fa -o hits.tsv

    didyma motif eval motif.didyma.safetensors test.fa --negatives others.fa

    Sequences are FASTA files, plain or .gz. Small letters count as capitals; no
    site covers an N or another letter that is not A, C, G or T."""
)

FINDER = cli.ParametersOf(
    "didyma.applications.motif.finder.MotifFinder",
    {
        None: [
            cli.Option("length", ("--length", "-l")),
            "order",
            "both_strands",
            cli.Option("C", ("--C",)),
            cli.Option(
                "init",
                ("--random-start",),
                help="Begin at random sites instead of sampled ones.",
                sets="random",
            ),
            cli.Option("n_restarts", ("--restarts",)),
            cli.SEED,
            "solver",
            "ties",
            "tol",
        ]
    },
)
Model = Annotated[Path, options.argument("MODEL", "A model that didyma motif fit has saved.")]
Negatives = Annotated[Path, options.file("Sequences without the motif.")]


@app.command()
@cli.command
def fit(
    *,
    positives: Annotated[
        Path, options.argument("TRAIN", "FASTA file: sequences that have the motif.")
    ],
    negatives: Negatives,
    output: options.Output = Path("motif.didyma.safetensors"),
    background: Annotated[
        Path | None,
        options.file("More sequences that mostly lack the motif, such as intergenic ones."),
    ] = None,
    background_weight: Annotated[float, options.number("Weight of each of these.", min=0)] = 0.02,
    parameters: Annotated[dict[str, Any], FINDER],
    meme: Annotated[Path | None, options.file("Write the motif for MEME tools.")] = None,
    logo: Annotated[Path | None, options.file("Draw a sequence logo, .png, .svg or .pdf.")] = None,
    jobs: options.Jobs = None,
    checkpointing: cli.Checkpointing,
    as_json: options.Json = False,
) -> None:
    """Learn a motif from sequences that have it and sequences that lack it.

    Where it stands in a sequence need not be known. There are many local optima:
    give more --restarts for a better one. Ctrl-C keeps the best so far (exit code 130).
    If the process dies, the same command with --resume goes on where it was.

    [bold]Examples[/bold]

    didyma motif fit bound.fa --negatives unbound.fa --length 11

    didyma motif fit ars.fa --negatives other.fa --background intergenic.fa -l 17

    didyma motif fit peaks.fa --negatives flanks.fa --both-strands --logo motif.svg
    """
    for path in (output, meme, logo):
        cli.check_output(path, positives, negatives, background)
    from didyma import model
    from didyma.applications.motif.finder import MotifFinder
    from didyma.applications.motif.meme import save_logo, write
    from didyma.report.plots import check_picture

    if logo is not None:
        check_picture(logo)
    start = time.perf_counter()
    groups = [_read(positives, parameters["length"]), _read(negatives)]
    groups += [_read(background)] if background is not None else []
    sizes = [len(records) for records in groups]
    labels = [1] * sizes[0] + [-1] * sum(sizes[1:])
    weight = [1.0] * sum(sizes[:2]) + [background_weight] * sum(sizes[2:])
    finder, restarts = MotifFinder(**parameters), parameters["n_restarts"]
    sequences = [record.sequence for records in groups for record in records]
    with checkpointing.saving(output, sequences=sequences, labels=labels):
        with _reporting(finder, restarts) as callback:
            finder.callback = callback
            finder.fit(sequences, labels, weight)
        interrupted = len(finder.objectives_) < restarts
        if interrupted and finder.result_.n_iter == 0:
            cli.print_message("interrupted before there was anything to keep")
            raise typer.Exit(cli.exit_code())
        motif = finder.motif(Path(output).name.split(".")[0] or "motif")
        inputs = zip((positives, negatives, background), sizes)
        model.save(finder, output, summary={"sequences": {str(path): n for path, n in inputs}})
    if meme is not None:
        write([motif], meme, both_strands=finder.both_strands)
    if logo is not None:
        save_logo(motif, logo)
    error = _errors(finder, *groups[:2])
    summary = {
        "model": str(output),
        "consensus": motif.consensus,
        "consensus of the weights": finder.motif(source="weights").consensus,
        "bits": round(float(motif.information.sum()), 2),
        "objective": finder.result_.value,
        "objectives": finder.objectives_,
        "rounds": finder.n_rounds_,
        "training": error,
        "seconds": time.perf_counter() - start,
    }
    if as_json:
        cli.print_json(summary)
    else:
        runs = f"{len(finder.objectives_)} of {restarts} runs, objective {finder.result_.value:.5g}"
        lines = {
            "motif": f"{motif.consensus} ({summary['bits']} bits)",
            "training": f"error {error['error']:.2%}: {error['missed']} of {error['positives']} "
            f"missed, {error['false']} of {error['negatives']} false",
            "search": runs,
            "time": f"{summary['seconds']:.1f} s",
            "saved to": str(output),
        }
        typer.echo(listed(lines))
    cli.end_if_interrupted(interrupted, "motif")


@app.command()
def scan(
    model: Model,
    genome: Annotated[Path, options.argument("DATA", "FASTA file: sequences to look at.")],
    output: Annotated[
        Path | None,
        options.file("Table of sites; - is stdout.", "--output", "-o", default="stdout"),
    ] = None,
    threshold: Annotated[
        float, options.number("Sites above this score; 0 is as likely as not.")
    ] = 0.0,
    best: Annotated[
        bool, options.flag("--best", "Only the best site of each sequence, whatever it is.")
    ] = False,
) -> None:
    """List the sites of a motif: sequence, start, strand, score and bases, with tabs between.

    Starts count from 0 along the sequence as given, also on the strand "-", whose
    bases are shown reverse-complemented. Sequences are read one at a time.

    [bold]Examples[/bold]

    didyma motif scan motif.didyma.safetensors genome.fa.gz -o hits.tsv

    didyma motif scan motif.didyma.safetensors peaks.fa --best
    """
    from didyma.applications.motif.fasta import stream

    if not cli.is_stdout(output):
        cli.check_output(output, genome, model)
    finder, records = _load(model), stream(genome)
    first = next(records)  # before anything is written
    n_sequences = n_sites = 0
    with cli.waiting(f"scanning {genome}"), cli.written(output) as file:
        file.write("sequence\tstart\tstrand\tscore\tsite\n")
        for record in chain([first], records):
            n_sequences += 1
            hits = finder.scan(record.sequence, threshold, best=best)
            n_sites += len(hits)
            for hit in hits:
                row = (record.name, hit.start, hit.strand, f"{hit.score:.6g}", hit.bases)
                file.write("\t".join(map(str, row)) + "\n")
    cli.print_message(f"{n_sites} sites in {n_sequences} sequences")


@app.command("eval")
def evaluate(
    model: Model,
    positives: Annotated[
        Path, options.argument("DATA", "FASTA file: sequences that have the motif.")
    ],
    negatives: Negatives,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Tell how well a motif separates sequences that have it from those that lack it.

    A sequence is answered "has it" if its best site scores above 0. The ROC area
    is that of the best scores.

    [bold]Example[/bold]

    didyma motif eval motif.didyma.safetensors test.fa --negatives others.fa
    """
    finder = _load(model)
    errors = _errors(finder, _read(positives), _read(negatives))
    if as_json:
        cli.print_json({"model": str(model), **errors})
        return
    lines = {
        "error": f"{errors['error']:.2%}",
        "positives": f"{errors['positives']}, {errors['missed']} missed",
        "negatives": f"{errors['negatives']}, {errors['false']} answered wrongly",
        "ROC area": f"{errors['roc']:.4f}",
        "motif": finder.motif().consensus,
    }
    typer.echo(listed(lines))


def _read(path: Path, length: int = 0) -> list[FastaRecord]:
    """Records of a file, each of which must have room for a motif of this length."""
    from didyma.applications.motif.fasta import BASES, read

    with cli.waiting(f"reading {path}"):
        records = read(path)
    cli.print_message(f"{path}: {len(records)} sequences, {sum(map(len, records))} bases")
    for record in records:
        runs = re.findall(f"[{BASES}]+", record.sequence)
        if max(map(len, runs), default=0) < length:
            raise DataError(
                f"expected {length} known bases in a row, for the motif, in {record.name!r}",
                path=path,
                line=record.line,
            )
    return records


def _load(path: Path) -> MotifFinder:
    from didyma.applications.motif.finder import MotifFinder

    return MotifFinder.load(path)


def _errors(
    finder: MotifFinder, positives: list[FastaRecord], negatives: list[FastaRecord]
) -> dict[str, Any]:
    """Errors on sequences that have the motif and on others, and the ROC area of best scores."""
    import numpy as np

    scores = [
        finder.decision_function([record.sequence for record in records])
        for records in (positives, negatives)
    ]
    missed, false = int(np.sum(scores[0] <= 0)), int(np.sum(scores[1] > 0))
    higher = np.searchsorted(np.sort(scores[1]), scores[0], side="left")
    as_high = np.searchsorted(np.sort(scores[1]), scores[0], side="right")
    return {
        "error": (missed + false) / (len(positives) + len(negatives)),
        "positives": len(positives),
        "missed": missed,
        "negatives": len(negatives),
        "false": false,
        "roc": float(np.mean(higher + as_high) / 2 / len(negatives)),
    }


@contextmanager
def _reporting(finder: MotifFinder, restarts: int) -> Iterator[Callable[[Progress], None]]:
    """A callback that shows how runs go: a bar on a terminal, else a line for each run."""
    done = 0

    def line(progress: Progress) -> None:
        nonlocal done
        if len(finder.objectives_) > done:
            done = len(finder.objectives_)
            cli.print_message(f"run {done} of {restarts}: objective {finder.objectives_[-1]:.5g}")

    if (console := cli.terminal()) is None:
        yield line
        return
    with cli.progress_bars(console) as bars:
        task = bars.add_task("run 1", total=restarts, state="preparing")

        def show(progress: Progress) -> None:
            run = len(finder.objectives_) + 1
            state = (
                f"C={progress.C:<6.4g} round {progress.n_iter:<3} objective {progress.value:.5g}"
            )
            bars.update(task, description=f"run {run} of {restarts}", completed=run, state=state)

        yield show
