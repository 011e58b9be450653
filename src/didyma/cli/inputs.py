"""What commands read: judged rows, queries with passages, models."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import typer

from didyma.cli import options
from didyma.cli.output import print_message, waiting
from didyma.errors import DataError, ModelFileError, placed
from didyma.files import format_suffix, naming, replace_when_done

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.data.schema import Schema
    from didyma.model import Model


TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
LISTS = ".lists"
COLUMNS = "Columns of a table (.csv, .tsv, .parquet, .jsonl)"


@dataclass(frozen=True)
class InputColumns:
    """Where a file has its labels and queries: columns of a table, sizes of groups."""

    label: Annotated[str, options.text("NAME", "Relevance.", panel=COLUMNS)] = "label"
    qid: Annotated[str, options.text("NAME", "Query.", panel=COLUMNS)] = "qid"
    docid: Annotated[
        str | None,
        options.text("NAME", "Document.", default="docid, if there is one", panel=COLUMNS),
    ] = None
    group: Annotated[
        Path | None,
        options.file(
            "Number of rows of each query, one a line, for a LETOR file without qid. DATA.query "
            "and DATA.group are found without it."
        ),
    ] = None


def is_model(path: Path) -> bool:
    """Whether a file is in safetensors format: by its name, or a length and a ``{`` up front."""
    if path.suffix == ".safetensors":
        return True
    if path.is_dir():
        return False
    with open(path, "rb") as file:
        head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    return head[8:] == b"{" and 8 + length <= os.path.getsize(path)


def read_data(
    path: Path,
    columns: InputColumns,
    *,
    like: Any = None,
    judged: bool = True,
    missing: bool = False,
    categorical: Sequence[str] = (),
) -> Lists:
    """Judged results in any format that the library reads, with the columns of ``like``.

    Without ``judged``, a table needs no labels; with ``missing``, values may be missing; the
    ``categorical`` columns of a table may hold texts.
    """
    from didyma.data.formats import read as read_lists

    taken = reader_options(path, columns, judged, missing, categorical)
    return read_lists(path, like=like, **taken)


def reader_options(
    path: Path,
    columns: InputColumns,
    judged: bool = True,
    missing: bool = False,
    categorical: Sequence[str] = (),
) -> dict[str, Any]:
    """What the reader of a file takes of the options of a command."""
    if is_model(path):
        raise DataError("expected judged results, found a model", path=path)
    kind = LISTS if path.is_dir() else format_suffix(path)
    if columns.group is not None and kind in (*TABLES, ".npz", LISTS):
        raise DataError("expected no sizes of groups, as the file names its queries", path=path)
    options: dict[str, Any] = {"missing": True} if missing and kind != ".npz" else {}
    if kind in TABLES:
        options |= {"label": columns.label, "qid": columns.qid, "docid": columns.docid}
        return {**options, "judged": judged, "categorical": categorical}
    return options if kind in (".npz", LISTS) else {**options, "group": columns.group}


def read_model(path: Path) -> Model:
    """A model that ranks rows of features."""
    from didyma.model import Model

    model = Model.read(path)
    if not model.ranks:
        raise ModelFileError(f"{path}: holds a {model.name}, which does not rank")
    return model


T = TypeVar("T")


def scored(
    model: Model,
    path: Path,
    columns: InputColumns,
    use: Callable[[Iterator[Lists]], T],
    *,
    judged: bool = True,
    by_query: bool = True,
    again: bool = True,
) -> T:
    """What ``use`` makes of the rows of a file, with a score as their only feature, in constant
    memory.

    They come in blocks, of whole queries with ``by_query``. Where queries are needed and their rows
    do not stand together, ``use`` is called again with all rows at once, unless it must not be.
    """
    from didyma.data.formats import blocks
    from didyma.data.row_blocks import ScatteredError, whole_queries

    options = reader_options(path, columns, judged)
    try:
        parts = model.predict_blocks(blocks(path, like=model, **options))
        return use(whole_queries(parts) if by_query else parts)
    except ScatteredError as error:
        if not again:
            with placed(path):
                raise error
    rows = read_data(path, columns, like=model, judged=judged)
    return use(iter([rows.with_items(model.predict(rows)[:, None])]))


def is_stdout(output: Path | None) -> bool:
    """Whether results go to stdout: there is no file, or it is called ``-``."""
    return output is None or str(output) == "-"


@contextmanager
def written(output: Path | None) -> Iterator[IO[Any]]:
    """Where results are written as they come: a file that is whole or not there, or stdout."""
    if is_stdout(output):
        with naming("stdout"):
            yield sys.stdout
        return
    with replace_when_done(str(output)) as file:
        yield file


KINDS = (
    "JSON lines, a table (.tsv, .csv, .parquet) with query, passage and label, lines of "
    "question, sentence and label, or a folder as of BEIR, MS MARCO or TREC QA."
)


@dataclass(frozen=True)
class TextFiles:
    """Queries with passages, in one file or in several."""

    PANEL: ClassVar[str] = "Texts"

    data: Annotated[Path | None, options.argument("DATA", KINDS, default=False)] = None
    part: Annotated[
        str | None,
        options.text("NAME", "Part of a folder that has several, such as train or test."),
    ] = None
    queries: Annotated[
        Path | None, options.file("Instead of DATA: id and text of each query (.tsv, .jsonl).")
    ] = None
    passages: Annotated[
        Path | None, options.file("Id and text of each passage (.tsv, .jsonl).")
    ] = None
    run: Annotated[
        list[Path] | None,
        options.file(
            "TREC run of the first stage: the candidates of each query. Without one, BM25 finds "
            "them among all passages. Given again: runs of several searches, each a signal."
        ),
    ] = None
    first_stage: Annotated[
        str | None,
        options.text(
            "INDEX",
            "An index (didyma index), or the address of a search engine (as of didyma ask --from), "
            "that has the passages and finds the candidates of each query: DATA is then a folder "
            "of queries and judgements, or --queries and --qrels. If it has vectors, words and "
            "cosine are two signals.",
        ),
    ] = None
    depth: Annotated[int, options.number("Candidates that BM25 finds.", min=1, metavar="K")] = 50
    names: Annotated[
        str,
        options.text(
            "ROLE=NAME,…",
            "What columns or fields are called: roles are query, passage, label, score, qid, "
            "docid. A teacher's scores are labels: label=score.",
        ),
    ] = ""

    fields: Annotated[str, options.text("NAME,…", "Fields of passages that are texts.")] = ""
    signals: Annotated[
        str, options.text("NAME,…", "Fields of passages that are signals: numbers, or categories.")
    ] = ""
    ignore: Annotated[str, options.text("NAME,…", "Fields of passages that do not count.")] = ""

    qrels: ClassVar[Path | None] = None
    needs_labels: ClassVar[bool] = False

    def check(self) -> None:
        """Refuse files that do not go together."""
        if self.data is None and (
            self.queries is None or (self.passages is None and self.first_stage is None)
        ):
            raise typer.BadParameter("give it, or --queries and --passages", param_hint="DATA")
        if self.first_stage is not None and (self.passages is not None or self.run):
            raise typer.BadParameter(
                "has passages and candidates: leave out --passages and --run",
                param_hint="--first-stage",
            )
        if self.data is not None and not (self.queries is self.passages is self.qrels is None):
            raise typer.BadParameter("give DATA or these", param_hint="--queries / --passages")

    @property
    def path(self) -> Path:
        """What messages name."""
        path = self.data or self.passages or self.queries
        assert path is not None
        return path

    @property
    def paths(self) -> list[Path]:
        """All files, none of which may be written to."""
        paths = (self.data, self.queries, self.passages, self.qrels, *(self.run or ()))
        return [path for path in paths if path is not None and not path.is_dir()]

    def read(
        self,
        language: str | None = "auto",
        schema: Schema | None = None,
        encoder: str | None = None,
    ) -> Lists:
        """The lists of texts, with candidates by BM25 where there are none.

        Fields of passages are those of a schema that a model has, or are told by their values. The
        encoder is that of a --first-stage with vectors.
        """
        from didyma.data.column_roles import Roles
        from didyma.data.texts import reader as texts

        names: dict[str, Any] = parse_names(self.names, Roles.__dataclass_fields__)
        with waiting(f"reading {self.path}"):
            search: dict[str, Any] = {
                "run": self.run or None,
                "schema": schema,
                **{name: names_in(getattr(self, name)) for name in ("fields", "signals", "ignore")},
                "depth": self.depth,
                "first_stage": self._first_stage(language, encoder),
            }
            if self.data is not None and (self.data / "judgements.jsonl").is_file():
                from didyma.judgements import JudgementStore, lists_of, merge

                with placed(self.data):
                    lists = lists_of(merge(JudgementStore.open(self.data)))
            elif self.data is not None:
                lists = texts.read(self.data, part=self.part, **names, **search)
            else:
                assert self.queries is not None
                lists = texts.read_files(
                    queries=self.queries, passages=self.passages, qrels=self.qrels, **search
                )
        if self.needs_labels and lists.labels is None:
            problem = "expected labels, found none (--names tells how they are called)"
            raise DataError(problem, path=self.path, field="label")
        judged = "" if lists.labels is not None else ", not judged"
        first = "" if lists.scores is None else ", with scores of the first stage"
        if schema is None and lists.attributes is not None:
            print_message(str(lists.attributes.schema))
        print_message(
            f"{self.path}: {len(lists.groups)} queries, {len(lists)} passages{first}{judged}"
        )
        return lists

    def _first_stage(self, language: str | None, encoder: str | None) -> Any:
        if self.first_stage is None:
            return _BM25(language)
        from didyma.text.index import PassageIndex
        from didyma.text.retrieval.resolution import is_address, resolve

        if is_address(self.first_stage):
            return resolve(self.first_stage, encoder)
        index = PassageIndex.open(self.first_stage)
        return index if encoder is None or index.dense is None else index.attach(encoder)


Qrels = Annotated[Path | None, options.file("TREC judgements.")]


class _BM25:
    """`didyma.text.BM25`, imported when it is needed."""

    def __init__(self, language: str | None) -> None:
        self.language = language

    def fit(self, passages: Any) -> Any:
        from didyma.text import BM25

        return BM25(self.language).fit(passages)


@dataclass(frozen=True)
class TrainTextFiles(TextFiles):
    """Queries with passages to learn from, and judgements if there are any."""

    data: Annotated[Path | None, options.argument("TRAIN", KINDS, default=False)] = None
    qrels: Qrels = None  # type: ignore[misc]


@dataclass(frozen=True)
class QueryFiles(TextFiles):
    """Queries with passages, judged or not."""

    qrels: Qrels = None  # type: ignore[misc]


@dataclass(frozen=True)
class JudgedTextFiles(QueryFiles):
    """Queries with passages and judgements."""

    needs_labels: ClassVar[bool] = True


def names_in(text: str) -> list[str]:
    """Names with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_names(text: str, roles: Collection[str]) -> dict[str, str]:
    """The names that were given, by role."""
    names = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        role, equals, name = part.partition("=")
        if not equals or role.strip() not in roles:
            raise typer.BadParameter(
                f"expected {', '.join(roles)}, each with = and a name, found {part!r}",
                param_hint="--names",
            )
        names[role.strip()] = name.strip()
    return names


def check_query(query: str | None, name: str) -> None:
    """Refuse a query without a word; ``name`` is that of its option or argument."""
    if query is not None and not query.strip():
        raise typer.BadParameter("expected a text, found an empty one", param_hint=name)


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
    from didyma.data.json_lines import number_of, parse_json
    from didyma.data.passage import Passage

    if path is None and sys.stdin.isatty():
        print_message("passages, one a line; Ctrl-D ends them")
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
                record = parse_json(line)
            except ValueError as error:
                raise DataError(f"expected a JSON object ({error})") from None
            if isinstance(record, dict) and "score" in record:
                scores.append(number_of(record.pop("score"), "score"))
            passage = Passage.of(record)
            passages.append({**passage.record, "id": passage.id})
    if scores and len(scores) < len(passages):
        raise DataError("expected a score for each passage, or for none", path=path, field="score")
    return passages, scores or None
