"""The command line: one thin command per verb.

Exit codes: 0 for success, also when a reader such as ``head`` closes the pipe; 1 for data or files
that cannot be used, with one line on stderr; 2 for a wrong call; 3 for a model that is not better,
where that was asked (``--if-better``); 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from didyma import __version__
from didyma.cli.output import exit_code, explain, listen, print_message, warnings_as_lines
from didyma.errors import DidymaError
from didyma.files import naming

# Scikit-learn and NumPy report input that they cannot use as ValueError.
MISTAKES = (DidymaError, OSError, MemoryError, ValueError)


# Where each command is, and what `didyma --help` says of it: a module is imported when it is used.
COMMANDS = {
    "fit": ("cli.fit.fit", "Train a ranker and save it."),
    "predict": (
        "cli.predict.predict",
        "Score each row of DATA: one number a line, in the order of the rows.",
    ),
    "rank": ("cli.predict.rank", "Rank the rows of each query of DATA and write a TREC run."),
    "eval": (
        "cli.evaluate.evaluate",
        "Evaluate a run by judgements, or a model by judged results.",
    ),
    "compare": (
        "cli.evaluate.compare",
        "Compare runs, or models, with a baseline: means, wins / losses / ties, p-values.",
    ),
    "convert": (
        "cli.convert.convert",
        "Convert judged results, by the extensions of the files.",
    ),
    "inspect": (
        "cli.inspect.inspect",
        "Show what a model has learned, or what a data file holds.",
    ),
    "export": (
        "cli.export.export",
        "Write a model for another engine: ONNX, a search engine, JavaScript, trees.",
    ),
    "demo": (
        "applications.demo.command.demo",
        "Learn to find passages of Python's own language reference, and write a report.",
    ),
    "index": ("cli.index.index", "Index texts, so that they can be searched."),
    "ask": (
        "cli.ask.ask",
        "Find the passages that answer a query, in an index or in any texts.",
    ),
    "serve": (
        "cli.serve.serve",
        "Answer the rerank requests of Cohere's, Jina's, vLLM's and TEI's clients, and searches.",
    ),
    "judge": (
        "cli.judge.app",
        "Keep judgements of many judges in a folder, and learn from them.",
    ),
    "clicks": (
        "applications.clicks.command.clicks",
        "Turn a log of clicks into judgements to train on.",
    ),
    "coref": (
        "applications.coreference.command.app",
        "Find which mentions of a text refer to the same thing.",
    ),
    "motif": (
        "applications.motif.command.app",
        "Find the motif that some DNA sequences share and others lack.",
    ),
    "rerank": (
        "cli.rerank.app",
        "Rank passages for queries, learned from texts and judgements.",
    ),
    "nbest": (
        "cli.nbest.app",
        "Choose better among the candidates that a decoder proposes.",
    ),
    "tag": (
        "applications.tagging.command.app",
        "Tag words by a second-order hidden Markov model.",
    ),
    "parse": (
        "applications.parsing.command.app",
        "Find the head of each word of a sentence, and its relation to it.",
    ),
    "nli": (
        "applications.alignment.command.app",
        "Tell whether a premise entails a hypothesis, contradicts it, or neither.",
    ),
    "passage": (
        "applications.passages.command.app",
        "Rank passages by how well they answer a question, from their words.",
    ),
}


class Commands(TyperGroup):
    """The commands, each of which ends a user's mistake with one line instead of a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].rpartition(".")
        target = getattr(import_module(f"didyma.{module}"), attribute)
        if not isinstance(target, typer.Typer):
            single = typer.Typer(rich_markup_mode="rich", add_completion=False)
            single.command(cmd_name)(target)
            target = single
        command = get_command(target)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List them, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
            with naming("stdout"):
                sys.stdout.flush()
            return result
        except BrokenPipeError:
            # What is still buffered must not fail again while the interpreter shuts down.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            print_message("interrupted")
            raise typer.Exit(exit_code()) from None
        except MISTAKES as error:
            if ctx.params["debug"]:
                raise
            print_message(f"error: {explain(error)}")
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain, as rich takes longer to import than all the rest
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

    Train, evaluate, rank:

    didyma fit train.txt --dev dev.txt --C 1,10,100 -o model.didyma.safetensors

    didyma eval model.didyma.safetensors test.txt --measures "AP, nDCG@10"

    didyma rank model.didyma.safetensors test.txt -o run.txt

    Data are LETOR / svmlight files, or by their extension CSV, TSV, Parquet and
    NumPy (.npz); all but .npz may be compressed (.gz). Each command shows an
    example: didyma fit --help.

    Exit codes: 0 success, 1 data or files that cannot be used, 2 wrong call,
    3 not better (--if-better),
    130 Ctrl-C, 143 SIGTERM.
    """


def main() -> None:
    """Run the command line."""
    listen()
    app()
