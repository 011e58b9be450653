"""Commands, as targets: whatever they are given, they end with a result or with one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from didyma.cli import app
from didyma.errors import DataError
from tests.fuzz.models import seed
from tests.fuzz.mutators import Parts
from tests.fuzz.readers import READERS
from tests.fuzz.target import Fault, Target

__all__ = ["COMMANDS"]

SEEDS = {target.name: target.seed for target in READERS}
# What is read is {}, what is written @.
LINES: dict[str, Callable[[Path], Parts]] = {
    "inspect {}/data.txt": SEEDS["rows-data.txt"],
    "convert {}/data.txt @/out.csv": SEEDS["rows-data.txt"],
    "fit {}/data.txt -o @/model --max-iter 2": SEEDS["rows-data.txt"],
    "fit {}/data.npz -o @/model --max-iter 2": SEEDS["rows-sparse-data.npz"],
    "fit {}/data.csv -o @/model --scale query-minmax --max-iter 2": SEEDS["rows-data.csv"],
    "fit {}/data.lists -o @/model --scale standard --max-iter 2": SEEDS["rows-data.lists"],
    "convert {}/data.parquet @/out.lists": SEEDS["rows-data.parquet"],
    "inspect {}/model.safetensors": seed("SVMRanker"),
    "eval {}/run {}/qrels": lambda folder: SEEDS["run"](folder) | SEEDS["qrels"](folder),
    "tag fit {}/words.conllu -o @/model --tags upos": SEEDS["words.conllu"],
    "coref eval {}/tale.conll {}/tale.conll": SEEDS["tale.conll"],
    "nbest oracle {}/lists.jsonl": SEEDS["lists.jsonl"],
    "rerank fit {}/texts.jsonl -o @/model --quick": SEEDS["texts.jsonl"],
    "index {}/corpus.jsonl -o @/index": SEEDS["corpus.jsonl"],
    "clicks {}/clicks.csv -o @/judged.qrels --min-impressions 1": SEEDS["clicks.csv"],
    "motif fit {}/dna.fa --negatives {}/dna.fa -o @/model -l 2 --restarts 1": SEEDS["dna.fa"],
}


def run(line: str) -> Callable[[Any, Path], None]:
    def use(place: Path, folder: Path) -> None:
        words = line.replace("{}", str(place)).replace("@", str(folder)).split()
        found = CliRunner().invoke(app, words)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        if found.exit_code not in (0, 1) or "Traceback" in found.output:
            raise Fault(f"exit code {found.exit_code}: {found.output}")
        if found.exit_code == 0:
            return
        last = found.stderr.splitlines()[-1]
        if not last.startswith("error: "):
            raise Fault(f"no line that says why: {found.output}")
        if left := [path.name for path in folder.iterdir()]:
            raise Fault(f"refused, and yet it left {left}")
        raise DataError(last, path=place)

    return use


COMMANDS = [
    Target(
        f"didyma-{line.partition('{')[0].strip().replace(' ', '-')}-{number}",
        own,
        lambda place: place,
        run(line),
    )
    for number, (line, own) in enumerate(LINES.items())
]
