"""`didyma motif fit/scan/eval`: learn a DNA motif, look for it, judge it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import checkpointing, options
from didyma.cli.interruption import end_if_interrupted, exit_code
from didyma.cli.output import check_output, listed, print_json, say, terminal, waiting
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.applications.motif.fasta import FastaRecord
    from didyma.applications.motif.finder import MotifFinder
    from didyma.learning.solution import Progress

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="""Find the motif that some DNA sequences share and others lack.

    [bold]Learn, look, judge:[/bold]

    didyma motif fit bound.fa --negatives unbound.fa --length 11 --logo motif.svg

    didyma motif scan motif.didyma.safetensors genome.fa -o hits.tsv

    didyma motif eval motif.didyma.safetensors test.fa --negatives others.fa

    Sequences are FASTA files, plain or .gz. Small letters count as capitals; no
    site covers an N or another letter that is not A, C, G or T.""",
)

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma motif fit has saved.")
]
Negatives = Annotated[
    Path, typer.Option("--negatives", metavar="FILE", help="Sequences without the motif.")
]


@app.command()
def fit(
    context: typer.Context,
    positives: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="FASTA file: sequences that have the motif.")
    ],
    negatives: Negatives,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("motif.didyma.safetensors"),
    background: Annotated[
        Path | None,
        typer.Option(
            "--background",
            metavar="FILE",
            help="More sequences that mostly lack the motif, such as intergenic ones.",
        ),
    ] = None,
    background_weight: Annotated[
        float,
        typer.Option("--background-weight", min=0, help="Weight of each of these."),
    ] = 0.02,
    length: Annotated[int, typer.Option("--length", "-l", min=1, help="Bases of the motif.")] = 11,
    order: Annotated[
        int, typer.Option("--order", min=1, max=6, help="Length of the background's k-mers.")
    ] = 3,
    both_strands: Annotated[
        bool, typer.Option("--both-strands", help="Look at the other strand too.")
    ] = False,
    C: Annotated[float, typer.Option("--C", help="Weight of errors against the norm.")] = 100.0,
    random_start: Annotated[
        bool,
        typer.Option("--random-start", help="Begin at random sites instead of sampled ones."),
    ] = False,
    restarts: Annotated[
        int,
        typer.Option("--restarts", min=1, help="Runs; the one with the best objective is kept."),
    ] = 10,
    seed: options.Seed = 0,
    tol: Annotated[float, typer.Option("--tol", min=0, help="Relative gain to stop at.")] = 1e-3,
    meme: Annotated[
        Path | None, typer.Option("--meme", metavar="FILE", help="Write the motif for MEME tools.")
    ] = None,
    logo: Annotated[
        Path | None,
        typer.Option("--logo", metavar="FILE", help="Draw a sequence logo, .svg or .png."),
    ] = None,
    jobs: options.Jobs = None,
    checkpoint: checkpointing.Folder = None,
    checkpoint_every: checkpointing.Every = 300,
    resume: checkpointing.Resume = False,
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
        check_output(path, positives, negatives, background)
    from didyma import model
    from didyma.applications.motif.finder import MotifFinder

    start = time.perf_counter()
    groups = [_read(positives, length), _read(negatives)]
    groups += [_read(background)] if background is not None else []
    sizes = [len(group) for group in groups]
    labels = [1] * sizes[0] + [-1] * sum(sizes[1:])
    weight = [1.0] * sum(sizes[:2]) + [background_weight] * sum(sizes[2:])
    finder = MotifFinder(
        *(length, order, both_strands, C),
        init="random" if random_start else "sample",
        tol=tol,
        n_restarts=restarts,
        random_state=seed,
    )
    sequences = [record.sequence for group in groups for record in group]
    with checkpointing.surviving(context, output, sequences=sequences, labels=labels):
        with _reporting(finder, restarts) as callback:
            finder.callback = callback
            finder.fit(sequences, labels, weight)
        interrupted = len(finder.objectives_) < restarts
        if interrupted and finder.result_.n_iter == 0:
            say("interrupted before there was anything to keep")
            raise typer.Exit(exit_code())
        motif = finder.motif(Path(output).name.split(".")[0] or "motif")
        inputs = zip((positives, negatives, background), sizes)
        model.save(finder, output, summary={"sequences": {str(path): n for path, n in inputs}})
    if meme is not None:
        from didyma.applications.motif.meme import write

        write([motif], meme, both_strands=both_strands)
    if logo is not None:
        from didyma.applications.motif.logo import save_logo

        save_logo(motif, logo)
    error = _judge(finder, *groups[:2])
    found = {
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
        print_json(found)
    else:
        runs = f"{len(finder.objectives_)} of {restarts} runs, objective {finder.result_.value:.5g}"
        lines = {
            "motif": f"{motif.consensus} ({found['bits']} bits)",
            "training": _sentence(error),
            "search": runs,
            "time": f"{found['seconds']:.1f} s",
            "saved to": str(output),
        }
        typer.echo(listed(lines))
    end_if_interrupted(interrupted, "motif")


@app.command()
def scan(
    model: Model,
    genome: Annotated[
        Path, typer.Argument(metavar="DATA", help="FASTA file: sequences to look at.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Table of sites.", show_default="-"),
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", help="Sites above this score; 0 is as likely as not.")
    ] = 0.0,
    best: Annotated[
        bool, typer.Option("--best", help="Only the best site of each sequence, whatever it is.")
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
    from didyma.files import replace_when_done

    check_output(output, genome, model)
    finder = _load(model)
    n_sequences = n_sites = 0
    target: Any = nullcontext(sys.stdout) if output is None else replace_when_done(output)
    with waiting(f"scanning {genome}"), target as file:
        file.write("sequence\tstart\tstrand\tscore\tsite\n")
        for record in stream(genome):
            n_sequences += 1
            for hit in _hits(finder, record, threshold, best):
                n_sites += 1
                row = (record.name, hit.start, hit.strand, f"{hit.score:.6g}", hit.bases)
                file.write("\t".join(map(str, row)) + "\n")
    say(f"{n_sites} sites in {n_sequences} sequences")


@app.command("eval")
def evaluate(
    model: Model,
    positives: Annotated[
        Path, typer.Argument(metavar="DATA", help="FASTA file: sequences that have the motif.")
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
    found = _judge(finder, _read(positives), _read(negatives))
    if as_json:
        print_json({"model": str(model), **found})
        return
    lines = {
        "error": f"{found['error']:.2%}",
        "positives": f"{found['positives']}, {found['missed']} missed",
        "negatives": f"{found['negatives']}, {found['false']} answered wrongly",
        "ROC area": f"{found['roc']:.4f}",
        "motif": finder.motif().consensus,
    }
    typer.echo(listed(lines))


def _read(path: Path, length: int | None = None) -> list[FastaRecord]:
    """Records of a file, each of which must have room for a motif if ``length`` is given."""
    from didyma.applications.motif.fasta import BASES, read

    with waiting(f"reading {path}"):
        records = read(path)
    say(f"{path}: {len(records)} sequences, {sum(map(len, records))} bases")
    for record in records if length is not None else ():
        runs = re.findall(f"[{BASES}]+", record.sequence)
        if max(map(len, runs), default=0) < (length or 0):
            raise DataError(
                f"expected {length} known bases in a row, for the motif, in {record.name!r}",
                path=path,
                line=record.line,
            )
    return records


def _load(path: Path) -> MotifFinder:
    from didyma.applications.motif.finder import MotifFinder

    return MotifFinder.load(path)


def _hits(finder: MotifFinder, record: FastaRecord, threshold: float, best: bool) -> list[Any]:
    if not best:
        return finder.scan(record.sequence, threshold)
    (site,) = finder.sites([record.sequence])
    if site is None:
        return []
    piece = record.sequence[site.start : site.start + finder.length + finder.order - 1]
    (hit,) = (
        hit
        for hit in finder.scan(piece, float("-inf"))
        if hit.start == 0 and hit.strand == site.strand
    )
    return [hit._replace(start=site.start)]


def _judge(
    finder: MotifFinder, positives: list[FastaRecord], negatives: list[FastaRecord]
) -> dict[str, Any]:
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


def _sentence(found: dict[str, Any]) -> str:
    return (
        f"error {found['error']:.2%}: {found['missed']} of {found['positives']} missed, "
        f"{found['false']} of {found['negatives']} false"
    )


@contextmanager
def _reporting(finder: MotifFinder, restarts: int) -> Iterator[Callable[[Progress], None]]:
    """A callback that shows how runs go: a bar on a terminal, else a line for each run."""
    console = terminal()
    done = 0

    def state(progress: Any) -> str:
        return f"C={progress.C:<6.4g} round {progress.n_iter:<3} objective {progress.value:.5g}"

    if console is None:

        def tell(progress: Any) -> None:
            nonlocal done
            if len(finder.objectives_) > done:
                done = len(finder.objectives_)
                say(f"run {done} of {restarts}: objective {finder.objectives_[-1]:.5g}")

        yield tell
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        *(TextColumn("run {task.completed:.0f} of {task.total:.0f}"), BarColumn(20)),
        *(TextColumn("{task.fields[state]}"), TimeElapsedColumn()),
    )
    with Progress(*columns, console=console) as bars:
        task = bars.add_task("", total=restarts, state="preparing (the very first run compiles)")

        def show(progress: Any) -> None:
            bars.update(task, completed=len(finder.objectives_) + 1, state=state(progress))

        yield show
