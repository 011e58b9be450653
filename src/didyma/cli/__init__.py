"""The command line: one thin command per verb.

Exit codes: 0 for success, also when a reader such as ``head`` closes the pipe; 1 for data or files
that cannot be used, with one line on stderr; 2 for a wrong call; 130 after
Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from didyma import __version__
from didyma.cli import (
    compare,
    convert,
    coref,
    demo,
    evaluate,
    export,
    fit,
    inspect,
    motif,
    nbest,
    nli,
    parse,
    passage,
    predict,
    rank,
    tag,
)
from didyma.cli.interruption import exit_code, listen
from didyma.cli.output import explain, say, warnings_as_lines
from didyma.errors import DidymaError

__all__ = ["app", "main"]

# Scikit-learn and NumPy report input that they cannot use as ValueError.
MISTAKES = (DidymaError, OSError, MemoryError, ValueError)


class Commands(TyperGroup):
    """The commands, each of which ends a user's mistake with one line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # What is still buffered must not fail again while the interpreter shuts down.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(exit_code()) from None
        except MISTAKES as error:
            if ctx.params["debug"]:
                raise
            say(f"error: {explain(error)}")
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"didyma {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Structured prediction: rank, rerank, tag, parse, align, cluster, find motifs.

    [bold]Train, evaluate, rank:[/bold]

    didyma fit train.txt --dev dev.txt --C 1,10,100 -o model.didyma.safetensors

    didyma eval model.didyma.safetensors test.txt --measures "AP, nDCG@10"

    didyma rank model.didyma.safetensors test.txt -o run.txt

    Data are LETOR / svmlight files, or by their extension CSV, TSV, Parquet and
    NumPy (.npz); all but .npz may be compressed (.gz). Each command shows an
    example: didyma fit --help.

    Exit codes: 0 success, 1 data or files that cannot be used, 2 wrong call,
    130 Ctrl-C, 143 SIGTERM.
    """


app.command()(fit.fit)
app.command()(predict.predict)
app.command()(rank.rank)
app.command("eval")(evaluate.evaluate)
app.command()(compare.compare)
app.command()(convert.convert)
app.command()(inspect.inspect)
app.command()(export.export)
app.command()(demo.demo)
app.add_typer(coref.app, name="coref")
app.add_typer(motif.app, name="motif")
app.add_typer(nbest.app, name="nbest")
app.add_typer(tag.app, name="tag")
app.add_typer(parse.app, name="parse")
app.add_typer(nli.app, name="nli")
app.add_typer(passage.app, name="passage")


def main() -> None:
    """Run the command line."""
    listen()
    app()
