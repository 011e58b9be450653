"""What commands read of texts: queries with their passages, or passages alone."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli.output import say, waiting
from didyma.errors import DataError, placed

if TYPE_CHECKING:
    from didyma.data.lists import Lists

__all__ = [
    "Depth",
    "FirstStage",
    "Names",
    "Part",
    "Passages",
    "Qrels",
    "Queries",
    "RunFile",
    "TextFiles",
    "Texts",
    "TrainTexts",
    "lines_of",
    "parse_names",
    "read_passages",
]

FILES = "Texts"

KINDS = (
    "JSON lines, a table (.tsv, .csv, .parquet) with query, passage and label, lines of "
    "question, sentence and label, or a folder as of BEIR, MS MARCO or TREC QA."
)

Texts = Annotated[Path | None, typer.Argument(metavar="DATA", help=KINDS, show_default=False)]
TrainTexts = Annotated[Path | None, typer.Argument(metavar="TRAIN", help=KINDS, show_default=False)]
Part = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="NAME",
        rich_help_panel=FILES,
        help="Part of a folder that has several, such as train or test.",
    ),
]
Queries = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        metavar="FILE",
        rich_help_panel=FILES,
        help="Instead of DATA: id and text of each query (.tsv, .jsonl).",
    ),
]
Passages = Annotated[
    Path | None,
    typer.Option(
        "--passages",
        metavar="FILE",
        rich_help_panel=FILES,
        help="Id and text of each passage (.tsv, .jsonl).",
    ),
]
Qrels = Annotated[
    Path | None,
    typer.Option("--qrels", metavar="FILE", rich_help_panel=FILES, help="TREC judgements."),
]
RunFile = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FILE",
        rich_help_panel=FILES,
        help="TREC run of the first stage: the candidates of each query. Without one, BM25 finds "
        "them among all passages.",
    ),
]
FirstStage = Annotated[
    Path | None,
    typer.Option(
        "--first-stage",
        metavar="INDEX",
        rich_help_panel=FILES,
        help="An index (didyma index) that has the passages and finds the candidates of each "
        "query: DATA is then a folder of queries and judgements, or --queries and --qrels.",
    ),
]
Depth = Annotated[
    int,
    typer.Option(
        "--depth", min=1, metavar="K", rich_help_panel=FILES, help="Candidates that BM25 finds."
    ),
]
Names = Annotated[
    str,
    typer.Option(
        "--names",
        metavar="ROLE=NAME,…",
        rich_help_panel=FILES,
        help="What columns or fields are called: roles are query, passage, label, score, qid, "
        "docid. A teacher's scores are labels: label=score.",
    ),
]


class TextFiles:
    """The options above, and what they lead to."""

    def __init__(
        self,
        data: Path | None,
        part: str | None,
        queries: Path | None,
        passages: Path | None,
        qrels: Path | None,
        run: Path | None,
        depth: int,
        names: str,
        first_stage: Path | None = None,
    ) -> None:
        if data is None and (queries is None or (passages is None and first_stage is None)):
            raise typer.BadParameter("give it, or --queries and --passages", param_hint="DATA")
        if first_stage is not None and not (passages is run is None):
            raise typer.BadParameter(
                "has passages and candidates: leave out --passages and --run",
                param_hint="--first-stage",
            )
        if data is not None and not (queries is passages is qrels is None):
            raise typer.BadParameter("give DATA or these", param_hint="--queries / --passages")
        from didyma.data.column_roles import Roles

        self.data, self.part, self.depth = data, part, depth
        self.names = parse_names(names, Roles.__dataclass_fields__)
        self.queries, self.passages, self.qrels, self.run = queries, passages, qrels, run
        self.first_stage = first_stage

    @property
    def path(self) -> Path:
        """What messages name."""
        path = self.data or self.passages or self.queries
        assert path is not None
        return path

    @property
    def paths(self) -> list[Path]:
        """All files, none of which may be written to."""
        given = (self.data, self.queries, self.passages, self.qrels, self.run)
        return [path for path in given if path is not None and not path.is_dir()]

    def read(self, language: str | None = "auto") -> Lists:
        """The lists of texts, with candidates by BM25 where there are none."""
        from didyma.data.texts import reader as texts

        with waiting(f"reading {self.path}"):
            given: dict[str, Any] = {"run": self.run, "depth": self.depth}
            given["first_stage"] = self._first_stage(language)
            if self.data is not None:
                given |= {"part": self.part, **self.names}
                lists = texts.read(self.data, **given)
            else:
                assert self.queries is not None
                lists = texts.read_files(
                    queries=self.queries, passages=self.passages, qrels=self.qrels, **given
                )
        known = "" if lists.labels is not None else ", not judged"
        first = "" if lists.scores is None else ", with scores of the first stage"
        say(f"{self.path}: {len(lists.groups)} queries, {len(lists)} passages{first}{known}")
        return lists

    def _first_stage(self, language: str | None) -> Any:
        if self.first_stage is None:
            return _BM25(language)
        from didyma.text.index import PassageIndex

        return PassageIndex.open(self.first_stage)


class _BM25:
    """`didyma.text.BM25`, imported when it is needed."""

    def __init__(self, language: str | None) -> None:
        self.language = language

    def fit(self, passages: Any) -> Any:
        from didyma.text import BM25

        return BM25(self.language).fit(passages)


def parse_names(text: str, roles: Collection[str]) -> dict[str, str]:
    """The names that were given, by role."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        role, equals, name = part.partition("=")
        if not equals or role.strip() not in roles:
            raise typer.BadParameter(
                f"expected {', '.join(roles)}, each with = and a name, found {part!r}",
                param_hint="--names",
            )
        found[role.strip()] = name.strip()
    return found


def lines_of(path: Path | None) -> tuple[Path, list[str]]:
    """What messages name, and the lines of a file, or of stdin (``None`` or ``-``)."""
    from didyma.files import read_lines

    if path is not None and str(path) != "-":
        return path, read_lines(path)
    path = Path("stdin")
    try:
        return path, sys.stdin.buffer.read().decode().splitlines()
    except UnicodeDecodeError:
        raise DataError("expected UTF-8 text", path=path) from None


def read_passages(path: Path | None) -> tuple[list[Any], list[float] | None]:
    """Passages of one query, a line each, and their scores if all have one.

    Lines are texts, or objects in JSON if the first is one. ``None`` or ``-`` is stdin.
    """
    from didyma.data.json_lines import parse_json

    if path is None and sys.stdin.isatty():
        say("passages, one a line; Ctrl-D ends them")
    path, lines = lines_of(path)
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise DataError("expected passages, one a line, found none", path=path)
    if not numbered[0][1].lstrip().startswith("{"):
        return [line for _, line in numbered], None
    passages, scores = [], []
    for number, line in numbered:
        with placed(path, number):
            try:
                passage = parse_json(line)
            except ValueError as error:
                raise DataError(f"expected a JSON object ({error})") from None
            if isinstance(passage, dict) and "score" in passage:
                scores.append(_score(passage.pop("score")))
            passages.append(_document(passage))
    if scores and len(scores) < len(passages):
        raise DataError("expected a score for each passage, or for none", path=path, field="score")
    return passages, scores or None


def _score(value: Any) -> float:
    from didyma.data.json_lines import number_of

    return number_of(value, "score")


def _document(value: Any) -> dict[str, Any]:
    """A passage as files are read: with its title before its text."""
    from didyma.data.passage import Passage

    passage = Passage.of(value)
    return {**passage.metadata, "text": passage.text, "id": passage.id}
