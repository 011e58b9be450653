"""Equal training gives equal files, whatever the clock and the hashes of texts in a process say.

But for the date of writing, which SOURCE_DATE_EPOCH sets; the id of a version does not need it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import didyma
from didyma.applications.coreference.mentions import FEATURES
from didyma.applications.coreference.task import MentionPairs
from didyma.model import CLASSES
from tests.learning.tasks import Parts, Whole, examples_of_parts, examples_of_wholes
from tests.model.test_codec import FITTED

ROOT = Path(__file__).parents[2]


def resolver() -> Any:
    random = np.random.default_rng(0)
    pairs = [MentionPairs(4, random.normal(size=(6, len(FEATURES)))) for _ in range(3)]
    return didyma.CoreferenceResolver(10.0).fit_pairs(pairs, [[0, 0, 1, 1]] * 3)


def finder() -> Any:
    strings = ["ACGATTACA", "GGGATTACC", "ACACACACA", "CCCCGGGGA"]
    return didyma.MotifFinder(4, 0, n_restarts=1).fit(strings, [1, 1, -1, -1])


# Where sizes are enough for other tests, these are trained.
TRAINED: dict[str, Callable[[], Any]] = FITTED | {
    "CoreferenceResolver": resolver,
    "MotifFinder": finder,
    "StructuredSVM": lambda: didyma.StructuredSVM(Whole()).fit(*examples_of_wholes(10)),
    "StructuredPerceptron": lambda: didyma.StructuredPerceptron(Whole()).fit(
        *examples_of_wholes(10)
    ),
    "LatentStructuredSVM": lambda: didyma.LatentStructuredSVM(Parts()).fit(*examples_of_parts(10)),
    "LatentStructuredPerceptron": lambda: didyma.LatentStructuredPerceptron(Parts()).fit(
        *examples_of_parts(10)
    ),
}

TEXTS = "query\tpassage\tlabel\n" + "".join(
    f"who rings {n % 5} ?\t{text}\t{label}\n"
    for n in range(30)
    for text, label in ((f"They ring {n % 5} .", 1), (f"It is late {n} .", 0), ("A dog .", 0))
)
ROWS = "".join(f"{k % 2} qid:{k // 4} 1:{k % 3} 2:{k % 5}\n" for k in range(40))
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "fit": (ROWS, ["fit", "DATA", "--dev", "DATA", "--C", "1,10"]),
    "rerank": (TEXTS, ["rerank", "fit", "DATA", "--quick"]),
    "passage": (
        TEXTS.replace("query\tpassage", "question\tsentence"),
        ["passage", "fit", "DATA", "--dev", "DATA", "--epochs", "1"],
    ),
}


def write_all(folder: Path) -> None:
    """A file of every class and of some commands."""
    from typer.testing import CliRunner

    from didyma.cli import app

    warnings.simplefilter("ignore")
    for name, train in TRAINED.items():
        didyma.save(train(), folder / f"{name}.safetensors")
    for name, (text, arguments) in COMMANDS.items():
        (folder / f"{name}.txt").write_text(text)
        os.chdir(folder)  # a summary has the path that was given
        given = [f"{name}.txt" if word == "DATA" else word for word in arguments]
        found = CliRunner().invoke(app, [*given, "-o", f"didyma-{name}.safetensors"])
        assert found.exit_code == 0, found.output


def test_equal_training_gives_equal_files(tmp_path: Path) -> None:
    assert set(TRAINED) == set(CLASSES)
    files = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "0"}
        command = [sys.executable, "-m", __name__, str(folder)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        files.append({path.name: path.read_bytes() for path in folder.glob("*.safetensors")})
    first, second = files
    assert len(first) == len(TRAINED) + len(COMMANDS)
    assert [name for name in first if first[name] != second[name]] == []


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
