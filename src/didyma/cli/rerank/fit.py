"""`didyma rerank fit`: train a reranker, and say whether it is to replace the live one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import inputs, options, rerankers
from didyma.cli.checkpointing import Checkpointing
from didyma.cli.evaluate import names_of
from didyma.cli.groups import command
from didyma.cli.output import (
    check_output,
    check_report,
    end_if_interrupted,
    print_json,
    print_message,
    print_table,
)
from didyma.cli.progress import searching
from didyma.cli.rerank.evaluate import MEASURES, NOT_BETTER, compared
from didyma.cli.rerank.rank import meaning
from didyma.cli.rerankers import Embedding
from didyma.errors import DataError
from didyma.report.table import listed
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.report.model_comparison import ModelComparison
    from didyma.text.text_reranker import TextReranker

PRECISION = 0.9  # that the threshold of the summary is for
SHARE = 0.2  # of queries that are held out

Against = Annotated[
    Path | None,
    options.file(
        "The live model: the new one is compared with it on queries that neither has seen. A fifth "
        "of the queries that the live one has not seen is held out for that, always the same "
        "ones, or all of --test."
    ),
]


@command
def fit(
    *,
    files: inputs.TrainTextFiles,
    output: options.Output = Path("reranker.didyma.safetensors"),
    parameters: Annotated[dict[str, Any], rerankers.PARAMETERS],
    embedding: Embedding,
    increasing: Annotated[
        str, options.text("FEATURES", "Signals with which scores must not fall.")
    ] = "",
    decreasing: Annotated[
        str, options.text("FEATURES", "Signals with which scores must not rise.")
    ] = "",
    html: options.Html = None,
    against: Against = None,
    test: Annotated[
        Path | None, options.file("Judged queries to compare on, with --against.")
    ] = None,
    if_better: Annotated[
        bool,
        options.flag(
            "--if-better", "With --against: exit with code 3 unless the new one is better."
        ),
    ] = False,
    jobs: options.Jobs = None,
    checkpointing: Checkpointing,
    as_json: options.Json = False,
) -> None:
    """Train a reranker on judged passages and save it.

    A passage is a text, or has further fields: texts (title, tags), signals
    (any numbers: clicks, age, scores of other searches; categories) and a vector.
    A table says what each field was read as; --fields, --signals and --ignore say
    otherwise. Each of several runs (--run, given again) is a signal.

    Features, scaling and C are chosen by cross-validation over queries. What
    was learned is kept only if held-out queries rank better than by the best
    order that needs no training (each first stage, each signal, BM25, the
    encoder, the sum of z-scores, reciprocal rank fusion); else the model keeps
    that order and says so. Without any labels nothing is learned: the model is the
    sum of z-scores of first stages, BM25 and encoder. Ctrl-C ends the search and
    keeps the best so far (exit code 130). If the process dies, the same command
    with --resume goes on with what is yet to be tried and the time that is left.

    [bold]Examples[/bold]

    didyma rerank fit train.tsv -o reranker.didyma.safetensors

    didyma rerank fit scifact/ --part train --html report.html

    didyma rerank fit --queries topics.tsv --passages docs.tsv --qrels qrels.txt --run bm25.run

    didyma rerank fit --queries topics.tsv --qrels qrels.txt --first-stage docs.index

    didyma rerank fit scifact/ --part train --run bm25.run --run dense.run

    didyma rerank fit shop.jsonl --fields title,tags --signals brand --increasing clicks

    didyma rerank fit scored.jsonl --names label=score --quick

    didyma rerank fit judgements/ --against live.safetensors --if-better -o new.safetensors
    """
    if against is None and (if_better or test is not None):
        raise typer.BadParameter("needs --against", param_hint="--if-better / --test")
    rerankers.check_parameters(parameters, embedding)
    files.check()
    check_output(output, *files.paths, against, test)
    check_report(html, *files.paths, output)
    live = None if against is None else rerankers.load(against, embedding)
    began = time.perf_counter()
    parameters |= embedding.parameters
    parameters["increasing"] = inputs.names_in(increasing)
    parameters["decreasing"] = inputs.names_in(decreasing)
    lists = files.read(parameters["language"], encoder=embedding.encoder)
    if lists.labels is None:
        wanted = {name: parameters[name] for name in ("measure", "increasing", "decreasing")}
        for name, value in {**wanted, "html": html}.items():
            if value:
                raise typer.BadParameter(
                    "needs labels, of which there are none", param_hint=f"--{name}"
                )
        print_message(f"{files.path}: without labels nothing is learned (--names tells their name)")
    promotion = Promotion.of(live, lists, test, parameters["language"])
    lists = promotion.train

    from didyma import model as model_file
    from didyma.report.model_comparison import RerankerComparison
    from didyma.text.text_reranker import TextReranker

    with checkpointing.saving(output, texts=lists):
        with searching() as callbacks:
            reranker = TextReranker(**parameters, **callbacks).fit(lists)
        counts = {"queries": len(lists.groups), "passages": len(lists)}
        train = {"file": str(files.path), **counts, "first_stage": lists.scores is not None}
        summary = {"train": train, "verdict": str(reranker.gate_)}
        model_file.save(reranker, output, summary=summary, parent=live)
    promoted = promotion.compare(reranker, parameters["measure"], against, output)
    judged = lists.labels is not None
    compared = RerankerComparison.of(reranker, lists, reranker.out_of_fold_) if judged else None
    if html is not None and compared is not None:
        compared.write(reranker, lists, html)
    seconds = time.perf_counter() - began
    fields = reranker.schema_.table()
    if as_json:
        print_json(
            {
                "model": str(output),
                "bytes": output.stat().st_size,
                "train": train,
                "schema": [dict(zip(("field", "role", "because"), row)) for row in fields],
                "gate": reranker.gate_.to_dict(),
                "trials": reranker.trials_,
                "held_out": None if compared is None else compared.table.to_dict(),
                "calibration": {
                    **reranker.calibration_.to_dict(),
                    "compared": reranker.calibration_report(),
                }
                if judged
                else None,
                "version": model_file.version_of(output).to_dict(),
                "against": None if promoted is None else promoted.to_dict(),
                "interrupted": reranker.interrupted_,
                "wall_seconds": seconds,
            }
        )
    else:
        if compared is not None:
            print_table(compared.table)
        typer.echo(f"\n{reranker.gate_}\n")
        if compared is not None:
            typer.echo(listed(_opponents(reranker)) + "\n")
        typer.echo(listed(_summary(reranker, output, seconds, judged=judged)))
        if promoted is not None:
            typer.echo(f"\n{promoted.text()}")
    end_if_interrupted(reranker.interrupted_, "reranker")
    if if_better and promoted is not None and not promoted.better:
        raise typer.Exit(NOT_BETTER)


def _opponents(reranker: TextReranker) -> dict[str, str]:
    """Orders that need no training, the best first, with their means on held-out queries."""
    orders = sorted(reranker.gate_.opponents, key=lambda order: -order.value)
    return {order.name: f"{reranker.gate_.measure} {decimal(order.value)}" for order in orders}


def _summary(
    reranker: TextReranker, output: Path, seconds: float, *, judged: bool
) -> dict[str, str]:
    saved = f"{output}, {output.stat().st_size / 1e6:.2f} MB, after {seconds:.1f} s"
    if not judged:
        return {"ranks by": reranker.gate_.kept, "saved to": saved}
    calibration = reranker.calibration_
    errors = calibration.held_out[-1:]
    brier = f", Brier score {decimal(errors[0].brier)}" if errors else ""
    try:
        threshold = meaning(calibration.threshold(PRECISION))
    except DataError as error:
        threshold = error.problem
    return {
        "ranks by": reranker.gate_.kept,
        "calibration": f"{calibration.kind}, expected error {decimal(calibration.error)}{brier}",
        "threshold": threshold,
        "saved to": saved,
    }


@dataclass(frozen=True, eq=False)
class Promotion:
    """A live model, lists to train its successor on, and others to compare the two on."""

    live: Any
    train: Lists
    test: Lists | None

    @classmethod
    def of(cls, live: Any, lists: Lists, test: Path | None, language: str | None) -> Promotion:
        """Hold queries out, unless there is nothing to compare with, or there are others."""
        if live is None:
            return cls(None, lists, None)
        if test is not None:
            tested = inputs.JudgedTextFiles(test).read(language, live.schema_)
            return cls(live, lists, tested)
        return cls(live, *held_out(lists, live))

    def compare(
        self, new: Any, measure: str | None, old: Path | None, output: Path
    ) -> ModelComparison | None:
        """The comparison of the new model, by its measure first; None without a live one."""
        if self.test is None or old is None:
            return None
        first = [] if measure is None else [measure]
        measures = ", ".join(dict.fromkeys([*first, *MEASURES.split(", ")]))
        names = list(names_of([old, output]).values())
        return compared(self.live, new, self.test, measures, (names[0], names[1]))


def held_out(lists: Lists, live: Any, share: float = SHARE) -> tuple[Lists, Lists]:
    """Lists to train on, and those held out: by a hash of the query, so that they stay the same."""
    import numpy as np

    from didyma.report.model_comparison import unseen
    from didyma.text.training_data import hashes

    chosen = unseen(lists, live) & (hashes(lists.query_texts) < share * 2**32)
    if chosen.sum() < 2 or (~chosen).sum() < 2:
        new = int(unseen(lists, live).sum())
        raise DataError(
            f"expected queries to hold out, found {int(chosen.sum())} among {new} that the live "
            "model has not seen: give others by --test",
            field="against",
        )
    return lists.select_lists(np.flatnonzero(~chosen)), lists.select_lists(np.flatnonzero(chosen))
